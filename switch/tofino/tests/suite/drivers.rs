use sluice_p4runtime::proto::p4::v1 as p4;
use tonic::Code;

use crate::common::{Bench, server};
use p4::entity::Entity;
use p4::set_forwarding_pipeline_config_request::Action;
use p4::update::Type;
use p4::write_request::Atomicity;

#[tokio::test]
async fn without_a_program_requests_are_refused() {
    let bench = Bench::start(crate::stand_in::BFRT, crate::common::P4INFO, &[0]).await;
    let mut controller = bench.controller(10).await;
    let status = controller.batch(Atomicity::ContinueOnError, vec![(Type::Insert, server(1))]).await.unwrap_err();
    assert_eq!(status.code(), Code::FailedPrecondition);
}

#[tokio::test]
async fn a_driver_that_went_and_came_back_has_no_program_for_controllers() {
    let (bench, mut controller) = Bench::ready().await;
    controller.insert(server(1)).await;
    bench.served.abort();
    // Its connections end with its last handle of events.
    bench.driver.hang_up();
    let pattern = || Entity::TableEntry(p4::TableEntry::default());
    while controller.pushed().await.is_some() {
        tokio::task::yield_now().await;
    }
    let status = controller.try_read(pattern()).await.unwrap_err();
    assert_eq!(status.code(), Code::Unavailable);
    assert!(status.message().contains("start bf_switchd"), "{}", status.message());
    let again = crate::stand_in::Driver::new(crate::stand_in::BFRT);
    let _served = again.serve(bench.uri.strip_prefix("http://").unwrap()).await;
    bench.gateway.connected().await;
    assert_eq!(controller.try_read(pattern()).await.unwrap_err().code(), Code::FailedPrecondition);
    controller.push(Action::VerifyAndCommit, Some(bench.config())).await.unwrap();
    assert!(controller.entries("servers").await.is_empty());
    controller.insert(server(1)).await;
    assert_eq!(again.store.lock().rows("SluiceIngress.translate.servers").entries.len(), 1);
}
