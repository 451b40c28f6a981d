//! Tests direct counters and meters, which belong to table entries.

use sluice_p4runtime::proto::p4::v1 as p4;
use tonic::Code;

use crate::campus::{id, limit, ready, rule};
use crate::common::{Bench, errors};
use p4::entity::Entity;
use p4::update::Type;

/// A meter of 125 kB/s with bursts of 2.5 kB. In the driver's units these are 1,000 kbit/s and 20 kbit.
const CONFIG: p4::MeterConfig = p4::MeterConfig { cir: 125_000, cburst: 2500, pir: 125_000, pburst: 2500, eburst: 0 };

/// Returns the direct meter of the entry that limits the rate of the host `last`.
fn meter(last: u8, config: Option<p4::MeterConfig>) -> Entity {
    let table_entry = Some(p4::TableEntry { action: None, ..limit(last, None) });
    Entity::DirectMeterEntry(p4::DirectMeterEntry { table_entry, config, counter_data: None })
}

/// Returns the data of each entry's meter in the driver: committed rate, committed burst, peak rate and peak burst, in
/// kbit/s and kbit. The list is empty for a meter without a configuration.
fn rates(bench: &Bench) -> Vec<Vec<u64>> {
    let store = bench.driver.store.lock();
    let rows = store.rows("Ingress.limits").entries.values();
    let number = |field| sluice_tofino::bfrt::number(sluice_tofino::bfrt::bytes(field).unwrap());
    rows.map(|(_, data)| data.fields.iter().map(number).collect()).collect()
}

#[tokio::test]
async fn an_entrys_meter_is_written_with_the_entry_and_separately() {
    let (bench, mut controller) = ready().await;
    controller.insert(Entity::TableEntry(limit(1, Some(CONFIG)))).await;
    assert_eq!(rates(&bench), [[1000, 20, 1000, 20]]);
    let pattern = p4::TableEntry { table_id: id("limits"), ..Default::default() };
    let with_meter = p4::TableEntry { meter_config: Some(p4::MeterConfig::default()), ..pattern.clone() };
    assert_eq!(controller.read(Entity::TableEntry(with_meter)).await, [Entity::TableEntry(limit(1, Some(CONFIG)))]);
    assert_eq!(controller.read(Entity::TableEntry(pattern)).await, [Entity::TableEntry(limit(1, None))]);
    assert_eq!(controller.read(meter(1, None)).await, [meter(1, Some(CONFIG))]);
    let faster = p4::MeterConfig { pir: 250_000, ..CONFIG };
    controller.modify(meter(1, Some(faster))).await;
    assert_eq!(rates(&bench), [[1000, 20, 2000, 20]]);
    assert_eq!(controller.read(Entity::DirectMeterEntry(Default::default())).await, [meter(1, Some(faster))]);
    // Without a configuration the meter passes all packets, which is the driver's default.
    controller.modify(meter(1, None)).await;
    assert_eq!(rates(&bench), [[0_u64; 0]]);
    assert_eq!(controller.read(meter(1, None)).await, [meter(1, None)]);
}

#[tokio::test]
async fn a_meter_is_undone_with_its_batch() {
    let (bench, mut controller) = ready().await;
    controller.insert(Entity::TableEntry(limit(1, Some(CONFIG)))).await;
    *bench.driver.full.lock() = Some("Ingress.limits".to_owned());
    let batch = vec![(Type::Modify, meter(1, None)), (Type::Insert, Entity::TableEntry(limit(2, None)))];
    controller.batch(p4::write_request::Atomicity::RollbackOnError, batch).await.unwrap_err();
    assert_eq!(rates(&bench), [[1000, 20, 1000, 20]]);
    assert_eq!(controller.read(meter(1, None)).await, [meter(1, Some(CONFIG))]);
}

#[tokio::test]
async fn an_entrys_counter_is_written_separately() {
    let (_bench, mut controller) = ready().await;
    controller.insert(Entity::TableEntry(rule(1, "permit", &[]))).await;
    let counter = |data| {
        let table_entry = Some(p4::TableEntry { action: None, ..rule(1, "permit", &[]) });
        Entity::DirectCounterEntry(p4::DirectCounterEntry { table_entry, data })
    };
    let counts = Some(p4::CounterData { packet_count: 3, byte_count: 300 });
    controller.modify(counter(counts)).await;
    assert_eq!(controller.read(counter(None)).await, [counter(counts)]);
    let status = controller.try_read(Entity::DirectCounterEntry(p4::DirectCounterEntry {
        table_entry: Some(p4::TableEntry { priority: 2, ..rule(1, "permit", &[]) }),
        data: None,
    }));
    assert_eq!(errors(&status.await.unwrap_err())[0].0, Code::NotFound);
}

#[tokio::test]
async fn resources_that_a_table_lacks_are_refused() {
    let (bench, mut controller) = ready().await;
    bench.driver.requests.lock().clear();
    let of_rule = Some(rule(1, "permit", &[]));
    let misplaced = p4::DirectMeterEntry { table_entry: of_rule.clone(), config: Some(CONFIG), counter_data: None };
    let cases = [
        (Entity::DirectMeterEntry(misplaced), Code::NotFound, "there is no such entry"),
        (meter(1, Some(CONFIG)), Code::NotFound, "there is no such entry"),
        (Entity::DirectMeterEntry(Default::default()), Code::InvalidArgument, "the table entry is missing"),
    ];
    for (entity, code, text) in cases {
        let refused = controller.write(Type::Modify, entity).await.unwrap_err();
        assert!(refused.0 == code && refused.1.contains(text), "{refused:?}");
    }
    let metered = p4::TableEntry { meter_config: Some(CONFIG), ..rule(1, "permit", &[]) };
    let refused = controller.write(Type::Insert, Entity::TableEntry(metered)).await.unwrap_err();
    assert!(refused.1.contains("has no direct meter"), "{refused:?}");
    let coloured = p4::TableEntry { meter_counter_data: Some(Default::default()), ..limit(1, None) };
    let refused = controller.write(Type::Insert, Entity::TableEntry(coloured)).await.unwrap_err();
    assert_eq!(refused.0, Code::Unimplemented);
    let default = Some(p4::TableEntry { table_id: id("acl"), is_default_action: true, ..Default::default() });
    let default = Entity::DirectCounterEntry(p4::DirectCounterEntry { table_entry: default, data: None });
    assert_eq!(controller.write(Type::Modify, default).await.unwrap_err().0, Code::Unimplemented);
    assert!(bench.driver.requests.lock().is_empty());
}
