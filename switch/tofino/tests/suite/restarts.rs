//! Gateways that are killed and started again, by their journal.

mod files;
mod kills;
mod process;
mod written;

use std::sync::Arc;

use sluice_p4runtime::proto::p4::v1 as p4;
use tokio::net::TcpListener;
use tonic::Code;

use crate::campus::P4INFO;
use crate::common::{Bench, Controller, FromSwitch};
use crate::stand_in::{CAMPUS, Driver};
use p4::set_forwarding_pipeline_config_request::Action;
use p4::update::Type;
use p4::write_request::Atomicity;
use process::Process;
use written::{batches, everything, holdings};

/// The config of the tests' program.
fn config(cookie: u64) -> p4::ForwardingPipelineConfig {
    p4::ForwardingPipelineConfig {
        p4info: Some(sluice_p4runtime::parse_p4info(P4INFO).unwrap()),
        cookie: Some(p4::forwarding_pipeline_config::Cookie { cookie }),
        ..Default::default()
    }
}

/// A gateway with the tests' program in front of a driver, its folder, and its primary controller.
async fn ready() -> (Arc<Driver>, tempfile::TempDir, Process, Controller) {
    let driver = Driver::new(CAMPUS);
    let (uri, _) = driver.serve("127.0.0.1:0").await;
    let folder = tempfile::tempdir().unwrap();
    let gateway = Process::start(&uri, folder.path(), &[]);
    let mut controller = gateway.controller(10).await;
    gateway.known(&mut controller).await;
    controller.push(Action::VerifyAndCommit, Some(config(5))).await.unwrap();
    (driver, folder, gateway, controller)
}

#[tokio::test]
async fn a_restarted_gateway_writes_nothing_and_knows_all() {
    let (driver, folder, gateway, mut controller) = ready().await;
    for (atomicity, batch) in batches() {
        let _ = controller.batch(atomicity, batch).await;
    }
    // What this leaves is tidied up once.
    controller.modify(written::route(1, &[(6, 1)])).await;
    let expected = (everything(&mut controller).await, holdings(&driver));
    driver.requests.lock().clear();
    let again = gateway.restarted(folder.path());
    let mut controller = again.controller(10).await;
    assert_eq!(again.known(&mut controller).await, Some(config(5)));
    assert_eq!((everything(&mut controller).await, holdings(&driver)), expected);
    assert_eq!(*driver.requests.lock(), [1], "the table whose entries age");
}

#[tokio::test]
async fn a_program_that_was_pushed_again_to_keep_everything_is_the_one_that_is_adopted() {
    let (driver, folder, gateway, mut controller) = ready().await;
    let (atomicity, batch) = batches().remove(0);
    controller.batch(atomicity, batch).await.unwrap();
    let expected = (everything(&mut controller).await, holdings(&driver));
    controller.push(Action::ReconcileAndCommit, Some(config(6))).await.unwrap();
    let again = gateway.restarted(folder.path());
    let mut controller = again.controller(10).await;
    assert_eq!(again.known(&mut controller).await, Some(config(6)));
    assert_eq!((everything(&mut controller).await, holdings(&driver)), expected);
}

#[tokio::test]
async fn before_another_driver_a_restarted_gateway_starts_empty() {
    let (driver, folder, gateway, mut controller) = ready().await;
    let (atomicity, batch) = batches().remove(0);
    controller.batch(atomicity, batch.clone()).await.unwrap();
    // As after a start of the driver, or a load by another client.
    driver.load_anew();
    let again = gateway.restarted(folder.path());
    let mut controller = again.controller(10).await;
    assert_eq!(again.known(&mut controller).await, None);
    assert!(again.log().contains("the driver is not the one that the journal is of"), "{}", again.log());
    controller.push(Action::VerifyAndCommit, Some(config(7))).await.unwrap();
    controller.batch(atomicity, batch).await.unwrap();
    let third = again.restarted(folder.path());
    let mut controller = third.controller(10).await;
    assert_eq!(third.known(&mut controller).await, Some(config(7)));
}

#[tokio::test]
async fn while_the_driver_is_not_reached_no_controller_is_told_that_there_is_no_program() {
    let (driver, folder, gateway, controller) = ready().await;
    drop(controller);
    let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let uri = format!("http://{}", taken.local_addr().unwrap());
    drop(taken);
    let again = gateway.restarted_before(&uri, folder.path());
    let mut controller = again.controller(10).await;
    assert_eq!(controller.try_pushed().await.unwrap_err().code(), Code::Unavailable);
    let status = controller.push(Action::VerifyAndCommit, Some(config(6))).await.unwrap_err();
    assert_eq!(status.code(), Code::Unavailable);
    driver.serve(uri.strip_prefix("http://").unwrap()).await;
    assert_eq!(again.known(&mut controller).await, Some(config(5)));
}

#[tokio::test]
async fn election_ids_are_remembered_while_the_driver_keeps_its_state_and_begin_anew_with_it() {
    let (driver, folder, gateway, controller) = ready().await;
    drop(controller);
    drop(gateway.bid(12).await);
    let code = |answer: &p4::MasterArbitrationUpdate| Code::from_i32(answer.status.as_ref().unwrap().code);
    let again = gateway.restarted(folder.path());
    let (mut lower, answer) = again.bid(9).await;
    assert_eq!((code(&answer), answer.election_id.unwrap().low), (Code::NotFound, 12));
    again.known(&mut lower).await;
    let (atomicity, batch) = batches().remove(0);
    let refused = lower.batch(atomicity, batch).await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied);
    drop(lower);
    driver.load_anew();
    let third = again.restarted(folder.path());
    let (mut lower, answer) = third.bid(9).await;
    // The bid may come before the driver is known, or after.
    let mut code_now = code(&answer);
    while code_now == Code::NotFound {
        let FromSwitch::Arbitration(answer) = lower.next().await else { panic!() };
        code_now = code(&answer);
    }
    assert_eq!(code_now, Code::Ok);
    assert_eq!(third.known(&mut lower).await, None);
    lower.push(Action::VerifyAndCommit, Some(config(6))).await.unwrap();
}

#[tokio::test]
async fn many_changes_of_few_entries_take_little_room() {
    let (driver, folder, gateway, mut controller) = ready().await;
    let file = folder.path().join("journal");
    let size = || std::fs::metadata(&file).unwrap().len();
    let first = size();
    let batch = |kind| (1..=50).map(|last| (kind, written::host(last, 5_000_000_000))).collect::<Vec<_>>();
    controller.batch(Atomicity::ContinueOnError, batch(Type::Insert)).await.unwrap();
    let (mut largest, mut falls) = (0, 0);
    while falls < 2 {
        let before = size();
        controller.batch(Atomicity::ContinueOnError, batch(Type::Modify)).await.unwrap();
        largest = largest.max(size());
        falls += u32::from(size() < before);
    }
    assert!(largest < 512 << 10, "{first} to {largest} bytes");
    let expected = (everything(&mut controller).await, holdings(&driver));
    let again = gateway.restarted(folder.path());
    let mut controller = again.controller(10).await;
    again.known(&mut controller).await;
    assert_eq!((everything(&mut controller).await, holdings(&driver)), expected);
}

#[tokio::test]
async fn without_a_folder_a_restarted_gateway_starts_empty() {
    let (bench, mut controller) = Bench::with(CAMPUS, P4INFO, &[0]).await;
    let (atomicity, batch) = batches().remove(0);
    controller.batch(atomicity, batch).await.unwrap();
    let driver = Arc::clone(&bench.driver);
    bench.stop().await;
    let again = Bench::at(driver, P4INFO, &[0], None).await;
    assert!(again.controller(10).await.pushed().await.is_none());
}
