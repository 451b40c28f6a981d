//! Tests translated types in all places where a program may use them: keys, parameters, controller headers, registers,
//! digests and value sets.

use crate::common::*;
use p4::entity::Entity::{DigestEntry, DirectCounterEntry, RegisterEntry, TableEntry, ValueSetEntry};
use p4::set_forwarding_pipeline_config_request::Action;
use p4::stream_message_request::Update as ToSwitch;
use p4::stream_message_response::Update as FromSwitch;
use p4::update::Type::{Delete, Insert, Modify};
use p4::write_request::Atomicity::{DataplaneAtomic, RollbackOnError};
use p4info::p4_data_type_spec::TypeSpec;
use p4info::p4_new_type_translation::{SdnString, SdnType};
use sluice_p4runtime::proto::p4::config::v1 as p4info;
use sluice_p4runtime::proto::p4::v1 as p4;
use tonic::Code;

const STATION: &str = "station_t";
const PORT: &str = "port_t";

fn named(name: &str) -> Option<p4info::P4NamedType> {
    Some(p4info::P4NamedType { name: name.to_owned() })
}

pub fn strings() -> SdnType {
    SdnType::SdnString(SdnString::default())
}

/// Returns the config with two translated types, stations (addresses) and ports. Stations occur in the key of the exact
/// table, in `last_source` and in the digest; ports in the parameter of `forward`, in both controller headers and in
/// the digest.
pub fn translated(sdn: &SdnType) -> p4::ForwardingPipelineConfig {
    let mut config = config(2);
    let info = config.p4info.as_mut().unwrap();
    let bitwidth = match sdn {
        SdnType::SdnBitwidth(width) => *width,
        SdnType::SdnString(_) => 0,
    };
    let types = info.type_info.as_mut().unwrap();
    for name in [STATION, PORT] {
        let translation = p4info::P4NewTypeTranslation { uri: name.to_owned(), sdn_type: Some(*sdn) };
        let representation = Some(p4info::p4_new_type_spec::Representation::TranslatedType(translation));
        let spec = p4info::P4NewTypeSpec { representation, ..Default::default() };
        types.new_types.insert(name.to_owned(), spec);
    }
    let new_type = |name| Some(p4info::P4DataTypeSpec { type_spec: named(name).map(TypeSpec::NewType) });
    let learn = types.structs.get_mut("learn_t").unwrap();
    (learn.members[0].type_spec, learn.members[1].type_spec) = (new_type(STATION), new_type(PORT));
    info.registers.iter_mut().find(|register| register.size == 300_000).unwrap().type_spec = new_type(STATION);
    let field = &mut info.tables[0].match_fields[0];
    (field.type_name, field.bitwidth) = (named(STATION), bitwidth);
    let id = |action: &p4info::Action| action.preamble.as_ref().map(|preamble| preamble.id);
    let forward = info.actions.iter_mut().find(|action| id(action) == Some(FORWARD)).unwrap();
    (forward.params[0].type_name, forward.params[0].bitwidth) = (named(PORT), bitwidth);
    for header in &mut info.controller_packet_metadata {
        (header.metadata[0].type_name, header.metadata[0].bitwidth) = (named(PORT), bitwidth);
    }
    config
}

async fn with(sdn: &SdnType) -> (Switch, Controller) {
    let (switch, mut controller) = Switch::ready().await;
    controller.push(Action::VerifyAndCommit, Some(translated(sdn))).await.unwrap();
    (switch, controller)
}

/// Returns an entry that forwards packets for the address `station` to `port`.
pub fn of(station: &[u8], port: &[u8]) -> p4::entity::Entity {
    TableEntry(entry(EXACT, vec![exact(1, station)], direct(action(FORWARD, &[port]))))
}

pub fn metadata(values: &[&[u8]]) -> Vec<p4::PacketMetadata> {
    let metadata = |(metadata_id, value): (u32, &&[u8])| p4::PacketMetadata { metadata_id, value: value.to_vec() };
    (1..).zip(values).map(metadata).collect()
}

/// Sends a packet-out with the egress port `port`, and returns the ports by which the packet leaves.
async fn packet_out(switch: &Switch, controller: &Controller, port: &[u8]) -> Vec<u32> {
    let packet = p4::PacketOut { payload: frame(1, 2, 0x800), metadata: metadata(&[port, &[0], &[0]]) };
    controller.send(ToSwitch::Packet(packet)).await;
    let ports = async {
        loop {
            let out = switch.packet_outs();
            if !out.is_empty() {
                return out.into_iter().map(|(port, _)| port).collect();
            }
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(60), ports).await.expect("a packet")
}

/// Sends a packet from port 3 to the controller, and returns the ingress port in its metadata.
async fn packet_in(switch: &Switch, controller: &mut Controller) -> Vec<u8> {
    let punt = entry(TERNARY, vec![ternary(1, &[9], &[0xff])], direct(action(TO_CONTROLLER, &[&[5]])));
    controller.insert(TableEntry(p4::TableEntry { priority: 1, ..punt })).await;
    assert_eq!(switch.packet(3, &frame(1, 9, 0x800)), []);
    match controller.next().await {
        FromSwitch::Packet(packet) => {
            assert_eq!((packet.payload, &packet.metadata[1].value[..]), (frame(1, 9, 0x800), &[5][..]));
            packet.metadata[0].value.clone()
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn numbers_are_the_same_as_in_the_program() {
    let (switch, mut controller) = with(&SdnType::SdnBitwidth(64)).await;
    controller.insert(of(&[7], &[4])).await;
    assert_eq!(controller.read(TableEntry(entry(EXACT, vec![], None))).await, [of(&[7], &[4])]);
    assert_eq!(switch.packet(1, &frame(7, 1, 0x800)), [(4, frame(7, 1, 0x800))]);
    let text = "the value 0x01000000000000 needs 49 bits, the field has 48";
    controller.refused(Insert, of(&[1, 0, 0, 0, 0, 0, 0], &[1]), Code::InvalidArgument, text).await;
    let text = "parameter 1 (port): the value 0x0200 needs 10 bits, the field has 9";
    controller.refused(Insert, of(&[8], &[2, 0]), Code::InvalidArgument, text).await;
    assert_eq!(packet_out(&switch, &controller, &[0, 0, 1, 0]).await, [256]);
    assert_eq!(packet_in(&switch, &mut controller).await, [3]);
}

#[tokio::test(flavor = "multi_thread")]
async fn strings_are_names_and_digits_stand_for_numbers() {
    let (switch, mut controller) = with(&strings()).await;
    controller.insert(of(b"printer", b"4")).await;
    controller.insert(of(b"7", b"2")).await;
    let read = controller.read(TableEntry(entry(EXACT, vec![], None))).await;
    assert_eq!(read, [of(b"printer", b"4"), of(b"7", b"2")]);
    assert_eq!(switch.packet(1, &frame(7, 1, 0x800)), [(2, frame(7, 1, 0x800))]);
    // The first name was assigned the highest number, 0xffffffffffff.
    let mut to_printer = frame(0xff, 1, 0x800);
    to_printer[..12].fill(0xff);
    assert_eq!(switch.packet(1, &to_printer), [(4, to_printer.clone())]);
    let pattern = p4::RegisterEntry { register_id: LAST_SOURCE, index: index(1), data: None };
    let last_source = RegisterEntry(p4::RegisterEntry { data: bits(b"printer"), ..pattern });
    assert_eq!(controller.read(RegisterEntry(pattern)).await, std::slice::from_ref(&last_source));
    controller.modify(last_source).await;
    assert_eq!(packet_out(&switch, &controller, b"256").await, [256]);
    assert_eq!(packet_in(&switch, &mut controller).await, b"3");
    for (station, port, text) in [
        (&b""[..], &b"1"[..], "match field 1 (dst): the value is not a valid name; give text of 1 to 256 bytes"),
        (b"\xff", b"1", "match field 1 (dst): the value is not a valid name; give text of 1 to 256 bytes"),
        (b"281474976710655", b"1", "the number 281474976710655 is that of the name 'printer'"),
        (b"fax", b"512", "parameter 1 (port): the number 512 is above 511"),
    ] {
        controller.refused(Insert, of(station, port), Code::InvalidArgument, text).await;
    }
    // A program that replaces this one by `RECONCILE_AND_COMMIT` must receive the names and their numbers.
    let json = String::from_utf8(JSON.to_vec()).unwrap().replace("\"max_size\" : 16384", "\"max_size\" : 16385");
    let next = p4::ForwardingPipelineConfig { p4_device_config: json.into_bytes(), ..translated(&strings()) };
    controller.push(Action::ReconcileAndCommit, Some(next)).await.unwrap();
    let read = controller.read(TableEntry(entry(EXACT, vec![], None))).await;
    assert_eq!(read, [of(b"printer", b"4"), of(b"7", b"2")]);
    assert_eq!(switch.packet(1, &to_printer), [(4, to_printer)]);
    let learn = p4::TableEntry { is_default_action: true, ..entry(TERNARY, vec![], direct(action(LEARN, &[]))) };
    controller.modify(TableEntry(learn)).await;
    let config = p4::digest_entry::Config { max_timeout_ns: 0, max_list_size: 1, ack_timeout_ns: 0 };
    controller.insert(DigestEntry(p4::DigestEntry { digest_id: id_of("learn_t"), config: Some(config) })).await;
    let mut from_printer = frame(1, 0, 0x800);
    from_printer[6..12].fill(0xff);
    switch.packet(6, &from_printer);
    let FromSwitch::Digest(list) = controller.next().await else { panic!() };
    let members = vec![bits(b"printer").unwrap(), bits(b"6").unwrap()];
    let message = p4::p4_data::Data::Struct(p4::P4StructLike { members });
    assert_eq!(list.data, [p4::P4Data { data: Some(message) }]);
}

#[tokio::test(flavor = "multi_thread")]
async fn names_that_are_only_read_or_refused_are_assigned_no_number() {
    let (switch, mut controller) = with(&strings()).await;
    let fax = || entry(EXACT, vec![exact(1, b"fax")], None);
    let its_counter = |data| DirectCounterEntry(p4::DirectCounterEntry { table_entry: Some(fax()), data });
    assert_eq!(controller.read(TableEntry(fax())).await, []);
    let status = controller.try_read(vec![its_counter(None)]).await.unwrap_err();
    assert_eq!(errors(&status)[0].0, Code::NotFound);
    let unknown =
        "table I.exact_t: match field 1 (dst): the name 'fax' is unknown; give one that a write has introduced";
    for (kind, entity) in [
        (Modify, of(b"fax", b"1")),
        (Delete, TableEntry(fax())),
        (Modify, its_counter(Some(p4::CounterData::default()))),
    ] {
        controller.refused(kind, entity, Code::NotFound, unknown).await;
    }
    let packet = p4::PacketOut { payload: frame(1, 2, 0x800), metadata: metadata(&[b"uplink", &[0], &[0]]) };
    controller.send(ToSwitch::Packet(packet)).await;
    let FromSwitch::Error(error) = controller.next().await else { panic!("no error") };
    let text = "packet_out field 1 (egress_port): the name 'uplink' is unknown; give one that a write has introduced";
    assert_eq!((error.canonical_code, &error.message[..]), (Code::InvalidArgument as i32, text));
    // The switch must remove the names of refused updates and of reverted ones.
    controller.refused(Insert, of(b"fax", b"512"), Code::InvalidArgument, "the number 512 is above 511").await;
    for atomicity in [RollbackOnError, DataplaneAtomic] {
        let updates = [update(Insert, of(b"fax", b"uplink")), update(Insert, of(b"telex", b"510"))];
        let refused = update(Insert, of(b"telex", b"downlink"));
        let status = controller.write_batch(atomicity as i32, [&updates[..], &[refused]].concat()).await.unwrap_err();
        assert_eq!(errors(&status)[2].0, Code::AlreadyExists);
    }
    // The names were removed: the highest numbers are free again, and the new names receive them.
    controller.insert(of(b"printer", b"4")).await;
    controller.insert(of(b"scanner", b"511")).await;
    let mut to_printer = frame(0xff, 1, 0x800);
    to_printer[..5].fill(0xff);
    assert_eq!(switch.packet(1, &to_printer), [(4, to_printer.clone())]);
}

#[tokio::test(flavor = "multi_thread")]
async fn members_of_value_sets_may_have_names() {
    let (switch, mut controller) = Switch::ready().await;
    let mut next = translated(&strings());
    let field = &mut next.p4info.as_mut().unwrap().value_sets[0].r#match[0];
    (field.type_name, field.bitwidth) = (named(STATION), 0);
    controller.push(Action::VerifyAndCommit, Some(next)).await.unwrap();
    let members = vec![p4::ValueSetMember { r#match: vec![exact(1, b"4096")] }];
    let set = ValueSetEntry(p4::ValueSetEntry { value_set_id: LABELLED, members });
    controller.modify(set.clone()).await;
    let pattern = ValueSetEntry(p4::ValueSetEntry { value_set_id: LABELLED, members: vec![] });
    assert_eq!(controller.read(pattern).await, [set]);
    let entry = entry(LPM, vec![lpm(1, &[0xaa, 0xaa, 0, 0], 16)], direct(action(FORWARD, &[b"6"])));
    controller.insert(TableEntry(entry)).await;
    assert_eq!(switch.packet(1, &frame(1, 1, 4096)).len(), 1, "the parser extracts the label");
    assert_eq!(switch.packet(1, &frame(1, 1, 4097)).len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn unsupported_translations_are_refused_with_their_place() {
    let (_switch, mut controller) = Switch::ready().await;
    let mut prefix = translated(&strings());
    let field = &mut prefix.p4info.as_mut().unwrap().tables[1].match_fields[0];
    (field.type_name, field.bitwidth) = (named(STATION), 0);
    let mut unknown = translated(&strings());
    unknown.p4info.as_mut().unwrap().controller_packet_metadata[0].metadata[0].name = "inlet".to_owned();
    for (config, text) in [
        (prefix, "match kind lpm on a type translated to strings (table I.lpm_t, key field label) is not supported"),
        (
            unknown,
            "controller header packet_in has a field of a translated type, and the program has no header with these fields \
             (inlet, reason)",
        ),
    ] {
        let status = controller.push(Action::VerifyAndCommit, Some(config)).await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument);
        assert!(status.message().contains(text), "{status:?}");
    }
}
