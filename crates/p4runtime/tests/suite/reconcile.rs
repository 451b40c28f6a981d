//! Tests `RECONCILE_AND_COMMIT` while packets run: neither packets nor state that packets have written may be lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::common::*;
use crate::load::{Tally, forwarding, run_packets};
use crate::translation::{of, strings, translated};
use p4::entity::Entity::{CounterEntry, DigestEntry, MeterEntry, RegisterEntry, TableEntry};
use p4::set_forwarding_pipeline_config_request::Action;
use p4::stream_message_response::Update as FromSwitch;
use p4::update::Type::Insert;
use sluice_p4runtime::proto::p4::v1 as p4;
use tonic::Code;

/// Returns the program with room for `entries` entries in its ternary table. The switch regards the result as another
/// program, because the size differs from the original's 16,384.
pub fn with_room_for(entries: u32) -> p4::ForwardingPipelineConfig {
    let json = String::from_utf8(JSON.to_vec()).unwrap();
    assert!(json.contains("\"max_size\" : 16384"));
    let json = json.replace("\"max_size\" : 16384", &format!("\"max_size\" : {entries}"));
    p4::ForwardingPipelineConfig { p4_device_config: json.into_bytes(), ..config(u64::from(entries)) }
}

/// Returns the program with `cells` cells in the register array `last_source`.
pub fn with_cells(cells: u32) -> p4::ForwardingPipelineConfig {
    let json = String::from_utf8(JSON.to_vec()).unwrap();
    assert!(json.contains("\"size\" : 300000"));
    let json = json.replace("\"size\" : 300000", &format!("\"size\" : {cells}"));
    let mut config = p4::ForwardingPipelineConfig { p4_device_config: json.into_bytes(), ..config(7) };
    let registers = &mut config.p4info.as_mut().unwrap().registers;
    registers.iter_mut().find(|register| register.size == 300_000).unwrap().size = cells as i32;
    config
}

fn counted(action_port: u8) -> p4::TableEntry {
    entry(EXACT, vec![exact(1, &[9])], direct(action(COUNT_DIRECT, &[&[action_port]])))
}

fn counts(packets: u64, length: u64) -> p4::CounterData {
    p4::CounterData { packet_count: packets as i64, byte_count: (packets * length) as i64 }
}

/// Returns a meter configuration of rate 0, so that the meter's bucket is never refilled.
fn bucket(burst: i64) -> Option<p4::MeterConfig> {
    Some(p4::MeterConfig { cburst: burst, pburst: burst, ..Default::default() })
}

async fn read_single(controller: &mut Controller, pattern: p4::entity::Entity) -> p4::entity::Entity {
    let mut entities = controller.read(pattern).await;
    assert_eq!(entities.len(), 1, "{entities:?}");
    entities.remove(0)
}

#[tokio::test(flavor = "multi_thread")]
async fn no_packet_is_lost_and_no_count_is_missing() {
    let (switch, mut controller) = Switch::ready().await;
    controller.insert(TableEntry(counted(1))).await;
    controller.insert(forwarding(7, 9, 1)).await;
    let entries: Vec<_> = (0..10_000).map(|number| forwarding(0x0100_0000 + number, 3, 4)).collect();
    controller.write_batch(0, entries.iter().map(|entry| update(Insert, entry.clone())).collect()).await.unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let packets = run_packets(&switch, &stop);
    for room in [16_385, 16_386] {
        controller.push(Action::ReconcileAndCommit, Some(with_room_for(room))).await.unwrap();
    }
    stop.store(true, Relaxed);
    let (Tally([first, _, _]), sent) = packets.join().unwrap();
    assert_eq!(first, sent, "every packet is forwarded");
    assert_eq!(switch.device.engine_counts().received, sent);
    let pattern = p4::CounterEntry { counter_id: BY_PORT, index: index(1), data: None };
    let counter = p4::CounterEntry { data: Some(counts(sent, 60)), ..pattern };
    assert_eq!(read_single(&mut controller, CounterEntry(pattern)).await, CounterEntry(counter));
    let pattern = p4::RegisterEntry { register_id: SEEN, index: index(1), data: None };
    let FromRegister(counted) = read_single(&mut controller, RegisterEntry(pattern)).await.into();
    assert_eq!(counted, sent & 0xffff_ffff);
    let pattern =
        p4::MeterEntry { meter_id: LIMIT, index: index(1), counter_data: Some(Default::default()), config: None };
    let MeterEntry(meter) = read_single(&mut controller, MeterEntry(pattern)).await else { panic!() };
    assert_eq!(meter.counter_data.unwrap().green, Some(counts(sent, 60)));
    let pattern = p4::TableEntry {
        counter_data: Some(Default::default()),
        meter_counter_data: Some(Default::default()),
        ..entry(EXACT, vec![], None)
    };
    let TableEntry(read_entry) = read_single(&mut controller, TableEntry(pattern)).await else { panic!() };
    assert_eq!(read_entry.counter_data, Some(counts(sent, 60)));
    assert_eq!(read_entry.meter_counter_data.unwrap().green, Some(counts(sent, 60)));
    let pattern = TableEntry(p4::TableEntry { priority: 3, ..entry(TERNARY, vec![], None) });
    assert_eq!(controller.read(pattern).await, entries, "oldest first");
}

/// The value of a register cell that the server returned.
struct FromRegister(u64);

impl From<p4::entity::Entity> for FromRegister {
    fn from(entity: p4::entity::Entity) -> Self {
        match entity {
            RegisterEntry(p4::RegisterEntry {
                data: Some(p4::P4Data { data: Some(p4::p4_data::Data::Bitstring(v)) }),
                ..
            }) => Self(v.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn meters_keep_their_tokens_and_entries_their_idle_time() {
    let (switch, mut controller) = Switch::ready().await;
    let limit = p4::MeterEntry { meter_id: LIMIT, index: index(1), config: bucket(5), counter_data: None };
    controller.modify(MeterEntry(limit)).await;
    let metered = p4::TableEntry { meter_config: bucket(3 * 60), idle_timeout_ns: 1 << 50, ..counted(1) };
    controller.insert(TableEntry(metered)).await;
    let pass = |packets| (0..packets).filter(|_| !switch.packet(1, &frame(9, 1, 0x800)).is_empty()).count();
    assert_eq!(pass(3), 3);
    let pattern = p4::TableEntry {
        counter_data: Some(Default::default()),
        meter_counter_data: Some(Default::default()),
        time_since_last_hit: Some(Default::default()),
        ..entry(EXACT, vec![], None)
    };
    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    controller.push(Action::ReconcileAndCommit, Some(with_room_for(16_385))).await.unwrap();
    let TableEntry(read_entry) = read_single(&mut controller, TableEntry(pattern.clone())).await else { panic!() };
    assert!(read_entry.time_since_last_hit.unwrap().elapsed_ns >= 50_000_000, "{read_entry:?}");
    assert_eq!(pass(4), 2, "three of the five tokens were used before");
    let TableEntry(read_entry) = read_single(&mut controller, TableEntry(pattern)).await else { panic!() };
    let colours = read_entry.meter_counter_data.unwrap();
    assert_eq!((colours.green, colours.red), (Some(counts(3, 60)), Some(counts(4, 60))));
    assert_eq!(read_entry.counter_data, Some(counts(7, 60)));
}

#[tokio::test(flavor = "multi_thread")]
async fn arrays_of_another_size_or_type_keep_their_cells_or_the_request_is_refused() {
    let (switch, mut controller) = Switch::ready().await;
    let cell = |at, value: &[u8]| {
        RegisterEntry(p4::RegisterEntry { register_id: LAST_SOURCE, index: index(at), data: bits(value) })
    };
    let pattern = |at| RegisterEntry(p4::RegisterEntry { register_id: LAST_SOURCE, index: index(at), data: None });
    controller.modify(cell(199_999, &[5])).await;
    controller.modify(cell(250_000, &[6])).await;
    switch.packet(2, &frame(1, 3, 0x800));
    let status = controller.push(Action::ReconcileAndCommit, Some(with_cells(200_000))).await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
    let text =
        "cannot keep the state of the old one: cell 250000 of 'I.last_source' is in use, and there are 200000 cells";
    assert!(status.message().contains(text), "{status:?}");
    assert_eq!(read_single(&mut controller, pattern(250_000)).await, cell(250_000, &[6]), "nothing has changed");
    controller.modify(cell(250_000, &[0])).await;
    for cells in [200_000, 400_000] {
        controller.push(Action::ReconcileAndCommit, Some(with_cells(cells))).await.unwrap();
        assert_eq!(read_single(&mut controller, pattern(199_999)).await, cell(199_999, &[5]));
        assert_eq!(read_single(&mut controller, pattern(2)).await, cell(2, &[3]));
        switch.packet(2, &frame(1, 4, 0x800));
        assert_eq!(
            read_single(&mut controller, pattern(2)).await,
            cell(2, &[4]),
            "packets write to the register that is read"
        );
        switch.packet(2, &frame(1, 3, 0x800));
    }
    controller.modify(cell(399_999, &[7])).await;
    // The cells of `balance` are signed. A new program that declares them unsigned must receive their bits unchanged.
    let mut resized = with_cells(400_000);
    let balance = resized.p4info.as_mut().unwrap().registers.iter_mut().find(|register| register.size == 2).unwrap();
    let spec = balance.type_spec.as_mut().unwrap().type_spec.as_mut().unwrap();
    *spec = sluice_p4runtime::proto::p4::config::v1::p4_data_type_spec::TypeSpec::Bitstring(unsigned(8));
    controller.push(Action::ReconcileAndCommit, Some(resized)).await.unwrap();
    let pattern = p4::RegisterEntry { register_id: BALANCE, index: index(0), data: None };
    let FromRegister(value) = read_single(&mut controller, RegisterEntry(pattern)).await.into();
    assert_eq!(value, 0xff);
}

fn unsigned(bitwidth: i32) -> sluice_p4runtime::proto::p4::config::v1::P4BitstringLikeTypeSpec {
    use sluice_p4runtime::proto::p4::config::v1 as p4info;
    let bits = p4info::P4BitTypeSpec { bitwidth };
    p4info::P4BitstringLikeTypeSpec {
        type_spec: Some(p4info::p4_bitstring_like_type_spec::TypeSpec::Bit(bits)),
        ..Default::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn waiting_digests_are_sent_by_the_new_program() {
    let (switch, mut controller) = Switch::ready().await;
    let learn = p4::TableEntry { is_default_action: true, ..entry(TERNARY, vec![], direct(action(LEARN, &[]))) };
    controller.modify(TableEntry(learn)).await;
    let config = p4::digest_entry::Config { max_timeout_ns: 1 << 50, max_list_size: 2, ack_timeout_ns: 0 };
    let digest = p4::DigestEntry { digest_id: id_of("learn_t"), config: Some(config) };
    controller.insert(DigestEntry(digest)).await;
    switch.packet(1, &frame(1, 5, 0x800));
    controller.push(Action::ReconcileAndCommit, Some(with_room_for(16_385))).await.unwrap();
    switch.packet(1, &frame(1, 6, 0x800));
    let FromSwitch::Digest(list) = controller.next().await else { panic!() };
    assert_eq!(list.data.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn const_entries_are_those_of_the_new_program() {
    let (switch, mut controller) = Switch::ready().await;
    let json = String::from_utf8(JSON.to_vec()).unwrap();
    // A program with a const entry that matches 0xbee0 instead of 0xbeef.
    assert!(json.contains("\"0xbeef\""));
    let changed_json = json.replace("\"0xbeef\"", "\"0xbee0\"").into_bytes();
    let next = p4::ForwardingPipelineConfig { p4_device_config: changed_json, ..config(2) };
    assert_eq!(switch.packet(1, &frame(1, 1, 0xbeef)).len(), 1);
    controller.push(Action::ReconcileAndCommit, Some(next.clone())).await.unwrap();
    assert_eq!(switch.packet(1, &frame(1, 1, 0xbeef)), []);
    assert_eq!(switch.packet(1, &frame(1, 1, 0xbee0)).len(), 1);
    // If the saved program and the new config differ only in the cookie, `RECONCILE_AND_COMMIT` commits the saved
    // program.
    controller.push(Action::VerifyAndSave, Some(config(3))).await.unwrap();
    controller.push(Action::ReconcileAndCommit, Some(config(4))).await.unwrap();
    assert_eq!(switch.packet(1, &frame(1, 1, 0xbeef)).len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_config_keeps_the_names_of_values() {
    let (switch, mut controller) = Switch::ready().await;
    let named = translated(&strings());
    controller.push(Action::VerifyAndCommit, Some(named.clone())).await.unwrap();
    let entries = [of(b"printer", b"1"), of(b"scanner", b"2"), of(b"fax", b"3")];
    controller.insert(entries[0].clone()).await;
    controller.insert(entries[1].clone()).await;
    let cookie = config(77).cookie;
    controller.push(Action::ReconcileAndCommit, Some(p4::ForwardingPipelineConfig { cookie, ..named })).await.unwrap();
    let pattern = || TableEntry(entry(EXACT, vec![], None));
    assert_eq!(controller.read(pattern()).await, entries[..2]);
    // The switch must assign a new name a number that no earlier name has.
    controller.insert(entries[2].clone()).await;
    assert_eq!(controller.read(pattern()).await, entries);
    // The switch assigns the highest numbers first, in the order in which names are first used.
    for (last, port) in [(0xff, 1), (0xfe, 2), (0xfd, 3)] {
        let mut sent = frame(last, 1, 0x800);
        sent[..5].fill(0xff);
        assert_eq!(switch.packet(1, &sent), [(port, sent.clone())]);
    }
}
