//! Tests keys of every match kind, priorities, counts and meters, with a small program that only these tests use.

use sluice_p4runtime::proto::p4::v1 as p4;
use sluice_tofino::proto::key_field::MatchType;
use tonic::Code;

use crate::common::{Bench, call, direct, exact};
use p4::entity::Entity;
use p4::field_match::FieldMatchType;
use p4::update::Type;

const P4INFO: &str = include_str!("../p4/keys.p4info.txtpb");
const BFRT: &str = include_str!("../p4/keys.bfrt.json");
const ACL: u32 = 33_554_433;

/// Returns a rule that permits packets. `ternary` and `range` select whether the rule has these key fields.
fn rule(priority: i32, ternary: bool, range: bool) -> p4::TableEntry {
    let mut fields = vec![exact(1, &[5])];
    if ternary {
        let value = p4::field_match::Ternary { value: vec![10, 0, 0, 0], mask: vec![255, 0, 0, 0] };
        fields.push(p4::FieldMatch { field_id: 2, field_match_type: Some(FieldMatchType::Ternary(value)) });
    }
    if range {
        let value = p4::field_match::Range { low: vec![64], high: vec![1, 0] };
        fields.push(p4::FieldMatch { field_id: 3, field_match_type: Some(FieldMatchType::Range(value)) });
    }
    p4::TableEntry {
        table_id: ACL,
        r#match: fields,
        priority,
        action: direct(call(16_777_217, &[&[3]])),
        ..Default::default()
    }
}

#[tokio::test]
async fn every_match_kind_reads_back_as_written() {
    let (bench, mut controller) = Bench::with(BFRT, P4INFO, &[0]).await;
    for (priority, ternary, range) in [(1, true, true), (2, false, true), (3, true, false), (4, false, false)] {
        let rule = rule(priority, ternary, range);
        controller.insert(Entity::TableEntry(rule.clone())).await;
        let entries = controller.read(Entity::TableEntry(p4::TableEntry { action: None, ..rule.clone() })).await;
        assert_eq!(entries, [Entity::TableEntry(rule)]);
    }
    assert_eq!(bench.driver.store.lock().rows("Ingress.acl").entries.len(), 4);
}

#[tokio::test]
async fn larger_priorities_become_smaller_numbers_in_the_driver() {
    let (bench, mut controller) = Bench::with(BFRT, P4INFO, &[0]).await;
    let numbers = |bench: &Bench| {
        let store = bench.driver.store.lock();
        let rows = store.rows("Ingress.acl").entries.values();
        let numbers = rows.map(|(key, _)| match key.fields[3].match_type.as_ref().unwrap() {
            MatchType::Exact(exact) => sluice_tofino::bfrt::number(&exact.value),
            other => panic!("{other:?}"),
        });
        numbers.collect::<Vec<_>>()
    };
    controller.insert(Entity::TableEntry(rule(1, true, true))).await;
    assert_eq!(numbers(&bench), [(1 << 24) - 2]);
    controller.delete(Entity::TableEntry(rule(1, true, true))).await;
    controller.insert(Entity::TableEntry(rule((1 << 24) - 1, true, true))).await;
    assert_eq!(numbers(&bench), [0]);
    let (code, text) = controller.write(Type::Insert, Entity::TableEntry(rule(1 << 24, true, true))).await.unwrap_err();
    assert_eq!(code, Code::InvalidArgument);
    assert!(text.contains("24 bits"), "{text}");
}

#[tokio::test]
async fn entries_count_their_packets() {
    let (_bench, mut controller) = Bench::with(BFRT, P4INFO, &[0]).await;
    let counts = p4::CounterData { packet_count: 4, byte_count: 400 };
    let counted = p4::TableEntry { counter_data: Some(counts), ..rule(1, true, true) };
    controller.insert(Entity::TableEntry(counted.clone())).await;
    let pattern =
        p4::TableEntry { table_id: ACL, counter_data: Some(p4::CounterData::default()), ..Default::default() };
    assert_eq!(controller.read(Entity::TableEntry(pattern)).await, [Entity::TableEntry(counted)]);
    let table_entry = Some(p4::TableEntry { table_id: ACL, ..Default::default() });
    let counters =
        controller.read(Entity::DirectCounterEntry(p4::DirectCounterEntry { table_entry, data: None })).await;
    assert!(matches!(&counters[..], [Entity::DirectCounterEntry(entry)] if entry.data == Some(counts)), "{counters:?}");
}

#[tokio::test]
async fn byte_meters_are_written_in_kilobits() {
    let (bench, mut controller) = Bench::with(BFRT, P4INFO, &[0]).await;
    let config = Some(p4::MeterConfig { cir: 125_000, cburst: 1, pir: 250_000, pburst: 2500, eburst: 0 });
    let index = Some(p4::Index { index: 0 });
    controller
        .modify(Entity::MeterEntry(p4::MeterEntry { meter_id: 335_544_321, index, config, counter_data: None }))
        .await;
    let store = bench.driver.store.lock();
    let (_, data) = store.rows("Ingress.rate").entries.values().next().unwrap();
    let numbers =
        data.fields.iter().map(|field| sluice_tofino::bfrt::number(sluice_tofino::bfrt::bytes(field).unwrap()));
    assert_eq!(numbers.collect::<Vec<_>>(), [1000, 1, 2000, 20], "a burst that is not zero does not become zero");
}
