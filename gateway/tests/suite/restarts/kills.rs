//! Tests gateways that are killed during batches. After the restart, a batch must have taken effect completely or not
//! at all, both in the driver and for clients.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tonic::Code;

use super::process::Process;
use super::written::{Holdings, batches, everything, holdings};
use super::{config, ready};
use crate::common::Controller;
use crate::stand_in::Driver;
use p4::entity::Entity;
use p4::set_forwarding_pipeline_config_request::Action;
use sluice_p4runtime::proto::p4::v1 as p4;

/// The state before the first batch and after each batch: the entities that clients read, and the driver's tables.
type States = Vec<(Vec<Entity>, Holdings)>;

/// Returns all states, and the number of updates that the driver makes between the first state and the last.
async fn reference() -> (States, usize) {
    let (driver, _folder, _gateway, mut controller) = ready().await;
    driver.requests.lock().clear();
    let mut states = vec![(everything(&mut controller).await, holdings(&driver))];
    for (atomicity, batch) in batches() {
        let _ = controller.batch(atomicity, batch).await;
        states.push((everything(&mut controller).await, holdings(&driver)));
    }
    let updates = driver.requests.lock().iter().sum();
    (states, updates)
}

/// Sends the batches from index `from` on. Returns the index of the first batch to which the gateway does not reply;
/// `None` if it replies to all of them.
async fn make_batches(controller: &mut Controller, from: usize) -> Option<usize> {
    for (index, (atomicity, batch)) in batches().into_iter().enumerate().skip(from) {
        if let Err(status) = controller.batch(atomicity, batch).await
            && (status.code() != Code::Unknown || status.details().is_empty())
        {
            return Some(index);
        }
    }
    None
}

/// Restarts the gateway, which was killed during batch `cut`, or after all batches if `cut` is `None`. Asserts that the
/// state is the state before or after this batch. Then sends the remaining batches, and asserts that the state is the
/// last of `states`.
async fn restart(
    killed: Process,
    folder: &std::path::Path,
    driver: &Driver,
    states: &States,
    cut: Option<usize>,
    case: &str,
) {
    let restarted = killed.restarted(folder);
    let mut controller = restarted.controller(10).await;
    assert_eq!(restarted.wait_for_program(&mut controller).await, Some(config(5)), "{case}");
    let actual = (everything(&mut controller).await, holdings(driver));
    let next = match cut {
        None => states.len() - 1,
        Some(cut) if actual == states[cut] => cut,
        Some(cut) => cut + 1,
    };
    assert_eq!(actual.0, states[next].0, "{case}: what P4Runtime reads after batch {cut:?} was cut");
    assert_eq!(actual.1, states[next].1, "{case}: what the driver has after batch {cut:?} was cut");
    assert_eq!(make_batches(&mut controller, next).await, None, "{case}");
    let actual = (everything(&mut controller).await, holdings(driver));
    assert_eq!(&actual, states.last().unwrap(), "{case}");
}

#[tokio::test]
async fn a_gateway_killed_after_any_update_restores_complete_batches() {
    const CASES: usize = 30;
    let (states, updates) = reference().await;
    for case in 0..CASES {
        let (driver, folder, mut gateway, mut controller) = ready().await;
        let stopped = Arc::new(Notify::new());
        let made = case * updates / (CASES - 1);
        *driver.stops.lock() = Some((made, Arc::clone(&stopped)));
        let streamed = tokio::spawn(async move { make_batches(&mut controller, 0).await });
        let text = format!("after {made} of {updates} updates");
        tokio::time::timeout(Duration::from_secs(60), stopped.notified()).await.expect(&text);
        gateway.kill();
        *driver.stops.lock() = None;
        let cut = streamed.await.unwrap();
        assert!(cut.is_some(), "{text}");
        restart(gateway, folder.path(), &driver, &states, cut, &text).await;
    }
}

#[tokio::test]
async fn a_gateway_killed_while_clearing_adopts_nothing() {
    // The number of updates that the gateway sends in a commit. The last one writes the mark, a mirror session by which
    // a restarted gateway would recognise the state. Without the mark it must adopt nothing.
    let updates = {
        let (driver, _folder, _gateway, mut controller) = ready().await;
        driver.requests.lock().clear();
        controller.push(Action::VerifyAndCommit, Some(config(6))).await.unwrap();
        driver.requests.lock().iter().sum::<usize>()
    };
    for made in (0..=updates).step_by(3) {
        let (driver, folder, mut gateway, mut controller) = ready().await;
        let (atomicity, batch) = batches().remove(0);
        controller.batch(atomicity, batch).await.unwrap();
        let stopped = Arc::new(Notify::new());
        *driver.stops.lock() = Some((made, Arc::clone(&stopped)));
        let pushed = tokio::spawn(async move { controller.push(Action::VerifyAndCommit, Some(config(6))).await });
        tokio::time::timeout(Duration::from_secs(60), stopped.notified()).await.expect("a driver that clears");
        gateway.kill();
        *driver.stops.lock() = None;
        pushed.await.unwrap().unwrap_err();
        let restarted = gateway.restarted(folder.path());
        let mut controller = restarted.controller(10).await;
        assert_eq!(restarted.wait_for_program(&mut controller).await, None, "after {made} of {updates} updates");
    }
}

#[tokio::test]
async fn a_gateway_killed_at_any_time_restores_complete_batches() {
    const CASES: u64 = 20;
    let (states, _) = reference().await;
    for case in 0..CASES {
        let (driver, folder, gateway, mut controller) = ready().await;
        let streamed = tokio::spawn(async move { make_batches(&mut controller, 0).await });
        // The waiting times grow quadratically, from 0 to 54 ms, so that gateways are killed during various batches
        // both on fast and on slow machines.
        let wait = Duration::from_micros(case * case * 150);
        tokio::time::sleep(wait).await;
        // The test also kills the second gateway, possibly while it adopts the state.
        let next = gateway.restarted(folder.path());
        let cut = streamed.await.unwrap();
        tokio::time::sleep(Duration::from_millis(case * 4)).await;
        restart(next, folder.path(), &driver, &states, cut, &format!("after {wait:?}")).await;
    }
}
