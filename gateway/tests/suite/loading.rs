//! Tests programs that the driver loads: those that a controller pushes, and, with the setting `reload`, the running
//! program at every commit.

use prost::Message;
use sluice_p4runtime::proto::p4::v1 as p4;
use sluice_tofino::proto::ForwardingPipelineConfig;
use std::sync::atomic::Ordering::Relaxed;
use tonic::Code;

use crate::common::{Bench, FOLDER, P4INFO, cpu_ports, server};
use crate::stand_in::{BFRT, Driver, program};
use crate::streams::FILTER;
use p4::set_forwarding_pipeline_config_request::Action;

/// Returns the config with which a controller pushes the program `device` for the driver to load.
fn with(bench: &Bench, device: &ForwardingPipelineConfig) -> Option<p4::ForwardingPipelineConfig> {
    Some(p4::ForwardingPipelineConfig { p4_device_config: device.encode_to_vec(), ..bench.config() })
}

#[tokio::test]
async fn a_driver_without_a_program_loads_the_pushed_one() {
    let bench = Bench::with_settings(Driver::running(None), P4INFO, |settings| settings.cpu_port = Some(320)).await;
    let mut controller = bench.controller(10).await;
    let status = controller.push(Action::VerifyAndCommit, Some(bench.config())).await.unwrap_err();
    assert_eq!(status.code(), Code::FailedPrecondition);
    assert!(status.message().contains("push a p4_device_config"), "{}", status.message());
    let device = program("sluice", BFRT, b"compiled");
    controller.push(Action::Verify, with(&bench, &device)).await.unwrap();
    assert!(bench.driver.loads.lock().is_empty());
    controller.push(Action::VerifyAndCommit, with(&bench, &device)).await.unwrap();
    assert_eq!(*bench.driver.loads.lock(), [("sluice".to_owned(), FOLDER.to_owned())]);
    assert_eq!(cpu_ports(&bench.driver).0, [[1, 64]], "the CPU port is configured again after the load");
    controller.insert(server(1)).await;
    assert_eq!(controller.pushed().await, with(&bench, &device));
}

#[tokio::test]
async fn another_program_replaces_the_running_one() {
    let (bench, mut controller) = Bench::ready().await;
    controller.insert(server(1)).await;
    for device in [program("other", BFRT, b"compiled"), program("other", BFRT, b"compiled anew")] {
        controller.push(Action::VerifyAndCommit, with(&bench, &device)).await.unwrap();
        assert!(controller.entries("servers").await.is_empty());
        controller.insert(server(1)).await;
    }
    assert_eq!(bench.driver.loads.lock().len(), 2);
    // Notifications must arrive on the connection that loaded the program.
    bench.driver.report(FILTER, vec![]).await;
}

#[tokio::test]
async fn the_running_program_is_cleared_and_not_loaded_again() {
    let (bench, mut controller) = Bench::ready().await;
    controller.insert(server(1)).await;
    for device in [
        program("sluice", BFRT, b"compiled"),
        ForwardingPipelineConfig { bfruntime_info: BFRT.as_bytes().to_vec(), ..Default::default() },
    ] {
        controller.push(Action::VerifyAndCommit, with(&bench, &device)).await.unwrap();
        assert!(controller.entries("servers").await.is_empty());
    }
    assert!(bench.driver.loads.lock().is_empty());
}

#[tokio::test]
async fn with_reload_a_commit_loads_the_running_program_again() {
    let bench = Bench::with_settings(Driver::new(BFRT), P4INFO, |settings| {
        (settings.reload, settings.cpu_port) = (true, Some(320));
    })
    .await;
    let mut controller = bench.controller(10).await;
    for round in 1..=3 {
        controller.push(Action::VerifyAndCommit, Some(bench.config())).await.unwrap();
        assert_eq!(bench.driver.loads.lock().len(), round);
        assert_eq!(cpu_ports(&bench.driver).0, [[1, 64]]);
        assert!(controller.entries("servers").await.is_empty());
        controller.insert(server(1)).await;
    }
    controller.push(Action::ReconcileAndCommit, Some(bench.config())).await.unwrap();
    assert_eq!(controller.entries("servers").await.len(), 1);
}

#[tokio::test]
async fn a_failed_load_is_tried_again() {
    let bench = Bench::with_settings(Driver::running(None), P4INFO, |_| ()).await;
    let mut controller = bench.controller(10).await;
    let device = program("sluice", BFRT, b"compiled");
    bench.driver.failing_loads.store(2, Relaxed);
    controller.push(Action::VerifyAndCommit, with(&bench, &device)).await.unwrap();
    controller.insert(server(1)).await;
    bench.driver.failing_loads.store(usize::MAX, Relaxed);
    let device = program("other", BFRT, b"compiled");
    let status = controller.push(Action::VerifyAndCommit, with(&bench, &device)).await.unwrap_err();
    assert!(status.message().contains("HW access fails; check bf_switchd's log"), "{}", status.message());
    assert!(controller.pushed().await.is_none(), "the previous program is lost");
    bench.driver.failing_loads.store(0, Relaxed);
    bench.gateway.connected().await;
    controller.push(Action::VerifyAndCommit, with(&bench, &device)).await.unwrap();
    controller.insert(server(1)).await;
}

#[tokio::test]
async fn programs_that_cannot_be_loaded_are_refused_and_the_running_one_stays() {
    let (bench, mut controller) = Bench::ready().await;
    controller.insert(server(1)).await;
    let device = program("other", BFRT, b"compiled");
    let mut refused = async |device: Vec<u8>, text: &str| {
        let config = p4::ForwardingPipelineConfig { p4_device_config: device, ..bench.config() };
        for action in [Action::Verify, Action::VerifyAndCommit] {
            let status = controller.push(action, Some(config.clone())).await.unwrap_err();
            assert_eq!(status.code(), Code::InvalidArgument);
            assert!(status.message().contains(text), "{}", status.message());
        }
    };
    refused(vec![0xff], "p4_device_config is not a BfPipelineConfig").await;
    let json = BFRT.replace("translate.servers", "translate.other_programs");
    let differing = program("other", &json, b"compiled");
    refused(ForwardingPipelineConfig { profiles: vec![], ..differing.clone() }.encode_to_vec(), "give profiles").await;
    refused(differing.encode_to_vec(), "SluiceIngress.translate.servers").await;
    refused(ForwardingPipelineConfig { p4_name: "../x".to_owned(), ..device.clone() }.encode_to_vec(), "give p4_name")
        .await;
    let mut changed = device.clone();
    changed.profiles[0].binary.clear();
    refused(changed.encode_to_vec(), "profile pipe: give context and binary").await;
    let mut changed = device.clone();
    changed.profiles[0].pipe_scope.clear();
    refused(changed.encode_to_vec(), "profile pipe: give the pipes").await;
    assert_eq!(controller.entries("servers").await.len(), 1);
    assert!(bench.driver.loads.lock().is_empty());
}

#[tokio::test]
async fn a_gateway_with_program_flag_loads_no_other_program() {
    let bench =
        Bench::with_settings(Driver::new(BFRT), P4INFO, |settings| settings.driver.program = Some("sluice".to_owned()))
            .await;
    let mut controller = bench.controller(10).await;
    let device = program("other", BFRT, b"compiled");
    let status = controller.push(Action::VerifyAndCommit, with(&bench, &device)).await.unwrap_err();
    assert_eq!(status.code(), Code::FailedPrecondition);
    assert!(status.message().contains("--program is sluice"), "{}", status.message());
}
