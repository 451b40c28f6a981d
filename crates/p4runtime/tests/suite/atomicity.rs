//! Tests batches of which all updates or none take effect, with the atomicities `ROLLBACK_ON_ERROR` and
//! `DATAPLANE_ATOMIC`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::common::*;
use p4::entity::Entity::{
    self, ActionProfileGroup, ActionProfileMember, CounterEntry, DigestEntry, DirectCounterEntry, DirectMeterEntry,
    MeterEntry, PacketReplicationEngineEntry, RegisterEntry, TableEntry, ValueSetEntry,
};
use p4::packet_replication_engine_entry::Type as Replication;
use p4::update::Type::{Delete, Insert, Modify};
use p4::write_request::Atomicity::{DataplaneAtomic, RollbackOnError};
use sluice_p4runtime::proto::p4::v1 as p4;
use tonic::Code;

fn by_ports(port: u8, priority: i32) -> Entity {
    TableEntry(p4::TableEntry { priority, ..entry(TERNARY, vec![], direct(forward(port))) })
}

fn counted(dst: u8, port: u8) -> p4::TableEntry {
    let action = direct(action(COUNT_DIRECT, &[&[port]]));
    let meter_config = Some(p4::MeterConfig { cir: 1, cburst: 64, pir: 1, pburst: 64, eburst: 0 });
    p4::TableEntry { meter_config, ..entry(EXACT, vec![exact(1, &[dst])], action) }
}

fn key_of(entry: p4::TableEntry) -> p4::TableEntry {
    p4::TableEntry { action: None, meter_config: None, ..entry }
}

fn member(member_id: u32, port: u8) -> Entity {
    let action = Some(forward(port));
    ActionProfileMember(p4::ActionProfileMember { action_profile_id: POOL, member_id, action })
}

fn group(group_id: u32, members: &[u32]) -> Entity {
    let member = |id: &u32| p4::action_profile_group::Member { member_id: *id, weight: 2, watch_kind: None };
    let members = members.iter().map(member).collect();
    ActionProfileGroup(p4::ActionProfileGroup { action_profile_id: POOL, group_id, members, max_size: 8 })
}

fn to_group(dst: u8, group: u32) -> Entity {
    let action = Some(p4::TableAction { r#type: Some(p4::table_action::Type::ActionProfileGroupId(group)) });
    TableEntry(entry(POOL_TABLE, vec![exact(1, &[dst])], action))
}

fn replicas(ports: &[u8]) -> Vec<p4::Replica> {
    let port = |port: &u8| Some(p4::replica::PortKind::Port(vec![*port]));
    ports.iter().map(|number| p4::Replica { port_kind: port(number), ..Default::default() }).collect()
}

fn multicast(id: u32, ports: &[u8]) -> Entity {
    let group = p4::MulticastGroupEntry { multicast_group_id: id, replicas: replicas(ports), metadata: b"m".to_vec() };
    let kind = Some(Replication::MulticastGroupEntry(group));
    PacketReplicationEngineEntry(p4::PacketReplicationEngineEntry { r#type: kind })
}

fn session(id: u32, ports: &[u8]) -> Entity {
    let session = p4::CloneSessionEntry { session_id: id, replicas: replicas(ports), ..Default::default() };
    let kind = Some(Replication::CloneSessionEntry(session));
    PacketReplicationEngineEntry(p4::PacketReplicationEngineEntry { r#type: kind })
}

fn counter(cell: Option<i64>, packet_count: i64) -> Entity {
    let data = Some(p4::CounterData { byte_count: 0, packet_count });
    CounterEntry(p4::CounterEntry { counter_id: BY_PORT, index: cell.and_then(index), data })
}

fn meter(cell: Option<i64>, rate: i64) -> Entity {
    let config = Some(p4::MeterConfig { cir: rate, cburst: 2, pir: rate, pburst: 2, eburst: 0 });
    MeterEntry(p4::MeterEntry { meter_id: LIMIT, index: cell.and_then(index), config, counter_data: None })
}

fn register(cell: Option<i64>, value: u8) -> Entity {
    RegisterEntry(p4::RegisterEntry { register_id: SEEN, index: cell.and_then(index), data: bits(&[value]) })
}

fn value_set(value: u8) -> Entity {
    let members = vec![p4::ValueSetMember { r#match: vec![exact(1, &[value])] }];
    ValueSetEntry(p4::ValueSetEntry { value_set_id: LABELLED, members })
}

fn digest(max_list_size: i32) -> Entity {
    let config = Some(p4::digest_entry::Config { max_timeout_ns: 1, max_list_size, ack_timeout_ns: 2 });
    DigestEntry(p4::DigestEntry { digest_id: id_of("learn_t"), config })
}

fn default_of_ternary(port: u8) -> Entity {
    TableEntry(p4::TableEntry { is_default_action: true, ..entry(TERNARY, vec![], direct(forward(port))) })
}

/// Creates entities of every kind, and runs packets that change their counts, meter tokens and register cells.
async fn prepare(switch: &Switch, controller: &mut Controller) {
    let state = [
        by_ports(2, 1),
        TableEntry(counted(9, 3)),
        TableEntry(counted(8, 3)),
        member(1, 1),
        member(2, 2),
        group(1, &[1, 2]),
        group(2, &[2]),
        to_group(5, 1),
        multicast(6, &[2, 3]),
        multicast(7, &[2]),
        session(6, &[2]),
        session(7, &[4]),
        digest(3),
    ];
    for entity in state {
        controller.insert(entity).await;
    }
    for entity in [counter(Some(2), 40), meter(Some(2), 5), register(Some(3), 7), value_set(4), default_of_ternary(1)] {
        controller.modify(entity).await;
    }
    for dst in [5, 8, 9] {
        switch.packet(1, &frame(dst, 1, 0x800));
    }
}

/// Returns valid updates of every kind of entity, with every operation that the kind permits.
fn changes() -> Vec<p4::Update> {
    let counts = p4::CounterData { byte_count: 1, packet_count: 2 };
    let direct_counter = p4::DirectCounterEntry { table_entry: Some(key_of(counted(8, 3))), data: Some(counts) };
    let config = Some(p4::MeterConfig { cir: 9, cburst: 9, pir: 9, pburst: 9, eburst: 0 });
    let direct_meter = p4::DirectMeterEntry { table_entry: Some(key_of(counted(8, 3))), config, counter_data: None };
    vec![
        update(Delete, by_ports(2, 1)),
        update(Insert, by_ports(4, 2)),
        update(Modify, by_ports(5, 2)),
        update(Modify, TableEntry(counted(9, 4))),
        update(Modify, DirectCounterEntry(direct_counter)),
        update(Modify, DirectMeterEntry(direct_meter)),
        update(Delete, TableEntry(counted(8, 3))),
        update(Insert, TableEntry(counted(7, 3))),
        update(Modify, default_of_ternary(8)),
        update(Delete, to_group(5, 1)),
        update(Delete, group(1, &[])),
        update(Delete, member(1, 1)),
        update(Insert, member(3, 3)),
        update(Modify, member(2, 7)),
        update(Modify, group(2, &[3])),
        update(Insert, group(3, &[2, 3])),
        update(Insert, to_group(6, 3)),
        update(Modify, multicast(6, &[1])),
        update(Delete, multicast(7, &[])),
        update(Insert, multicast(8, &[1])),
        update(Modify, session(6, &[1])),
        update(Delete, session(7, &[])),
        update(Insert, session(8, &[1])),
        update(Modify, counter(Some(2), 1)),
        update(Modify, counter(None, 3)),
        update(Modify, meter(Some(2), 9)),
        update(Modify, meter(None, 7)),
        update(Modify, register(Some(3), 1)),
        update(Modify, register(None, 2)),
        update(Modify, value_set(9)),
        update(Modify, digest(5)),
        update(Delete, digest(0)),
    ]
}

/// Reads all entities, including the counts and meter configurations of table entries. Of the register arrays, only
/// `SEEN` is read.
async fn everything(controller: &mut Controller) -> Vec<Entity> {
    let tables = p4::TableEntry {
        counter_data: Some(p4::CounterData::default()),
        meter_config: Some(p4::MeterConfig::default()),
        ..Default::default()
    };
    let replication = |kind| PacketReplicationEngineEntry(p4::PacketReplicationEngineEntry { r#type: Some(kind) });
    let patterns = vec![
        TableEntry(tables),
        TableEntry(p4::TableEntry { is_default_action: true, ..Default::default() }),
        ActionProfileMember(p4::ActionProfileMember::default()),
        ActionProfileGroup(p4::ActionProfileGroup::default()),
        CounterEntry(p4::CounterEntry::default()),
        MeterEntry(p4::MeterEntry::default()),
        RegisterEntry(p4::RegisterEntry { register_id: SEEN, ..Default::default() }),
        ValueSetEntry(p4::ValueSetEntry::default()),
        DigestEntry(p4::DigestEntry::default()),
        replication(Replication::MulticastGroupEntry(p4::MulticastGroupEntry::default())),
        replication(Replication::CloneSessionEntry(p4::CloneSessionEntry::default())),
    ];
    controller.try_read(patterns).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_update_undoes_the_whole_batch() {
    let (switch, mut controller) = Switch::ready().await;
    prepare(&switch, &mut controller).await;
    let before = everything(&mut controller).await;
    for atomicity in [RollbackOnError, DataplaneAtomic] {
        // The switch refuses one update of each batch: the first update of the first batch, the second update of the
        // second batch, and so on.
        for length in 0..=changes().len() {
            let mut updates = changes();
            updates.insert(length, update(Delete, by_ports(1, 77)));
            let status = controller.write_batch(atomicity as i32, updates).await.unwrap_err();
            assert!(status.message().contains("no entry with this key"), "{}", status.message());
            let errors = errors(&status);
            for (place, (code, text)) in errors.iter().enumerate() {
                let expected = match place.cmp(&length) {
                    std::cmp::Ordering::Less => (Code::Aborted, "undone, because update"),
                    std::cmp::Ordering::Equal => (Code::NotFound, "table I.ternary_t"),
                    std::cmp::Ordering::Greater => (Code::Aborted, "not attempted, because update"),
                };
                assert_eq!(*code, expected.0, "{place} of {length}: {text}");
                assert!(text.contains(expected.1), "{place} of {length}: {text}");
            }
            assert_eq!(errors.len(), changes().len() + 1);
            assert_eq!(everything(&mut controller).await, before, "after {length} updates");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_refusal_all_updates_are_made() {
    let (switch, mut controller) = Switch::ready().await;
    prepare(&switch, &mut controller).await;
    controller.write_batch(DataplaneAtomic as i32, changes()).await.unwrap();
    let atomic = everything(&mut controller).await;
    let (switch, mut controller) = Switch::ready().await;
    prepare(&switch, &mut controller).await;
    controller.write_all(changes()).await.unwrap();
    assert_eq!(atomic, everything(&mut controller).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn undone_entries_keep_their_age_and_meters_their_tokens() {
    let (switch, mut controller) = Switch::ready().await;
    let from = |port: u8| {
        let fields = match port {
            2 => vec![ternary(1, &[1], &[0xff])],
            _ => vec![ternary(1, &[0, 0, 1, 0, 0, 1], &[0, 0, 1, 0, 0, 0xff])],
        };
        TableEntry(p4::TableEntry { priority: 5, ..entry(TERNARY, fields, direct(forward(port))) })
    };
    // The packet below matches both inserted entries. The switch uses the older entry.
    controller.insert(from(2)).await;
    let mut source_one = frame(1, 1, 0x800);
    source_one[8] = 1;
    controller.insert(from(3)).await;
    controller.modify(meter(Some(1), 0)).await;
    assert_eq!(switch.packet(1, &source_one)[0].0, 2);
    assert_eq!(switch.packet(1, &source_one).len(), 1);
    // The two packets have used the meter's two tokens, and the meter's rate is 0. The failed batch must not refill the
    // meter.
    assert_eq!(switch.packet(1, &source_one).len(), 0);
    let refused = vec![
        update(Delete, from(2)),
        update(Modify, meter(None, 100)),
        update(Modify, meter(Some(1), 0)),
        update(Delete, by_ports(1, 77)),
    ];
    controller.write_batch(RollbackOnError as i32, refused).await.unwrap_err();
    assert_eq!(switch.packet(1, &source_one).len(), 0);
    assert_eq!(switch.packet(2, &source_one)[0].0, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_packet_sees_a_batch_completely_or_not_at_all() {
    let (switch, mut controller) = Switch::ready().await;
    controller.insert(by_ports(2, 1)).await;
    let switch = Arc::new(switch);
    let done = Arc::new(AtomicBool::new(false));
    let traffic = std::thread::spawn({
        let (switch, done) = (Arc::clone(&switch), Arc::clone(&done));
        move || {
            let mut by_port = [0u64; 2];
            while !done.load(Relaxed) {
                let out = switch.packet(1, &frame(1, 1, 0x800));
                // A packet that is processed between two updates of the batch would match no entry and be dropped.
                assert_eq!(out.len(), 1, "after {by_port:?} packets");
                by_port[usize::from(out[0].0 == 3)] += 1;
            }
            by_port
        }
    });
    for round in 0..100 {
        let (old, new) =
            if round % 2 == 0 { (by_ports(2, 1), by_ports(3, 2)) } else { (by_ports(3, 2), by_ports(2, 1)) };
        let mut updates = vec![update(Delete, old)];
        updates.extend((0..200).map(|value| update(Modify, register(Some(15), value))));
        updates.push(update(Insert, new));
        if round % 10 == 9 {
            updates.push(update(Delete, by_ports(1, 77)));
            controller.write_batch(DataplaneAtomic as i32, updates).await.unwrap_err();
            // The failed batch was reverted. The test replaces the entry again, without the update that was refused.
            let swap = vec![update(Delete, by_ports(3, 2)), update(Insert, by_ports(2, 1))];
            controller.write_batch(DataplaneAtomic as i32, swap).await.unwrap();
        } else {
            controller.write_batch(DataplaneAtomic as i32, updates).await.unwrap();
        }
    }
    done.store(true, Relaxed);
    let by_port = traffic.join().unwrap();
    assert!(by_port[0] > 0 && by_port[1] > 0, "{by_port:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn packets_run_between_the_updates_of_a_batch_with_rollback() {
    let (switch, mut controller) = Switch::ready().await;
    controller.insert(by_ports(2, 1)).await;
    let switch = Arc::new(switch);
    let started = std::time::Instant::now();
    let saw_change = Arc::new(AtomicBool::new(false));
    let traffic = std::thread::spawn({
        let (switch, saw_change) = (Arc::clone(&switch), Arc::clone(&saw_change));
        move || {
            while !saw_change.load(Relaxed) && started.elapsed().as_secs() < 60 {
                let out = switch.packet(1, &frame(1, 1, 0x800));
                assert_eq!(out.len(), 1);
                saw_change.fetch_or(out[0].0 == 3, Relaxed);
            }
        }
    });
    let to_port_3_and = |last, register_updates| {
        let mut updates = vec![update(Modify, by_ports(3, 1))];
        updates.extend((0..register_updates).map(|value| update(Modify, register(Some(15), value as u8))));
        updates.push(last);
        updates
    };
    while !traffic.is_finished() {
        let and_back = to_port_3_and(update(Modify, by_ports(2, 1)), 20_000);
        controller.write_batch(RollbackOnError as i32, and_back).await.unwrap();
    }
    traffic.join().unwrap();
    assert!(saw_change.load(Relaxed), "packets waited for the whole of every batch");
    // This batch has more updates than the switch applies or reverts before it unlocks the engine.
    let refused = to_port_3_and(update(Delete, by_ports(1, 77)), 150);
    controller.write_batch(RollbackOnError as i32, refused).await.unwrap_err();
    assert_eq!(switch.packet(1, &frame(1, 1, 0x800))[0].0, 2, "undone");
}

/// Returns the peak memory of this process in MiB.
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() >> 10
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_saves_an_array_once_however_often_it_writes_all_cells() {
    let (_switch, mut controller) = Switch::ready().await;
    let of = |cell: Option<i64>, value: u8| {
        let entry = p4::RegisterEntry { register_id: LAST_SOURCE, index: cell.and_then(index), data: bits(&[value]) };
        RegisterEntry(entry)
    };
    controller.modify(of(None, 3)).await;
    controller.modify(of(Some(299_999), 4)).await;
    let before = peak_memory();
    let all_cells = (0..600).map(|value| update(Modify, of(None, value as u8)));
    let other_cell = update(Modify, of(Some(1), 9));
    let refused = update(Delete, by_ports(1, 77));
    let updates = all_cells.chain([other_cell, refused]).collect();
    controller.write_batch(RollbackOnError as i32, updates).await.unwrap_err();
    // If each of the 600 updates saved the array, its 300,000 cells of 6 bytes would need 1,030 MiB.
    assert!(peak_memory() - before < 300, "{before} MiB before, {} after", peak_memory());
    for (cell, value) in [(0, 3), (1, 3), (299_999, 4)] {
        let pattern = p4::RegisterEntry { register_id: LAST_SOURCE, index: index(cell), data: None };
        assert_eq!(controller.read(RegisterEntry(pattern)).await, [of(Some(cell), value)]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_atomicity_that_does_not_exist_is_refused() {
    let (_switch, mut controller) = Switch::ready().await;
    let status = controller.write_batch(3, vec![update(Insert, by_ports(2, 1))]).await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
    assert_eq!(status.message(), "the atomicity 3 is unknown; give one that P4Runtime has");
}
