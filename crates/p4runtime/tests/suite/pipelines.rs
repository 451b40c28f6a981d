//! Tests programs that clients push, save, commit, reconcile and read.

use std::time::Instant;

use crate::common::*;
use p4::entity::Entity::{DigestEntry, RegisterEntry, TableEntry};
use p4::get_forwarding_pipeline_config_request::ResponseType;
use p4::set_forwarding_pipeline_config_request::Action;
use p4info::p4_data_type_spec::TypeSpec;
use p4info::p4_new_type_spec::Representation;
use sluice_p4runtime::parse_p4info;
use sluice_p4runtime::proto::p4::config::v1 as p4info;
use sluice_p4runtime::proto::p4::v1 as p4;
use tonic::{Code, Status};

async fn get(controller: &mut Controller, response_type: ResponseType) -> Option<p4::ForwardingPipelineConfig> {
    let request = p4::GetForwardingPipelineConfigRequest { device_id: DEVICE, response_type: response_type as i32 };
    controller.client.get_forwarding_pipeline_config(request).await.unwrap().into_inner().config
}

fn entry_seven() -> p4::TableEntry {
    entry(EXACT, vec![exact(1, &[7])], direct(forward(2)))
}

fn seen_cell(at: i64, value: &[u8]) -> p4::RegisterEntry {
    p4::RegisterEntry { register_id: SEEN, index: index(at), data: bits(value) }
}

fn assert_refused(result: Result<(), Status>, code: Code, text: &str) {
    let status = result.expect_err(text);
    assert_eq!(status.code(), code, "{status:?}");
    assert!(status.message().contains(text), "«{}» does not contain «{text}»", status.message());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_config_is_returned_completely_or_in_parts() {
    let switch = Switch::start().await;
    let mut controller = switch.controller(10).await;
    assert_eq!(get(&mut controller, ResponseType::All).await, None);
    let status = controller.try_read(vec![TableEntry(p4::TableEntry::default())]).await.unwrap_err();
    assert_eq!(status.code(), Code::FailedPrecondition);
    assert_eq!(controller.write_all(vec![]).await.unwrap_err().code(), Code::FailedPrecondition);
    controller.push(Action::VerifyAndCommit, Some(config(42))).await.unwrap();
    assert_eq!(get(&mut controller, ResponseType::All).await, Some(config(42)));
    let only = |p4info, device: &[u8]| p4::ForwardingPipelineConfig {
        p4info,
        p4_device_config: device.to_vec(),
        ..p4::ForwardingPipelineConfig { cookie: config(42).cookie, ..Default::default() }
    };
    assert_eq!(get(&mut controller, ResponseType::CookieOnly).await, Some(only(None, &[])));
    assert_eq!(get(&mut controller, ResponseType::P4infoAndCookie).await, Some(only(config(1).p4info, &[])));
    assert_eq!(get(&mut controller, ResponseType::DeviceConfigAndCookie).await, Some(only(None, JSON)));
}

/// Encodes a protobuf field of type `bytes`.
fn bytes_field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let mut field = vec![number << 3 | 2];
    prost::encode_length_delimiter(bytes.len(), &mut field).unwrap();
    [field, bytes.to_vec()].concat()
}

/// The test sends the message `p4.tmp.P4DeviceConfig` in the encoding of the clients of p4lang/tutorials, and in other
/// valid encodings.
#[tokio::test(flavor = "multi_thread")]
async fn a_program_may_be_wrapped_in_bmv2s_message() {
    let (switch, mut controller) = Switch::ready().await;
    let (reassign, data) = (vec![0x08, 1], bytes_field(3, JSON));
    let extras = bytes_field(2, &bytes_field(1, &[bytes_field(1, b"port"), bytes_field(2, b"9090")].concat()));
    let later_field = bytes_field(9, b"?");
    let framings = [
        vec![reassign.clone(), data.clone()],
        vec![data.clone()],
        vec![data.clone(), reassign.clone()],
        vec![reassign.clone(), extras.clone(), data.clone()],
        vec![data.clone(), extras.clone(), later_field, vec![0x08, 0]],
        vec![b"\n\t ".to_vec(), JSON.to_vec(), b"\n".to_vec()],
    ];
    for (framing, cookie) in framings.into_iter().zip(2..) {
        let pushed = p4::ForwardingPipelineConfig { p4_device_config: framing.concat(), ..config(cookie) };
        controller.push(Action::VerifyAndCommit, Some(pushed.clone())).await.unwrap();
        controller.insert(TableEntry(entry_seven())).await;
        assert_eq!(switch.packet(1, &frame(7, 1, 0x800)).len(), 1, "framing {cookie}");
        assert_eq!(get(&mut controller, ResponseType::All).await, Some(pushed));
    }
    let cut = [&reassign[..], &data[..data.len() - 1]].concat();
    let no_json = [&reassign[..], &bytes_field(3, b"no json")].concat();
    for (malformed, text) in [
        (reassign, "this p4.tmp.P4DeviceConfig has no device_data; give it the JSON"),
        (extras, "this p4.tmp.P4DeviceConfig has no device_data"),
        (cut, "it is neither a JSON object nor a p4.tmp.P4DeviceConfig ("),
        (JSON[1..].to_vec(), "it is neither a JSON object nor a p4.tmp.P4DeviceConfig ("),
        (vec![0xff; 9], "it is neither a JSON object nor a p4.tmp.P4DeviceConfig ("),
        (b"[]".to_vec(), "it is neither a JSON object nor a p4.tmp.P4DeviceConfig ("),
        (no_json, "this is not JSON: "),
        (b" \n".to_vec(), "it is empty; give the JSON that p4c-bm2-ss writes"),
    ] {
        let pushed = p4::ForwardingPipelineConfig { p4_device_config: malformed, ..config(99) };
        for action in [Action::Verify, Action::VerifyAndCommit, Action::ReconcileAndCommit] {
            assert_refused(controller.push(action, Some(pushed.clone())).await, Code::InvalidArgument, text);
        }
        assert_eq!(switch.packet(1, &frame(7, 1, 0x800)).len(), 1, "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn verify_changes_nothing_and_commit_clears() {
    let (switch, mut controller) = Switch::ready().await;
    controller.insert(TableEntry(entry_seven())).await;
    controller.push(Action::Verify, Some(config(2))).await.unwrap();
    assert_eq!(get(&mut controller, ResponseType::CookieOnly).await.unwrap().cookie, config(1).cookie);
    assert_eq!(switch.packet(1, &frame(7, 1, 0x800)).len(), 1);
    controller.push(Action::VerifyAndCommit, Some(config(2))).await.unwrap();
    assert_eq!(switch.packet(1, &frame(7, 1, 0x800)), []);
    assert_eq!(controller.read(TableEntry(entry(EXACT, vec![], None))).await, []);
    let counts = switch.device.engine_counts();
    assert_eq!((counts.received, counts.emitted), (2, 1), "counts include those of the replaced program");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_saved_program_receives_writes_and_runs_after_its_commit() {
    let (switch, mut controller) = Switch::ready().await;
    assert_refused(controller.push(Action::Commit, None).await, Code::NotFound, "VERIFY_AND_SAVE one first");
    controller.push(Action::VerifyAndSave, Some(config(2))).await.unwrap();
    controller.insert(TableEntry(entry_seven())).await;
    assert_eq!(switch.packet(1, &frame(7, 1, 0x800)), [], "the old program still runs");
    assert_refused(
        controller.push(Action::Commit, Some(config(2))).await,
        Code::InvalidArgument,
        "COMMIT takes no config",
    );
    controller.push(Action::Commit, None).await.unwrap();
    assert_eq!(switch.packet(1, &frame(7, 1, 0x800)).len(), 1);
    assert_eq!(get(&mut controller, ResponseType::CookieOnly).await.unwrap().cookie, config(2).cookie);
}

#[tokio::test(flavor = "multi_thread")]
async fn reconcile_keeps_the_state() {
    let (switch, mut controller) = Switch::ready().await;
    controller.insert(TableEntry(entry_seven())).await;
    controller.modify(RegisterEntry(seen_cell(3, &[9]))).await;
    let default = |action| p4::TableEntry { is_default_action: true, ..entry(TERNARY, vec![], action) };
    controller.modify(TableEntry(default(direct(action(LEARN, &[]))))).await;
    let digest = DigestEntry(p4::DigestEntry {
        digest_id: id_of("learn_t"),
        config: Some(p4::digest_entry::Config { max_timeout_ns: 1, max_list_size: 2, ack_timeout_ns: 3 }),
    });
    controller.insert(digest.clone()).await;
    // The test first pushes the same program again, then a program with another table size.
    let json = String::from_utf8(JSON.to_vec()).unwrap();
    assert!(json.contains("\"max_size\" : 16384"));
    let resized = json.replace("\"max_size\" : 16384", "\"max_size\" : 16385").into_bytes();
    for (cookie, json) in [(2, JSON.to_vec()), (3, resized)] {
        let next = p4::ForwardingPipelineConfig { p4_device_config: json, ..config(cookie) };
        controller.push(Action::ReconcileAndCommit, Some(next)).await.unwrap();
        assert_eq!(get(&mut controller, ResponseType::CookieOnly).await.unwrap().cookie, config(cookie).cookie);
        assert_eq!(switch.packet(1, &frame(7, 1, 0x800)).len(), 0, "the default action learns and drops");
        assert_eq!(controller.read(TableEntry(entry(EXACT, vec![], None))).await, [TableEntry(entry_seven())]);
        let register = p4::RegisterEntry { data: None, ..seen_cell(3, &[]) };
        assert_eq!(controller.read(RegisterEntry(register)).await, [RegisterEntry(seen_cell(3, &[9]))]);
        assert_eq!(controller.read(DigestEntry(p4::DigestEntry::default())).await, std::slice::from_ref(&digest));
        let read = controller.read(TableEntry(default(None))).await;
        assert_eq!(read, [TableEntry(default(direct(action(LEARN, &[]))))]);
    }
    // A program whose tables are too small for the state must be refused. The running program remains unchanged.
    controller.insert(TableEntry(entry(EXACT, vec![exact(1, &[8])], direct(forward(2))))).await;
    let small = json.replace("\"max_size\" : 4,", "\"max_size\" : 1,").into_bytes();
    let next = p4::ForwardingPipelineConfig { p4_device_config: small, ..config(4) };
    let result = controller.push(Action::ReconcileAndCommit, Some(next)).await;
    assert_refused(result, Code::InvalidArgument, "cannot keep the state of the old one: table I.exact_t");
    assert_eq!(get(&mut controller, ResponseType::CookieOnly).await.unwrap().cookie, config(3).cookie);
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_name_both_sides() {
    let (_switch, mut controller) = Switch::ready().await;
    let json = String::from_utf8(JSON.to_vec()).unwrap();
    let with_json = |json: String| p4::ForwardingPipelineConfig { p4_device_config: json.into_bytes(), ..config(2) };
    let without_p4info = p4::ForwardingPipelineConfig { p4info: None, ..config(2) };
    let without_json = p4::ForwardingPipelineConfig { p4_device_config: vec![], ..config(2) };
    let mut wider = config(2);
    wider.p4info.as_mut().unwrap().tables[0].match_fields[0].bitwidth = 47;
    let cases = [
        (None, "the config is missing"),
        (Some(without_p4info), "P4Info is missing"),
        (Some(without_json), "program (p4_device_config): it is empty; give the JSON that p4c-bm2-ss writes"),
        (Some(with_json("{}".to_owned())), "program (p4_device_config): "),
        (Some(with_json("no json".to_owned())), "program (p4_device_config): "),
        (
            Some(with_json(json.replace("\"I.seen\"", "\"I.scene\""))),
            "P4Info has register I.seen, the program's JSON does not: they are not from the same compilation",
        ),
        (
            Some(wider),
            "table I.exact_t, key field dst: P4Info has exact on 47 bits, the program's JSON has exact on 48 bits",
        ),
    ];
    for (config, text) in cases {
        for action in [Action::Verify, Action::VerifyAndCommit] {
            assert_refused(controller.push(action, config.clone()).await, Code::InvalidArgument, text);
        }
    }
    assert_eq!(get(&mut controller, ResponseType::CookieOnly).await.unwrap().cookie, config(1).cookie);
}

/// Returns the config with `size` cells in the array of meters `limit`.
pub fn with_meters(size: u64) -> p4::ForwardingPipelineConfig {
    let mut config = config(2);
    let json = String::from_utf8(JSON.to_vec()).unwrap();
    let (old, new) = ("\"size\" : 8,\n      \"rate_count\"", format!("\"size\" : {size},\n      \"rate_count\""));
    assert!(json.contains(old));
    config.p4_device_config = json.replace(old, &new).into_bytes();
    config.p4info.as_mut().unwrap().meters[0].size = size as i64;
    config
}

#[tokio::test(flavor = "multi_thread")]
async fn arrays_too_large_for_the_memory_are_refused() {
    let (switch, mut controller) = Switch::ready().await;
    controller.insert(TableEntry(entry_seven())).await;
    for action in [Action::Verify, Action::VerifyAndSave, Action::VerifyAndCommit, Action::ReconcileAndCommit] {
        let result = controller.push(action, Some(with_meters(1 << 28))).await;
        let text = "/meter_arrays/0/size (meter 'I.limit'): 268435456 cells of ";
        assert_refused(result, Code::InvalidArgument, text);
    }
    assert_eq!(switch.packet(1, &frame(7, 1, 0x800)).len(), 1, "the program keeps running");
    controller.push(Action::VerifyAndCommit, Some(with_meters(1 << 16))).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn controller_headers_have_the_widths_of_the_program() {
    let (_switch, mut controller) = Switch::ready().await;
    let header = |widths: &[i32]| {
        let mut config = config(2);
        let fields = &mut config.p4info.as_mut().unwrap().controller_packet_metadata[0].metadata;
        let first = fields[0].clone();
        fields.resize(widths.len(), first);
        fields.iter_mut().zip(widths).for_each(|(field, width)| field.bitwidth = *width);
        Some(config)
    };
    let different = "controller header packet_in, reason: P4Info has 15 bits, the program's JSON has 7 bits";
    // No header of the program has the three fields of the second case. In 32-bit arithmetic, the sum of their widths
    // would overflow to 8.
    let wide = "controller header packet_in has 536870913 bytes, and no frame has more than 65535";
    for (widths, text) in [(&[9, 15][..], different), (&[i32::MAX, i32::MAX, 10], wide)] {
        assert_refused(controller.push(Action::Verify, header(widths)).await, Code::InvalidArgument, text);
    }
    controller.push(Action::VerifyAndCommit, header(&[9, 7])).await.unwrap();
}

/// Returns a config whose compilation takes so long that other requests are processed meanwhile.
fn large(cookie: u64) -> p4::ForwardingPipelineConfig {
    p4::ForwardingPipelineConfig {
        p4info: Some(parse_p4info(include_str!("../../../../p4src/build/sluice.p4info.txtpb")).unwrap()),
        p4_device_config: include_bytes!("../../../../p4src/build/sluice.json").to_vec(),
        ..config(cookie)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn bids_do_not_wait_for_the_compilation_of_a_program() {
    let (switch, mut controller) = Switch::ready().await;
    let mut backup = switch.controller(9).await;
    let push = tokio::spawn(async move {
        let started = Instant::now();
        controller.push(Action::VerifyAndCommit, Some(large(2))).await.unwrap();
        (controller, started.elapsed())
    });
    let mut answered = 0;
    while !push.is_finished() {
        backup.bid(Some(9)).await;
        assert_eq!(backup.next_arbitration().await, (Code::AlreadyExists, 10));
        answered += 1;
    }
    let (mut former, took) = push.await.unwrap();
    // If bids waited for the compilation, only two would be answered: the first before it and the second after it.
    assert!(answered > 10, "{answered} bids were answered meanwhile");
    // A controller that is no longer primary when its program has been compiled must not replace the running program.
    let push = tokio::spawn(async move {
        let result = former.push(Action::VerifyAndCommit, Some(large(3))).await;
        (former, result)
    });
    tokio::time::sleep(took / 2).await;
    backup.bid(Some(11)).await;
    assert_eq!(backup.next_arbitration().await, (Code::Ok, 11));
    let at_that_time = get(&mut backup, ResponseType::CookieOnly).await.unwrap().cookie;
    let (_former, result) = push.await.unwrap();
    assert_eq!(get(&mut backup, ResponseType::CookieOnly).await.unwrap().cookie, at_that_time);
    if at_that_time == config(2).cookie {
        assert_refused(result, Code::PermissionDenied, "not primary: the primary's election id is 11, not 10");
    }
}

/// The P4Info that p4c writes lists tables which its back end removes from the JSON, and has no width for keys of type
/// `error`. The switch must accept both.
#[tokio::test(flavor = "multi_thread")]
async fn tables_and_widths_that_p4c_omits_are_accepted() {
    let (_switch, mut controller) = Switch::ready().await;
    let mut extended = config(2);
    let info = extended.p4info.as_mut().unwrap();
    info.tables[0].match_fields[0].bitwidth = 0;
    let mut without_effect = info.tables[0].clone();
    let preamble = without_effect.preamble.as_mut().unwrap();
    (preamble.id, preamble.name) = (0x02ab_cdef, "I.without_effect".to_owned());
    without_effect.direct_resource_ids.clear();
    info.tables.push(without_effect);
    controller.push(Action::VerifyAndCommit, Some(extended.clone())).await.unwrap();
    assert_eq!(controller.read(TableEntry(p4::TableEntry::default())).await.len(), 1, "the program's const entry");
    // After the renaming, P4Info has a table that the program lacks, and lacks a table that the program has. So P4Info
    // and program come from different compilations, and the switch must refuse the pair.
    let mut renamed = extended;
    renamed.p4info.as_mut().unwrap().tables[0].preamble.as_mut().unwrap().name = "I.other".to_owned();
    let text = "P4Info has table I.other, the program's JSON does not: they are not from the same compilation";
    assert_refused(controller.push(Action::Verify, Some(renamed)).await, Code::InvalidArgument, text);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_primary_of_this_device_may_write_or_push() {
    let (switch, mut primary) = Switch::ready().await;
    let mut backup = switch.controller(5).await;
    let result = backup.push(Action::VerifyAndCommit, Some(config(2))).await;
    assert_refused(result, Code::PermissionDenied, "not primary: the primary's election id is 10, not 5");
    let result = backup.write_all(vec![]).await;
    assert_refused(result, Code::PermissionDenied, "not primary: the primary's election id is 10, not 5");
    assert_eq!(backup.read(TableEntry(entry(EXACT, vec![], None))).await, [], "everyone may read");
    let wrong = p4::WriteRequest { device_id: 9, ..Default::default() };
    assert_eq!(primary.client.write(wrong).await.unwrap_err().code(), Code::NotFound);
    let wrong = p4::ReadRequest { device_id: 9, ..Default::default() };
    assert_eq!(primary.client.read(wrong).await.unwrap_err().code(), Code::NotFound);
    let wrong = p4::WriteRequest { device_id: DEVICE, role: "acl".to_owned(), ..Default::default() };
    assert_eq!(primary.client.write(wrong).await.unwrap_err().code(), Code::NotFound);
    let capabilities = primary.client.capabilities(p4::CapabilitiesRequest { device_id: DEVICE }).await.unwrap();
    assert_eq!(capabilities.into_inner().p4runtime_api_version, "1.5.0");
}

/// Returns the config with a digest of this type. `add` adds further types to P4Info.
fn learning(type_spec: TypeSpec, add: impl FnOnce(&mut p4info::P4TypeInfo)) -> p4::ForwardingPipelineConfig {
    let mut config = config(2);
    let info = config.p4info.as_mut().unwrap();
    info.digests[0].type_spec = Some(p4info::P4DataTypeSpec { type_spec: Some(type_spec) });
    add(info.type_info.as_mut().unwrap());
    config
}

fn named(name: impl Into<String>) -> p4info::P4NamedType {
    p4info::P4NamedType { name: name.into() }
}

/// Returns a struct type with `count` members of the struct type `name`.
fn members_of(name: &str, count: usize) -> p4info::P4StructTypeSpec {
    let member = |number| p4info::p4_struct_type_spec::Member {
        name: format!("member{number}"),
        type_spec: Some(p4info::P4DataTypeSpec { type_spec: Some(TypeSpec::Struct(named(name))) }),
    };
    p4info::P4StructTypeSpec { members: (0..count).map(member).collect(), ..Default::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn types_that_contain_themselves_are_refused() {
    let (_switch, mut controller) = Switch::ready().await;
    let structure = learning(TypeSpec::Struct(named("loop_t")), |types| {
        types.structs.insert("loop_t".to_owned(), members_of("loop_t", 1));
    });
    let renamed = learning(TypeSpec::NewType(named("loop_t")), |types| {
        let original = p4info::P4DataTypeSpec { type_spec: Some(TypeSpec::NewType(named("loop_t"))) };
        let representation = Some(Representation::OriginalType(original));
        let spec = p4info::P4NewTypeSpec { representation, ..Default::default() };
        types.new_types.insert("loop_t".to_owned(), spec);
    });
    // None of these types contains itself. Each of the 40 levels doubles the number of members, so the outermost type
    // has 2^40 empty members.
    let doubled = learning(TypeSpec::Struct(named("t0")), |types| {
        for level in 0..40 {
            types.structs.insert(format!("t{level}"), members_of(&format!("t{}", level + 1), 2));
        }
        types.structs.insert("t40".to_owned(), Default::default());
    });
    for config in [structure, renamed, doubled] {
        let text = "contains itself, or has more than 65536 members or 64 levels";
        assert_refused(controller.push(Action::Verify, Some(config)).await, Code::InvalidArgument, text);
        assert_eq!(controller.read(TableEntry(entry(EXACT, vec![], None))).await, [], "the switch keeps running");
    }
}
