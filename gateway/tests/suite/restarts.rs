//! Tests gateways that are killed and restarted, and restore their state from a journal.

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

/// Returns the config of the test program `campus.p4`.
fn config(cookie: u64) -> p4::ForwardingPipelineConfig {
    p4::ForwardingPipelineConfig {
        p4info: Some(sluice_p4runtime::parse_p4info(P4INFO).unwrap()),
        cookie: Some(p4::forwarding_pipeline_config::Cookie { cookie }),
        ..Default::default()
    }
}

/// Starts a gateway with the test program `campus.p4` in front of a driver. Returns the driver, the journal's folder,
/// the gateway and its primary controller.
async fn ready() -> (Arc<Driver>, tempfile::TempDir, Process, Controller) {
    let driver = Driver::new(CAMPUS);
    let (uri, _) = driver.serve("127.0.0.1:0").await;
    let folder = tempfile::tempdir().unwrap();
    let gateway = Process::start(&uri, folder.path(), &[]);
    let mut controller = gateway.controller(10).await;
    gateway.wait_for_program(&mut controller).await;
    controller.push(Action::VerifyAndCommit, Some(config(5))).await.unwrap();
    (driver, folder, gateway, controller)
}

#[tokio::test]
async fn a_restarted_gateway_restores_all_state_without_writing_it_again() {
    let (driver, folder, gateway, mut controller) = ready().await;
    for (atomicity, batch) in batches() {
        let _ = controller.batch(atomicity, batch).await;
    }
    // The gateway completes this write by a second request, which deletes the route's old group. The restarted gateway
    // must not repeat this request.
    controller.modify(written::route(1, &[(6, 1)])).await;
    let expected = (everything(&mut controller).await, holdings(&driver));
    driver.requests.lock().clear();
    let restarted = gateway.restarted(folder.path());
    let mut controller = restarted.controller(10).await;
    assert_eq!(restarted.wait_for_program(&mut controller).await, Some(config(5)));
    assert_eq!((everything(&mut controller).await, holdings(&driver)), expected);
    assert_eq!(*driver.requests.lock(), [1], "only the table's idle timeouts");
}

#[tokio::test]
async fn the_config_of_the_last_reconciliation_is_adopted() {
    let (driver, folder, gateway, mut controller) = ready().await;
    let (atomicity, batch) = batches().remove(0);
    controller.batch(atomicity, batch).await.unwrap();
    let expected = (everything(&mut controller).await, holdings(&driver));
    controller.push(Action::ReconcileAndCommit, Some(config(6))).await.unwrap();
    let restarted = gateway.restarted(folder.path());
    let mut controller = restarted.controller(10).await;
    assert_eq!(restarted.wait_for_program(&mut controller).await, Some(config(6)));
    assert_eq!((everything(&mut controller).await, holdings(&driver)), expected);
}

#[tokio::test]
async fn a_gateway_restarted_in_front_of_another_driver_starts_empty() {
    let (driver, folder, gateway, mut controller) = ready().await;
    let (atomicity, batch) = batches().remove(0);
    controller.batch(atomicity, batch.clone()).await.unwrap();
    // The reset has the effect of a restart of the driver, or of a load by another client.
    driver.reset();
    let restarted = gateway.restarted(folder.path());
    let mut controller = restarted.controller(10).await;
    assert_eq!(restarted.wait_for_program(&mut controller).await, None);
    assert!(restarted.log().contains("the journal belongs to another instance of the driver"), "{}", restarted.log());
    controller.push(Action::VerifyAndCommit, Some(config(7))).await.unwrap();
    controller.batch(atomicity, batch).await.unwrap();
    let third = restarted.restarted(folder.path());
    let mut controller = third.controller(10).await;
    assert_eq!(third.wait_for_program(&mut controller).await, Some(config(7)));
}

#[tokio::test]
async fn controllers_are_answered_unavailable_until_the_driver_answers() {
    let (driver, folder, gateway, controller) = ready().await;
    drop(controller);
    let unserved = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let uri = format!("http://{}", unserved.local_addr().unwrap());
    drop(unserved);
    let restarted = gateway.restarted_before(&uri, folder.path());
    let mut controller = restarted.controller(10).await;
    assert_eq!(controller.try_pushed().await.unwrap_err().code(), Code::Unavailable);
    let status = controller.push(Action::VerifyAndCommit, Some(config(6))).await.unwrap_err();
    assert_eq!(status.code(), Code::Unavailable);
    driver.serve(uri.strip_prefix("http://").unwrap()).await;
    assert_eq!(restarted.wait_for_program(&mut controller).await, Some(config(5)));
}

#[tokio::test]
async fn election_ids_are_restored_if_the_driver_has_kept_its_state() {
    let (driver, folder, gateway, controller) = ready().await;
    drop(controller);
    drop(gateway.bid(12).await);
    let code = |answer: &p4::MasterArbitrationUpdate| Code::from_i32(answer.status.as_ref().unwrap().code);
    let restarted = gateway.restarted(folder.path());
    let (mut lower, answer) = restarted.bid(9).await;
    assert_eq!((code(&answer), answer.election_id.unwrap().low), (Code::NotFound, 12));
    restarted.wait_for_program(&mut lower).await;
    let (atomicity, batch) = batches().remove(0);
    let refused = lower.batch(atomicity, batch).await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied);
    drop(lower);
    driver.reset();
    let third = restarted.restarted(folder.path());
    let (mut lower, answer) = third.bid(9).await;
    // Until the gateway has received the driver's reply, it compares the bid with the restored election id 12, and
    // reports that there is no primary controller. The driver's reply shows that the driver has lost the state.
    let mut code_now = code(&answer);
    while code_now == Code::NotFound {
        let FromSwitch::Arbitration(answer) = lower.next().await else { panic!() };
        code_now = code(&answer);
    }
    assert_eq!(code_now, Code::Ok);
    assert_eq!(third.wait_for_program(&mut lower).await, None);
    lower.push(Action::VerifyAndCommit, Some(config(6))).await.unwrap();
}

#[tokio::test]
async fn the_journal_stays_small_when_few_entries_change_often() {
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
    let restarted = gateway.restarted(folder.path());
    let mut controller = restarted.controller(10).await;
    restarted.wait_for_program(&mut controller).await;
    assert_eq!((everything(&mut controller).await, holdings(&driver)), expected);
}

#[tokio::test]
async fn without_a_folder_a_restarted_gateway_starts_empty() {
    let (bench, mut controller) = Bench::with(CAMPUS, P4INFO, &[0]).await;
    let (atomicity, batch) = batches().remove(0);
    controller.batch(atomicity, batch).await.unwrap();
    let driver = Arc::clone(&bench.driver);
    bench.stop().await;
    let restarted = Bench::in_front_of(driver, P4INFO, &[0], None).await;
    assert!(restarted.controller(10).await.pushed().await.is_none());
}
