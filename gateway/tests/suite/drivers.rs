//! Tests connections to the driver: lost and resumed ones, refused ones, and the configuration of the CPU port.

use sluice_p4runtime::proto::p4::v1 as p4;
use sluice_tofino::client::{Address, Driver};
use tonic::Code;

use crate::common::{Bench, cpu_ports, server};
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
async fn after_a_restart_of_the_driver_controllers_find_no_program() {
    let (bench, mut controller) = Bench::ready().await;
    controller.insert(server(1)).await;
    bench.served.abort();
    // `hang_up` ends the streams of notifications, which also ends the stand-in's connections.
    bench.driver.hang_up();
    let pattern = || Entity::TableEntry(p4::TableEntry::default());
    let status = loop {
        match controller.try_read(pattern()).await {
            Err(status) => break status,
            Ok(_) => tokio::task::yield_now().await,
        }
    };
    assert_eq!(status.code(), Code::Unavailable);
    assert!(status.message().contains("start bf_switchd"), "{}", status.message());
    let restarted_driver = crate::stand_in::Driver::new(crate::stand_in::BFRT);
    let _served = restarted_driver.serve(bench.uri.strip_prefix("http://").unwrap()).await;
    bench.gateway.connected().await;
    assert_eq!(controller.try_read(pattern()).await.unwrap_err().code(), Code::FailedPrecondition);
    assert!(controller.pushed().await.is_none());
    controller.push(Action::VerifyAndCommit, Some(bench.config())).await.unwrap();
    assert!(controller.entries("servers").await.is_empty());
    controller.insert(server(1)).await;
    assert_eq!(restarted_driver.store.lock().rows("SluiceIngress.translate.servers").entries.len(), 1);
}

#[tokio::test]
async fn the_client_waits_for_its_number_to_become_free_and_otherwise_reports_it() {
    let driver = crate::stand_in::Driver::new(crate::stand_in::BFRT);
    let (uri, _served) = driver.serve("127.0.0.1:0").await;
    let address = || Address { uri: uri.clone(), device: 0, client: 1, program: None };
    let (_, earlier) = Driver::connect(address()).await.unwrap();
    let status = Driver::connect(address()).await.map(|_| ()).unwrap_err();
    assert_eq!(status.code(), Code::AlreadyExists);
    assert!(status.message().contains("client number 1; give another with --client-id"), "{}", status.message());
    let release = async {
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
        drop(earlier);
    };
    let (_, connection) = tokio::join!(release, Driver::connect(address()));
    connection.unwrap();
}

#[tokio::test]
async fn the_cpu_port_is_configured_in_parser_and_traffic_manager() {
    let driver = crate::stand_in::Driver::new(crate::stand_in::BFRT);
    let bench = Bench::in_front_of(driver, crate::common::P4INFO, &[0], Some(320)).await;
    let expected = (vec![vec![1, 64]], vec![vec![0, 0, 1, 64]]);
    assert_eq!(cpu_ports(&bench.driver), expected);
    // A second gateway must accept the configuration that the first one wrote to the driver, and a push of the program
    // that the driver runs must not reset this configuration.
    let driver = std::sync::Arc::clone(&bench.driver);
    bench.stop().await;
    let second_bench = Bench::in_front_of(driver, crate::common::P4INFO, &[0], Some(320)).await;
    let mut controller = second_bench.controller(10).await;
    controller.push(Action::VerifyAndCommit, Some(second_bench.config())).await.unwrap();
    assert_eq!(cpu_ports(&second_bench.driver), expected);
}

#[tokio::test]
async fn port_metadata_of_tofino_2_have_another_width() {
    let driver = crate::stand_in::Driver::new(include_str!("../../../p4src/build/tofino2/bfrt.json"));
    let p4info = include_str!("../../../p4src/build/tofino2/sluice.p4info.txtpb");
    let bench = Bench::in_front_of(driver, p4info, &[0], Some(2)).await;
    assert_eq!(cpu_ports(&bench.driver), (vec![vec![0, 2]], vec![vec![0, 0, 0, 2]]));
}

#[tokio::test]
async fn without_a_cpu_port_the_drivers_setting_stays() {
    let (bench, _) = Bench::ready().await;
    assert_eq!(cpu_ports(&bench.driver), (vec![], vec![]));
}

#[tokio::test]
async fn a_driver_that_refuses_the_cpu_port_is_not_used() {
    let driver = crate::stand_in::Driver::new(crate::stand_in::BFRT);
    *driver.full.lock() = Some("SluiceIngressParser.$PORT_METADATA".to_owned());
    let refusing = Bench::not_connected(std::sync::Arc::clone(&driver), |settings| settings.cpu_port = Some(320)).await;
    let mut controller = refusing.controller(10).await;
    driver.connected(2).await;
    let pattern = Entity::TableEntry(p4::TableEntry::default());
    let status = controller.try_read(pattern).await.unwrap_err();
    assert_eq!(status.code(), Code::Unavailable, "{}", status.message());
    *driver.full.lock() = None;
    refusing.gateway.connected().await;
    assert_eq!(cpu_ports(&driver), (vec![vec![1, 64]], vec![vec![0, 0, 1, 64]]));
}

#[tokio::test]
async fn a_broken_connection_loses_nothing_if_the_driver_keeps_running() {
    let (bench, mut controller) = Bench::ready().await;
    controller.insert(server(1)).await;
    bench.driver.hang_up();
    bench.driver.connected(2).await;
    bench.gateway.connected().await;
    let entries: Vec<_> = controller.entries("servers").await.into_iter().map(Entity::TableEntry).collect();
    assert_eq!(entries, [server(1)]);
    assert_eq!(controller.pushed().await, Some(bench.config()));
    controller.delete(server(1)).await;
    assert!(bench.driver.store.lock().rows("SluiceIngress.translate.servers").entries.is_empty());
}

#[tokio::test]
async fn the_updates_of_an_unanswered_batch_are_undone() {
    let (bench, mut controller) = Bench::ready().await;
    controller.insert(server(1)).await;
    let rows = |bench: &Bench| bench.driver.store.lock().rows("SluiceIngress.translate.servers").entries.clone();
    let before = rows(&bench);
    bench.driver.mute(2);
    let batch = vec![(Type::Delete, server(1)), (Type::Insert, server(2)), (Type::Insert, server(3))];
    let status = controller.batch(Atomicity::ContinueOnError, batch).await.unwrap_err();
    assert_eq!(status.code(), Code::Unavailable, "{}", status.message());
    assert_ne!(rows(&bench), before, "the driver has made two of three");
    bench.driver.connected(2).await;
    bench.gateway.connected().await;
    assert_eq!(rows(&bench), before);
    let entries: Vec<_> = controller.entries("servers").await.into_iter().map(Entity::TableEntry).collect();
    assert_eq!(entries, [server(1)]);
    controller.insert(server(2)).await;
}

#[tokio::test]
async fn another_clients_load_leaves_no_program_for_controllers() {
    let (bench, mut controller) = Bench::ready().await;
    controller.insert(server(1)).await;
    bench.driver.reset();
    bench.driver.hang_up();
    bench.driver.connected(2).await;
    bench.gateway.connected().await;
    assert!(controller.pushed().await.is_none());
    let status = controller.batch(Atomicity::ContinueOnError, vec![(Type::Insert, server(2))]).await.unwrap_err();
    assert_eq!(status.code(), Code::FailedPrecondition);
}
