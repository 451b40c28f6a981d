//! Tests pushes of P4Info for the program that the driver already runs.

use sluice_p4runtime::proto::p4::v1 as p4;
use tonic::Code;

use crate::common::{Bench, P4INFO, server};
use crate::stand_in::BFRT;
use p4::set_forwarding_pipeline_config_request::Action;

#[tokio::test]
async fn p4info_that_differs_is_refused_with_the_place() {
    let bench = Bench::start(BFRT, P4INFO, &[0]).await;
    let mut controller = bench.controller(10).await;
    let mut refused = async |change: fn(&mut sluice_p4runtime::proto::p4::config::v1::P4Info), text: &str| {
        let mut config = bench.config();
        change(config.p4info.as_mut().unwrap());
        let status = controller.push(Action::VerifyAndCommit, Some(config)).await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument);
        assert!(status.message().contains(text), "«{}» does not contain «{text}»", status.message());
    };
    refused(|info| info.tables[1].match_fields[0].bitwidth = 33, "classify.services, key field address").await;
    refused(|info| info.registers[0].size = 5, "clock_turns").await;
    refused(
        |info| info.tables[0].preamble.as_mut().unwrap().name = "SluiceIngress.gone".to_owned(),
        "SluiceIngress.gone",
    )
    .await;
    let member = |info: &mut sluice_p4runtime::proto::p4::config::v1::P4Info| {
        let types = info.type_info.as_mut().unwrap();
        types.structs.get_mut("pin_key_t").unwrap().members[0].name = "other".to_owned();
    };
    refused(member, "pin_key_1: the driver has no field other").await;
    assert!(controller.pushed().await.is_none());
}

#[tokio::test]
async fn verify_changes_nothing_and_commit_clears() {
    let (bench, mut controller) = Bench::ready().await;
    controller.insert(server(1)).await;
    controller.push(Action::Verify, Some(bench.config())).await.unwrap();
    assert_eq!(controller.entries("servers").await.len(), 1);
    controller.push(Action::VerifyAndCommit, Some(bench.config())).await.unwrap();
    assert!(controller.entries("servers").await.is_empty());
    assert!(bench.driver.store.lock().rows("SluiceIngress.translate.servers").entries.is_empty());
    let config = controller.pushed().await.unwrap();
    assert_eq!((config.p4info, config.cookie), (bench.config().p4info, bench.config().cookie));
}

#[tokio::test]
async fn reconcile_keeps_the_state() {
    let (bench, mut controller) = Bench::ready().await;
    controller.insert(server(1)).await;
    controller.push(Action::ReconcileAndCommit, Some(bench.config())).await.unwrap();
    assert_eq!(controller.entries("servers").await.len(), 1);
    let mut changed = bench.config();
    changed.p4info.as_mut().unwrap().digests.clear();
    let status = controller.push(Action::ReconcileAndCommit, Some(changed)).await.unwrap_err();
    assert!(status.message().contains("give VERIFY_AND_COMMIT"), "{}", status.message());
}

#[tokio::test]
async fn a_gateway_without_a_program_reports_the_architecture_that_it_takes() {
    use prost::Message;
    use sluice_p4runtime::proto::p4::config::v1 as p4info;
    let bench = Bench::start(BFRT, P4INFO, &[0]).await;
    let mut controller = bench.controller(10).await;
    assert!(controller.pushed().await.is_none());
    let experimental = controller.capabilities().await.experimental.unwrap();
    assert_eq!(experimental.type_url, "type.googleapis.com/p4.config.v1.PkgInfo");
    let own = bench.config().p4info.unwrap().pkg_info.unwrap();
    assert_eq!(p4info::PkgInfo::decode(&experimental.value[..]).unwrap().arch, own.arch);
}
