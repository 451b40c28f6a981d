//! Gateways that are killed in the midst of batches: a batch is then there as a whole or not at all, for the driver as for clients.

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

/// What there is after each batch, that before the first included.
type States = Vec<(Vec<Entity>, Holdings)>;

/// All states, and the updates that the driver has made on the way to each.
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

/// Makes batches from a place on; the result is the first that is not answered.
async fn stream(controller: &mut Controller, from: usize) -> Option<usize> {
    for (place, (atomicity, batch)) in batches().into_iter().enumerate().skip(from) {
        if let Err(status) = controller.batch(atomicity, batch).await
            && (status.code() != Code::Unknown || status.details().is_empty())
        {
            return Some(place);
        }
    }
    None
}

/// Starts the gateway again after a batch was cut: all is as before that batch or as after it. Then makes what is left.
async fn restart(
    killed: Process,
    folder: &std::path::Path,
    driver: &Driver,
    states: &States,
    cut: Option<usize>,
    case: &str,
) {
    let again = killed.restarted(folder);
    let mut controller = again.controller(10).await;
    assert_eq!(again.known(&mut controller).await, Some(config(5)), "{case}");
    let found = (everything(&mut controller).await, holdings(driver));
    let next = match cut {
        None => states.len() - 1,
        Some(cut) if found == states[cut] => cut,
        Some(cut) => cut + 1,
    };
    assert_eq!(found.0, states[next].0, "{case}: what P4Runtime reads after batch {cut:?} was cut");
    assert_eq!(found.1, states[next].1, "{case}: what the driver has after batch {cut:?} was cut");
    assert_eq!(stream(&mut controller, next).await, None, "{case}");
    let found = (everything(&mut controller).await, holdings(driver));
    assert_eq!(&found, states.last().unwrap(), "{case}");
}

#[tokio::test]
async fn whichever_update_the_driver_has_come_to() {
    const CASES: usize = 30;
    let (states, updates) = reference().await;
    for case in 0..CASES {
        let (driver, folder, mut gateway, mut controller) = ready().await;
        let stopped = Arc::new(Notify::new());
        let made = case * updates / (CASES - 1);
        *driver.stops.lock() = Some((made, Arc::clone(&stopped)));
        let streamed = tokio::spawn(async move { stream(&mut controller, 0).await });
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
async fn while_a_program_clears_the_tables_nothing_of_them_is_adopted() {
    // To the driver's mark of the next program.
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
        let again = gateway.restarted(folder.path());
        let mut controller = again.controller(10).await;
        assert_eq!(again.known(&mut controller).await, None, "after {made} of {updates} updates");
    }
}

#[tokio::test]
async fn at_any_moment() {
    const CASES: u64 = 20;
    let (states, _) = reference().await;
    for case in 0..CASES {
        let (driver, folder, gateway, mut controller) = ready().await;
        let streamed = tokio::spawn(async move { stream(&mut controller, 0).await });
        // From the first batch to beyond the last one, whatever the machine makes of it.
        let wait = Duration::from_micros(case * case * 150);
        tokio::time::sleep(wait).await;
        // The next one is killed as well, perhaps while it adopts.
        let next = gateway.restarted(folder.path());
        let cut = streamed.await.unwrap();
        tokio::time::sleep(Duration::from_millis(case * 4)).await;
        restart(next, folder.path(), &driver, &states, cut, &format!("after {wait:?}")).await;
    }
}
