//! Tests multicast groups, clone sessions and value sets.

use sluice_p4runtime::proto::p4::v1 as p4;
use sluice_tofino::proto::{DataField, TableData, data_field::Value};
use tonic::Code;

use crate::campus::{ethertypes, group, host, ready, session};
use crate::common::{Bench, Controller};
use p4::entity::Entity;
use p4::update::Type;
use p4::write_request::Atomicity;

/// Returns the numbers in a data field, which contains a list, a single number or a flag (0 or 1). The result is empty
/// if there is no such field.
fn numbers(data: &TableData, field_id: u32) -> Vec<u32> {
    match data.fields.iter().find(|field| field.field_id == field_id) {
        Some(DataField { value: Some(Value::IntArrVal(list)), .. }) => list.val.clone(),
        Some(DataField { value: Some(Value::Stream(bytes)), .. }) => vec![sluice_tofino::bfrt::number(bytes) as u32],
        Some(DataField { value: Some(Value::BoolVal(flag)), .. }) => vec![u32::from(*flag)],
        _ => Vec::new(),
    }
}

/// The instance and ports of a node.
type Node = (u32, Vec<u32>);

/// Returns the ids of the groups in the driver, each with its nodes.
fn groups(bench: &Bench) -> Vec<(u32, Vec<Node>)> {
    let store = bench.driver.store.lock();
    let node = |id: &u32| {
        let nodes = &store.rows("node").entries;
        let node = nodes.values().find(|(key, _)| crate::stand_in::store::key_number(key) == *id);
        let (_, data) = node.expect("an existing node");
        (numbers(data, 1)[0], numbers(data, 3))
    };
    let rows = store.rows("mgid").entries.values();
    rows.map(|(key, data)| {
        (crate::stand_in::store::key_number(key), numbers(data, 1).iter().map(node).collect::<Vec<_>>())
    })
    .collect()
}

/// Returns the number of entries of a table, without the mirror session in which the gateway stores its mark.
fn count(bench: &Bench, table: &str) -> usize {
    let store = bench.driver.store.lock();
    let is_mark = |key| table == "cfg" && crate::stand_in::store::key_number(key) == 1023;
    store.rows(table).entries.values().filter(|(key, _)| !is_mark(key)).count()
}

async fn replication_entries(controller: &mut Controller) -> Vec<Entity> {
    let mut entries = controller.read(group(0, &[])).await;
    entries.extend(controller.read(session(0, &[], 0)).await);
    entries
}

#[tokio::test]
async fn a_group_has_a_node_per_instance_and_changes_in_one_update() {
    let (bench, mut controller) = ready().await;
    let list = [(2, 5), (3, 5), (4, 6)];
    controller.insert(group(7, &list)).await;
    assert_eq!(groups(&bench), [(7, vec![(5, vec![2, 3]), (6, vec![4])])]);
    assert_eq!(replication_entries(&mut controller).await, [group(7, &list)]);
    controller.modify(group(7, &[(1, 0)])).await;
    assert_eq!(groups(&bench), [(7, vec![(0, vec![1])])]);
    assert_eq!(count(&bench, "node"), 1, "the old nodes are deleted");
    controller.delete(group(7, &[])).await;
    assert_eq!((count(&bench, "mgid"), count(&bench, "node")), (0, 0));
    assert!(replication_entries(&mut controller).await.is_empty());
}

#[tokio::test]
async fn a_session_sends_to_a_port_or_to_a_separate_group() {
    let (bench, mut controller) = ready().await;
    let data = |bench: &Bench| bench.driver.store.lock().rows("cfg").entries.values().next().unwrap().1.clone();
    controller.insert(session(5, &[(3, 0)], 128)).await;
    assert_eq!([7, 8, 10, 23, 14].map(|id| numbers(&data(&bench), id)), [vec![3], vec![1], vec![2], vec![128], vec![]]);
    controller.modify(session(5, &[(3, 0), (4, 1)], 0)).await;
    assert_eq!([7, 14, 15, 23].map(|id| numbers(&data(&bench), id)), [vec![], vec![0xfc05], vec![1], vec![16_383]]);
    assert_eq!(groups(&bench), [(0xfc05, vec![(0, vec![3]), (1, vec![4])])]);
    assert_eq!(replication_entries(&mut controller).await, [session(5, &[(3, 0), (4, 1)], 0)]);
    controller.modify(session(5, &[(9, 0)], 64)).await;
    assert_eq!(numbers(&data(&bench), 7), [9]);
    assert_eq!((count(&bench, "mgid"), count(&bench, "node")), (0, 0), "the unused group is deleted");
    controller.modify(session(5, &[(9, 3)], 64)).await;
    controller.delete(session(5, &[], 0)).await;
    assert_eq!(["cfg", "mgid", "node"].map(|table| count(&bench, table)), [0, 0, 0]);
}

#[tokio::test]
async fn replication_and_value_sets_are_undone_with_their_batch() {
    let (bench, mut controller) = ready().await;
    for entity in [group(1, &[(2, 0)]), group(2, &[(3, 0), (4, 1)]), session(9, &[(5, 1)], 0)] {
        controller.insert(entity).await;
    }
    controller.modify(ethertypes(&[0x88b6, 0x88b7])).await;
    let before = (replication_entries(&mut controller).await, groups(&bench));
    *bench.driver.full.lock() = Some("Ingress.hosts".to_owned());
    let batch = vec![
        (Type::Modify, group(1, &[(7, 7)])),
        (Type::Delete, group(2, &[])),
        (Type::Insert, group(3, &[(1, 1)])),
        (Type::Modify, session(9, &[(6, 0)], 0)),
        (Type::Insert, session(10, &[(1, 0), (2, 0)], 0)),
        (Type::Modify, ethertypes(&[0x88b7, 0x88b8])),
        (Type::Insert, Entity::TableEntry(host(1, 0))),
    ];
    controller.batch(Atomicity::RollbackOnError, batch).await.unwrap_err();
    assert_eq!((replication_entries(&mut controller).await, groups(&bench)), before);
    assert_eq!((count(&bench, "cfg"), count(&bench, "node")), (1, 4));
    assert_eq!(controller.read(ethertypes(&[])).await, [ethertypes(&[0x88b6, 0x88b7])]);
    assert_eq!(count(&bench, "IngressParser.ipv4_types"), 2);
}

#[tokio::test]
async fn requests_beyond_the_traffic_manager_are_refused_with_the_reason() {
    let (bench, mut controller) = ready().await;
    bench.driver.requests.lock().clear();
    let mut with_backup = group(1, &[(2, 0)]);
    let Entity::PacketReplicationEngineEntry(entry) = &mut with_backup else { panic!() };
    let Some(p4::packet_replication_engine_entry::Type::MulticastGroupEntry(inner)) = &mut entry.r#type else {
        panic!()
    };
    inner.replicas[0].backup_replicas = vec![p4::BackupReplica { port: vec![3], instance: 0 }];
    for (entity, code, text) in [
        (with_backup, Code::Unimplemented, "leave backup_replicas out"),
        (group(0, &[]), Code::InvalidArgument, "ids begin at 1"),
        (group(0xfc00, &[]), Code::InvalidArgument, "1 to 64511"),
        (group(1, &[(512, 0)]), Code::InvalidArgument, "no port 512"),
        (group(1, &[(2, 0), (2, 0)]), Code::InvalidArgument, "given twice"),
        (session(1016, &[(2, 0)], 0), Code::InvalidArgument, "1 to 1015"),
        (session(1, &[(2, 0)], 20_000), Code::InvalidArgument, "at most 16383 bytes"),
    ] {
        let refused = controller.write(Type::Insert, entity).await.unwrap_err();
        assert!(refused.0 == code && refused.1.contains(text), "{refused:?}");
    }
    assert_eq!(controller.write(Type::Modify, group(1, &[])).await.unwrap_err().0, Code::NotFound);
    assert!(bench.driver.requests.lock().is_empty());
}

#[tokio::test]
async fn a_push_clears_groups_sessions_and_value_sets() {
    let (bench, mut controller) = ready().await;
    controller.insert(group(1, &[(2, 0)])).await;
    controller.insert(session(1, &[(2, 0), (3, 0)], 0)).await;
    controller.modify(ethertypes(&[1])).await;
    let action = p4::set_forwarding_pipeline_config_request::Action::VerifyAndCommit;
    controller.push(action, Some(bench.config())).await.unwrap();
    assert_eq!(["cfg", "mgid", "node", "IngressParser.ipv4_types"].map(|table| count(&bench, table)), [0; 4]);
    assert!(replication_entries(&mut controller).await.is_empty());
}

#[tokio::test]
async fn only_changed_members_of_a_value_set_are_written() {
    let (bench, mut controller) = ready().await;
    assert_eq!(controller.read(ethertypes(&[])).await, [ethertypes(&[])]);
    controller.modify(ethertypes(&[0x801, 0x802, 0x803, 0x804])).await;
    bench.driver.requests.lock().clear();
    // The set is full, so the gateway must delete the removed member before it inserts the new one.
    controller.modify(ethertypes(&[0x802, 0x803, 0x804, 0x805])).await;
    assert_eq!(*bench.driver.requests.lock(), [2]);
    assert_eq!(controller.read(ethertypes(&[])).await, [ethertypes(&[0x802, 0x803, 0x804, 0x805])]);
    let refused = controller.write(Type::Modify, ethertypes(&[0x801, 0x802, 0x803, 0x804, 0x805])).await.unwrap_err();
    assert_eq!(refused.0, Code::ResourceExhausted, "{refused:?}");
    let refused = controller.write(Type::Modify, ethertypes(&[0x801, 0x801])).await.unwrap_err();
    assert_eq!(refused.0, Code::AlreadyExists, "{refused:?}");
    controller.modify(ethertypes(&[])).await;
    assert_eq!(count(&bench, "IngressParser.ipv4_types"), 0);
}
