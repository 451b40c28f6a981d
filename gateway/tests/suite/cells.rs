//! Tests reads and writes of the cells of registers, counters and meters through the gateway.

use sluice_p4runtime::proto::p4::v1 as p4;
use tonic::Code;

use crate::common::{Bench, Controller, P4INFO, errors, id, server};
use crate::stand_in::{BFRT, store::PIPES};
use p4::entity::Entity;
use p4::p4_data::Data;
use p4::update::Type;
use p4::write_request::Atomicity;

const SYN: &str = "SluiceIngress.ledger.ledger_syn";
const KEY_1: &str = "SluiceIngress.connections.key_1.pin_key_1";

fn bits(value: &[u8]) -> p4::P4Data {
    p4::P4Data { data: Some(Data::Bitstring(value.to_vec())) }
}

fn pair(first: &[u8], second: &[u8]) -> p4::P4Data {
    p4::P4Data { data: Some(Data::Struct(p4::P4StructLike { members: vec![bits(first), bits(second)] })) }
}

fn cell(register: &str, index: Option<i64>, data: Option<p4::P4Data>) -> Entity {
    let index = index.map(|index| p4::Index { index });
    Entity::RegisterEntry(p4::RegisterEntry { register_id: id(register), index, data })
}

async fn value(controller: &mut Controller, register: &str, index: i64) -> Data {
    match controller.read(cell(register, Some(index), None)).await.remove(0) {
        Entity::RegisterEntry(entry) => entry.data.unwrap().data.unwrap(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn cells_are_added_up_over_the_configured_pipes() {
    for (pipes, sum) in [(vec![0], 1_u8), (vec![1, 3], 6), (vec![0, 1, 2, 3], 10)] {
        let (bench, mut controller) = Bench::with(BFRT, P4INFO, &pipes).await;
        bench.driver.store.lock().set_cell(SYN, 5, &[[1, 2, 3, 4]]);
        assert_eq!(value(&mut controller, "ledger_syn", 5).await, Data::Bitstring(vec![sum]), "pipes {pipes:?}");
    }
}

#[tokio::test]
async fn sums_that_overflow_wrap_as_in_one_pipe() {
    let (bench, mut controller) = Bench::with(BFRT, P4INFO, &[0, 1]).await;
    bench.driver.store.lock().set_cell(SYN, 5, &[[u32::MAX, 3, 0, 0]]);
    assert_eq!(value(&mut controller, "ledger_syn", 5).await, Data::Bitstring(vec![2]));
}

#[tokio::test]
async fn pairs_have_the_order_of_p4info() {
    let (bench, mut controller) = Bench::ready().await;
    bench.driver.store.lock().set_cell(KEY_1, 9, &[[7; PIPES], [8; PIPES]]);
    assert_eq!(Some(value(&mut controller, "pin_key_1", 9).await), pair(&[7], &[8]).data);
    controller.modify(cell("pin_key_1", Some(3), Some(pair(&[1, 2], &[3])))).await;
    assert_eq!(Some(value(&mut controller, "pin_key_1", 3).await), pair(&[1, 2], &[3]).data);
    let (code, text) = controller.write(Type::Modify, cell("pin_key_1", Some(3), Some(bits(&[1])))).await.unwrap_err();
    assert_eq!(code, Code::InvalidArgument, "{text}");
}

#[tokio::test]
async fn a_register_is_read_in_several_messages_and_cleared_in_one_update() {
    let (bench, mut controller) = Bench::ready().await;
    bench.driver.store.lock().set_cell("SluiceIngress.destinations.clients.admitted_stamps", 65_535, &[[9; PIPES]]);
    let cells = controller.read(cell("admitted_stamps", None, None)).await;
    assert_eq!(cells.len(), 65_536);
    assert_eq!(cells[65_535], cell("admitted_stamps", Some(65_535), Some(bits(&[9]))));
    bench.driver.requests.lock().clear();
    controller.modify(cell("admitted_stamps", None, Some(bits(&[0])))).await;
    assert_eq!(*bench.driver.requests.lock(), [1]);
    assert_eq!(value(&mut controller, "admitted_stamps", 65_535).await, Data::Bitstring(vec![0]));
}

#[tokio::test]
async fn indices_beyond_the_end_are_refused() {
    let (_bench, mut controller) = Bench::ready().await;
    let (code, text) =
        controller.write(Type::Modify, cell("ledger_syn", Some(1024), Some(bits(&[1])))).await.unwrap_err();
    assert_eq!(code, Code::OutOfRange);
    assert!(text.contains("give 0 to 1023"), "{text}");
}

#[tokio::test]
async fn writes_to_cells_are_refused_in_batches_with_rollback() {
    let (bench, mut controller) = Bench::ready().await;
    let batch = vec![(Type::Insert, server(1)), (Type::Modify, cell("ledger_syn", Some(1), Some(bits(&[1]))))];
    let status = controller.batch(Atomicity::RollbackOnError, batch).await.unwrap_err();
    assert!(status.message().contains("send them in a separate request"), "{}", status.message());
    assert!(bench.driver.requests.lock().is_empty());
}

#[tokio::test]
async fn counters_are_read_and_written() {
    let (_bench, mut controller) = Bench::ready().await;
    let counter = |index: Option<i64>, data: Option<(i64, i64)>| {
        let data = data.map(|(packet_count, byte_count)| p4::CounterData { packet_count, byte_count });
        let index = index.map(|index| p4::Index { index });
        Entity::CounterEntry(p4::CounterEntry { counter_id: id("verdicts"), index, data })
    };
    controller.modify(counter(Some(16), Some((3, 180)))).await;
    assert_eq!(controller.read(counter(Some(16), None)).await, [counter(Some(16), Some((3, 180)))]);
    assert_eq!(controller.read(counter(None, None)).await.len(), 256);
    controller.modify(counter(None, Some((0, 0)))).await;
    assert_eq!(controller.read(counter(Some(16), None)).await, [counter(Some(16), Some((0, 0)))]);
}

#[tokio::test]
async fn a_meter_reads_as_it_was_written_and_is_unlimited_again_without_a_config() {
    let (bench, mut controller) = Bench::ready().await;
    let meter = |config: Option<p4::MeterConfig>| {
        let index = Some(p4::Index { index: 2 });
        Entity::MeterEntry(p4::MeterEntry { meter_id: id("admission"), index, config, counter_data: None })
    };
    let config = p4::MeterConfig { cir: 2, cburst: 5, pir: 3, pburst: 6, eburst: 0 };
    controller.modify(meter(Some(config))).await;
    assert_eq!(controller.read(meter(None)).await, [meter(Some(config))]);
    let limits = |bench: &Bench| {
        let store = bench.driver.store.lock();
        let (_, data) = store.rows("SluiceIngress.admission.bucket.admission").entries.values().next().unwrap();
        let ids = ["$METER_SPEC_CIR_PPS", "$METER_SPEC_CBS_PKTS", "$METER_SPEC_PIR_PPS", "$METER_SPEC_PBS_PKTS"];
        let table = store.table("SluiceIngress.admission.bucket.admission");
        ids.map(|name| {
            let id = table.data_id(name).unwrap();
            let field = data.fields.iter().find(|field| field.field_id == id).unwrap();
            sluice_tofino::bfrt::number(sluice_tofino::bfrt::bytes(field).unwrap())
        })
    };
    assert_eq!(limits(&bench), [2, 5, 3, 6]);
    controller.modify(meter(None)).await;
    // A meter without a configuration must not limit. So the gateway writes a rate above the capacity of a pipe, and
    // the largest burst that the chip's meters can store. Larger numbers overflow in the driver's arithmetic, and the
    // meter then drops all packets.
    assert_eq!(limits(&bench), [4_000_000_000, 255 << 14, 4_000_000_000, 255 << 14]);
    assert_eq!(controller.read(meter(None)).await, [meter(None)]);
}

#[tokio::test]
async fn cells_of_one_request_are_one_request_to_the_driver() {
    let (bench, mut controller) = Bench::ready().await;
    for index in 0..60 {
        bench.driver.store.lock().set_cell(SYN, index, &[[index; PIPES]]);
    }
    let pattern = |index| cell("ledger_syn", Some(index), None);
    // The reply contains the cells in the order of the patterns, and repeats a cell that several patterns name.
    let indices: Vec<i64> = (0..60).rev().chain([7, 7]).collect();
    bench.driver.reads.lock().clear();
    let cells = controller.read_all(indices.iter().map(|index| pattern(*index)).collect()).await.unwrap();
    let expected = indices.iter().map(|index| {
        let value = if *index == 0 { vec![0] } else { vec![*index as u8] };
        cell("ledger_syn", Some(*index), Some(bits(&value)))
    });
    assert_eq!(cells, expected.collect::<Vec<_>>());
    assert_eq!(*bench.driver.reads.lock(), [60], "each cell once");
}

#[tokio::test]
async fn a_pattern_that_is_refused_is_named_and_the_others_are_answered() {
    let (bench, mut controller) = Bench::ready().await;
    bench.driver.store.lock().set_cell(SYN, 3, &[[9; PIPES]]);
    let patterns = || [3, -1, 3].map(|index| cell("ledger_syn", Some(index), None)).to_vec();
    let status = controller.read_all(patterns()).await.unwrap_err();
    let codes: Vec<_> = errors(&status).into_iter().map(|(code, _)| code).collect();
    assert_eq!(codes, [Code::Ok, Code::InvalidArgument, Code::Ok], "{}", status.message());
    // To identify a cell that the driver refuses, the gateway reads each cell alone.
    *bench.driver.unreadable.lock() = Some((SYN.to_owned(), 5));
    let patterns = [3, 5].map(|index| cell("ledger_syn", Some(index), None)).to_vec();
    let faults = errors(&controller.read_all(patterns).await.unwrap_err());
    assert_eq!(faults.iter().map(|(code, _)| *code).collect::<Vec<_>>(), [Code::Ok, Code::Internal]);
    assert!(faults[1].1.contains("ledger_syn: the driver refuses it: HW access fails"), "{}", faults[1].1);
}

#[tokio::test]
async fn readers_of_the_same_cells_wait_for_each_others_copies() {
    let (bench, mut controller) = Bench::ready().await;
    bench.driver.store.lock().set_cell(SYN, 3, &[[9; PIPES]]);
    let readers = concurrent_reads(&bench, vec![cell("ledger_syn", None, None)]).await;
    let cells = controller.read_all([3, 4].map(|index| cell("ledger_syn", Some(index), None)).to_vec()).await.unwrap();
    assert_eq!(cells[0], cell("ledger_syn", Some(3), Some(bits(&[9]))));
    for reader in readers {
        assert_eq!(reader.await.unwrap().unwrap()[3], cell("ledger_syn", Some(3), Some(bits(&[9]))));
    }
}

/// Starts six further controllers. Each reads the entities that match `patterns`, at the same time as the others.
async fn concurrent_reads(
    bench: &Bench,
    patterns: Vec<Entity>,
) -> Vec<tokio::task::JoinHandle<Result<Vec<Entity>, tonic::Status>>> {
    let mut readers = Vec::new();
    for election in 1..7 {
        let mut reader = bench.controller(election).await;
        let patterns = patterns.clone();
        readers.push(tokio::spawn(async move { reader.read_all(patterns).await }));
    }
    readers
}
