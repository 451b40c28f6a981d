//! Tests idle timeouts: the gateway sets them in the driver, reports idle entries to controllers, and returns the
//! timeouts to readers.

use sluice_p4runtime::proto::p4::v1 as p4;
use sluice_tofino::proto::{TableKey, data_field};
use tonic::Code;

use crate::campus::{P4INFO, ethertypes, group, host, id, ready, rule, session};
use crate::common::{Bench, Controller, FromSwitch};
use crate::stand_in::{CAMPUS, Driver};
use p4::entity::Entity;
use p4::set_forwarding_pipeline_config_request::Action;
use p4::update::Type;

const SECOND: i64 = 1_000_000_000;

/// Returns the keys of the hosts in the driver, with their times to live in milliseconds.
fn aging(bench: &Bench) -> Vec<(TableKey, Option<u64>)> {
    let store = bench.driver.store.lock();
    let field_id = store.table("Ingress.hosts").data_id("$ENTRY_TTL").unwrap();
    let rows = store.rows("Ingress.hosts").entries.values();
    let time = |data: &sluice_tofino::proto::TableData| {
        data.fields.iter().find(|field| field.field_id == field_id).map(|field| match &field.value {
            Some(data_field::Value::Stream(bytes)) => sluice_tofino::bfrt::number(bytes),
            other => panic!("{other:?}"),
        })
    };
    rows.map(|(key, data)| (key.clone(), time(data))).collect()
}

async fn next(controller: &mut Controller) -> p4::IdleTimeoutNotification {
    match controller.next().await {
        FromSwitch::IdleTimeoutNotification(notification) => notification,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn idle_entries_are_reported_as_they_were_written() {
    let (bench, mut controller) = ready().await;
    let silent = p4::TableEntry { metadata: vec![7], controller_metadata: 8, ..host(1, 3 * SECOND) };
    controller.insert(Entity::TableEntry(silent.clone())).await;
    let (key, time) = aging(&bench).remove(0);
    assert_eq!(time, Some(3000), "the driver's unit is milliseconds");
    bench.driver.report_age("Ingress.hosts", key.clone(), false).await;
    bench.driver.report_age("Ingress.hosts", key.clone(), true).await;
    assert_eq!(next(&mut controller).await.table_entry, [p4::TableEntry { action: None, ..silent.clone() }]);
    // An entry that was deleted before the driver's notification must not be reported.
    controller.delete(Entity::TableEntry(silent)).await;
    controller.insert(Entity::TableEntry(host(2, SECOND))).await;
    bench.driver.report_age("Ingress.hosts", key, true).await;
    bench.driver.report_age("Ingress.hosts", aging(&bench).remove(0).0, true).await;
    assert_eq!(next(&mut controller).await.table_entry, [p4::TableEntry { action: None, ..host(2, SECOND) }]);
}

#[tokio::test]
async fn idle_entries_are_reported_after_a_reconnection() {
    let (bench, mut controller) = ready().await;
    controller.insert(Entity::TableEntry(host(1, SECOND))).await;
    bench.driver.hang_up();
    bench.driver.connected(2).await;
    bench.gateway.connected().await;
    assert_eq!(*bench.driver.requests.lock(), [1, 1], "the entry, and the table's idle timeouts");
    bench.driver.report_age("Ingress.hosts", aging(&bench).remove(0).0, true).await;
    assert_eq!(next(&mut controller).await.table_entry, [p4::TableEntry { action: None, ..host(1, SECOND) }]);
}

#[tokio::test]
async fn a_loaded_program_has_idle_timeouts_groups_sessions_and_value_sets() {
    let bench = Bench::with_settings(Driver::new(CAMPUS), P4INFO, |settings| settings.reload = true).await;
    let mut controller = bench.controller(10).await;
    for loads in 1..=2 {
        controller.push(Action::VerifyAndCommit, Some(bench.config())).await.unwrap();
        assert_eq!(bench.driver.loads.lock().len(), loads);
        controller.insert(Entity::TableEntry(host(1, SECOND))).await;
        controller.insert(group(1, &[(2, 0)])).await;
        controller.insert(session(1, &[(2, 0), (3, 0)], 0)).await;
        controller.modify(ethertypes(&[1])).await;
        bench.driver.report_age("Ingress.hosts", aging(&bench).remove(0).0, true).await;
        assert_eq!(next(&mut controller).await.table_entry, [p4::TableEntry { action: None, ..host(1, SECOND) }]);
    }
}

#[tokio::test]
async fn timeouts_are_stored_changed_and_read_with_the_time_since_the_last_hit() {
    let (bench, mut controller) = ready().await;
    controller.insert(Entity::TableEntry(host(1, 5 * SECOND / 2))).await;
    let pattern = || {
        let time_since_last_hit = Some(p4::table_entry::IdleTimeout::default());
        Entity::TableEntry(p4::TableEntry { table_id: id("hosts"), time_since_last_hit, ..Default::default() })
    };
    let elapsed = async |controller: &mut Controller| match controller.read(pattern()).await.remove(0) {
        Entity::TableEntry(entry) => (entry.idle_timeout_ns, entry.time_since_last_hit.map(|time| time.elapsed_ns)),
        other => panic!("{other:?}"),
    };
    assert_eq!(elapsed(&mut controller).await, (5 * SECOND / 2, Some(0)));
    // In the driver, 900 ms of the entry's timeout of 2,500 ms now remain.
    {
        let mut store = bench.driver.store.lock();
        let field_id = store.table("Ingress.hosts").data_id("$ENTRY_TTL").unwrap();
        store.set_field("Ingress.hosts", sluice_tofino::bfrt::stream(field_id, 900_u32.to_be_bytes()));
    }
    assert_eq!(elapsed(&mut controller).await.1, Some(1_600_000_000));
    // A timeout below the driver's minimum is rounded up in the driver. A read returns the timeout that the client
    // wrote.
    controller.modify(Entity::TableEntry(host(1, 1))).await;
    assert_eq!(aging(&bench)[0].1, Some(1000));
    assert_eq!(controller.entries_of(id("hosts")).await, [host(1, 1)]);
    controller.modify(Entity::TableEntry(host(1, 0))).await;
    assert_eq!(aging(&bench)[0].1, None, "without a timeout an entry does not age");
    assert_eq!(elapsed(&mut controller).await, (0, None));
}

#[tokio::test]
async fn an_undone_batch_leaves_the_old_timeout() {
    let (bench, mut controller) = ready().await;
    controller.insert(Entity::TableEntry(host(1, 4 * SECOND))).await;
    *bench.driver.full.lock() = Some("Ingress.hosts".to_owned());
    let batch =
        vec![(Type::Modify, Entity::TableEntry(host(1, 9 * SECOND))), (Type::Insert, Entity::TableEntry(host(2, 0)))];
    controller.batch(p4::write_request::Atomicity::RollbackOnError, batch).await.unwrap_err();
    assert_eq!(aging(&bench).iter().map(|(_, time)| *time).collect::<Vec<_>>(), [Some(4000)]);
    assert_eq!(controller.entries_of(id("hosts")).await, [host(1, 4 * SECOND)]);
}

#[tokio::test]
async fn tables_without_idle_timeouts_refuse_them() {
    let (_bench, mut controller) = ready().await;
    let timed = p4::TableEntry { idle_timeout_ns: SECOND, ..rule(1, "permit", &[]) };
    let (code, text) = controller.write(Type::Insert, Entity::TableEntry(timed)).await.unwrap_err();
    assert_eq!(code, Code::InvalidArgument);
    assert!(text.contains("do not support idle timeout"), "{text}");
    let time_since_last_hit = Some(p4::table_entry::IdleTimeout::default());
    let pattern = p4::TableEntry { table_id: id("acl"), time_since_last_hit, ..Default::default() };
    let status = controller.try_read(Entity::TableEntry(pattern)).await.unwrap_err();
    assert!(crate::common::errors(&status)[0].1.contains("has no idle timeouts"), "{status:?}");
    let negative = controller.write(Type::Insert, Entity::TableEntry(host(1, -1))).await.unwrap_err();
    assert!(negative.1.contains("idle_timeout_ns is negative"), "{negative:?}");
}

#[tokio::test]
async fn idle_timeouts_are_enabled_by_each_push() {
    let (bench, mut controller) = ready().await;
    assert!(P4INFO.contains("idle_timeout_behavior: NOTIFY_CONTROL"));
    controller.insert(Entity::TableEntry(host(1, SECOND))).await;
    let action = p4::set_forwarding_pipeline_config_request::Action::VerifyAndCommit;
    controller.push(action, Some(bench.config())).await.unwrap();
    assert!(aging(&bench).is_empty());
    controller.insert(Entity::TableEntry(host(1, SECOND))).await;
    assert_eq!(aging(&bench)[0].1, Some(1000));
}
