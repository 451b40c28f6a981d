//! Tests batches of updates: the gateway sends one request for a batch. If an update fails, the gateway reverts the
//! complete batch, provided that the client has requested this atomicity.

use sluice_p4runtime::proto::p4::v1 as p4;
use tonic::Code;

use crate::common::{Bench, errors, id, server};
use p4::entity::Entity;
use p4::update::Type;
use p4::write_request::Atomicity;

const SERVERS: &str = "SluiceIngress.translate.servers";

fn codes(status: &tonic::Status) -> Vec<Code> {
    errors(status).into_iter().map(|(code, _)| code).collect()
}

#[tokio::test]
async fn a_batch_is_one_request() {
    let (bench, mut controller) = Bench::ready().await;
    let batch = (1..=200).map(|number| (Type::Insert, server(number))).collect();
    controller.batch(Atomicity::ContinueOnError, batch).await.unwrap();
    assert_eq!(*bench.driver.requests.lock(), [200]);
    assert_eq!(controller.entries("servers").await.len(), 200);
}

#[tokio::test]
async fn refused_updates_do_not_prevent_the_others() {
    let (bench, mut controller) = Bench::ready().await;
    controller.insert(server(2)).await;
    let batch = [1, 2, 3].map(|number| (Type::Insert, server(number))).to_vec();
    let status = controller.batch(Atomicity::ContinueOnError, batch).await.unwrap_err();
    assert_eq!(codes(&status), [Code::Ok, Code::AlreadyExists, Code::Ok]);
    assert_eq!(bench.driver.store.lock().rows(SERVERS).entries.len(), 3);
}

#[tokio::test]
async fn updates_of_a_batch_see_the_effects_of_earlier_ones() {
    let (_bench, mut controller) = Bench::ready().await;
    let batch = vec![
        (Type::Insert, server(1)),
        (Type::Modify, server(1)),
        (Type::Delete, server(1)),
        (Type::Insert, server(1)),
    ];
    controller.batch(Atomicity::RollbackOnError, batch).await.unwrap();
    assert_eq!(controller.entries("servers").await.len(), 1);
}

#[tokio::test]
async fn a_refusal_of_the_driver_undoes_the_whole_batch() {
    let (bench, mut controller) = Bench::ready().await;
    controller.insert(server(1)).await;
    controller.insert(server(2)).await;
    let before = bench.driver.store.lock().rows(SERVERS).entries.clone();
    *bench.driver.full.lock() = Some("SluiceIngress.local.owned".to_owned());
    let mut changed = server(2);
    let Entity::TableEntry(entry) = &mut changed else { panic!() };
    entry.metadata = b"other".to_vec();
    let Some(p4::table_action::Type::Action(action)) = &mut entry.action.as_mut().unwrap().r#type else { panic!() };
    action.params[1].value = vec![81];
    let owned = Entity::TableEntry(p4::TableEntry {
        table_id: id("owned"),
        r#match: vec![crate::common::exact(1, &[10, 0, 0, 1])],
        action: crate::common::direct(crate::common::action("is_owned", &[])),
        ..Default::default()
    });
    let batch =
        vec![(Type::Delete, server(1)), (Type::Modify, changed), (Type::Insert, server(3)), (Type::Insert, owned)];
    let status = controller.batch(Atomicity::RollbackOnError, batch).await.unwrap_err();
    assert_eq!(codes(&status), [Code::Aborted, Code::Aborted, Code::Aborted, Code::ResourceExhausted]);
    assert_eq!(bench.driver.store.lock().rows(SERVERS).entries, before);
    let entries: Vec<_> = controller.entries("servers").await.into_iter().map(Entity::TableEntry).collect();
    assert_eq!(entries, [server(1), server(2)], "clients read the old entries");
}

#[tokio::test]
async fn a_batch_that_the_gateway_refuses_does_not_reach_the_driver() {
    let (bench, mut controller) = Bench::ready().await;
    let batch = vec![(Type::Insert, server(1)), (Type::Delete, server(2))];
    let status = controller.batch(Atomicity::RollbackOnError, batch).await.unwrap_err();
    assert_eq!(codes(&status), [Code::Aborted, Code::NotFound]);
    assert!(bench.driver.requests.lock().is_empty());
    assert!(controller.entries("servers").await.is_empty());
}

#[tokio::test]
async fn only_one_update_is_atomic_to_packets() {
    let (_bench, mut controller) = Bench::ready().await;
    controller.batch(Atomicity::DataplaneAtomic, vec![(Type::Insert, server(1))]).await.unwrap();
    let batch = vec![(Type::Insert, server(2)), (Type::Insert, server(3))];
    let status = controller.batch(Atomicity::DataplaneAtomic, batch).await.unwrap_err();
    assert_eq!(status.code(), Code::Unimplemented);
    assert!(status.message().contains("give ROLLBACK_ON_ERROR"), "{}", status.message());
}
