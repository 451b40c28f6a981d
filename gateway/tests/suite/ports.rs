//! Tests the front-panel ports that the gateway configures in the driver.

use std::sync::Arc;

use sluice_tofino::bfrt;
use sluice_tofino::client::{Address, Driver as Client};
use sluice_tofino::front_panel::FrontPanel;
use sluice_tofino::proto::{TableData, TableKey, data_field::Value, update::Type};

use crate::common::{Bench, P4INFO};
use crate::stand_in::{BFRT, Driver};
use sluice_p4runtime::proto::p4::v1::set_forwarding_pipeline_config_request::Action;

const FILE: &str = "[ports.\"1/0\"]\nspeed = \"100G\"\nfec = \"reed-solomon\"\nautonegotiation = \"off\"\n\n[ports.7]\nspeed = \"10G\"\n";

/// Returns a driver whose front-panel port 1/0 has the number 132 in the device.
fn driver() -> Arc<Driver> {
    let driver = Driver::new(BFRT);
    let mut store = driver.store.lock();
    let key = TableKey { fields: vec![bfrt::exact(1, *b"1/0")] };
    let data = TableData { fields: vec![bfrt::stream(1, 132_u32.to_be_bytes())], ..Default::default() };
    let id = store.table("$PORT_STR_INFO").id;
    store.write(Type::Insert, &bfrt::entry(id, key, data)).unwrap();
    drop(store);
    driver
}

/// Returns the ports that are configured in the driver, with their settings.
fn configured_ports(driver: &Driver) -> Vec<(u32, Vec<String>)> {
    let store = driver.store.lock();
    let text = |field: &sluice_tofino::proto::DataField| match &field.value {
        Some(Value::StrVal(text)) => text.clone(),
        Some(Value::BoolVal(flag)) => flag.to_string(),
        other => panic!("{other:?}"),
    };
    let rows = store.rows("$PORT").entries.values();
    rows.map(|(key, data)| (crate::stand_in::store::key_number(key), data.fields.iter().map(text).collect())).collect()
}

fn panel(text: &str) -> FrontPanel {
    FrontPanel::parse("ports.toml", text).unwrap()
}

#[tokio::test]
async fn ports_are_configured_by_front_panel_names_and_untouched_if_correct() {
    let driver = driver();
    let bench = Bench::with_settings(Arc::clone(&driver), P4INFO, |settings| settings.front_panel = panel(FILE)).await;
    let expected = |port, speed: &str, fec: &str, autonegotiation: &str| {
        (port, [speed, fec, autonegotiation, "BF_LPBK_NONE", "true"].map(str::to_owned).to_vec())
    };
    let ten = expected(7, "BF_SPEED_10G", "BF_FEC_TYP_NONE", "PM_AN_DEFAULT");
    let hundred = expected(132, "BF_SPEED_100G", "BF_FEC_TYP_REED_SOLOMON", "PM_AN_FORCE_DISABLE");
    assert_eq!(configured_ports(&driver), [ten.clone(), hundred]);
    // The file of a second gateway changes one port. The second gateway must leave the other port unchanged.
    bench.stop().await;
    driver.requests.lock().clear();
    let changed = FILE.replace("reed-solomon", "firecode");
    let _bench =
        Bench::with_settings(Arc::clone(&driver), P4INFO, |settings| settings.front_panel = panel(&changed)).await;
    assert_eq!(*driver.requests.lock(), [2], "deleted and added again, in one request");
    let hundred = expected(132, "BF_SPEED_100G", "BF_FEC_TYP_FIRECODE", "PM_AN_FORCE_DISABLE");
    assert_eq!(configured_ports(&driver), [ten, hundred]);
}

#[tokio::test]
async fn ports_are_configured_again_after_a_load() {
    let driver = Driver::new(BFRT);
    let bench = Bench::with_settings(Arc::clone(&driver), P4INFO, |settings| {
        (settings.reload, settings.front_panel) = (true, panel("[ports.7]\nspeed = \"10G\"\n"));
    })
    .await;
    let before = configured_ports(&driver);
    let mut controller = bench.controller(10).await;
    controller.push(Action::VerifyAndCommit, Some(bench.config())).await.unwrap();
    assert_eq!((driver.loads.lock().len(), configured_ports(&driver)), (1, before));
}

#[tokio::test]
async fn ports_that_the_device_lacks_are_reported_with_their_line() {
    let driver = driver();
    let (uri, _served) = driver.serve("127.0.0.1:0").await;
    let (client, _events) = Client::connect(Address { uri, device: 0, client: 1, program: None }).await.unwrap();
    for (text, expected) in [
        (
            "[ports.7]\nspeed = \"10G\"\n[ports.\"40/0\"]\nspeed = \"10G\"\n",
            "line 3: port 40/0: the front panel has no such port",
        ),
        ("\n[ports.600]\nspeed = \"10G\"\n", "line 2: port 600: the driver refuses it"),
    ] {
        let status = panel(text).apply(&client).await.unwrap_err();
        assert!(status.message().starts_with("--ports ports.toml: "), "{}", status.message());
        assert!(status.message().contains(expected), "{}", status.message());
    }
}
