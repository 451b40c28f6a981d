//! Tests the metrics of the gateway for Prometheus.

use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::common::{Bench, P4INFO, server};
use crate::stand_in::{BFRT, Driver};
use p4::entity::Entity;
use p4::set_forwarding_pipeline_config_request::Action;
use p4::update::Type;
use sluice_p4runtime::proto::p4::v1 as p4;

async fn scrape(bench: &Bench) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let serving = tokio::spawn(sluice_tofino::metrics::serve(listener, Arc::clone(&bench.gateway)));
    let mut connection = TcpStream::connect(address).await.unwrap();
    connection.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await.unwrap();
    let mut page = String::new();
    connection.read_to_string(&mut page).await.unwrap();
    serving.abort();
    page.split_once("\r\n\r\n").unwrap().1.to_owned()
}

/// Returns the errors that `promtool check metrics` reports; an empty text if the tool is not installed.
fn objections(page: &str) -> String {
    use std::process::{Command, Stdio};
    let start = page.find("# HELP").unwrap();
    // The chunked encoding of HTTP writes the length of each chunk between the lines. The filter removes these lengths.
    let text: String = page[start..]
        .lines()
        .filter(|line| line.starts_with(['#', 's']))
        .fold(String::new(), |all, line| all + line + "\n");
    let Ok(mut promtool) = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
    else {
        return String::new();
    };
    std::io::Write::write_all(&mut promtool.stdin.take().unwrap(), text.as_bytes()).unwrap();
    let output = promtool.wait_with_output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[tokio::test]
async fn metrics_count_requests_and_driver_calls() {
    let (bench, mut controller) = Bench::ready().await;
    controller.insert(server(1)).await;
    controller.write(Type::Insert, server(1)).await.unwrap_err();
    controller.entries("servers").await;
    let page = scrape(&bench).await;
    for line in [
        "sluice_driver_up 1.0",
        "sluice_driver_connections_total 1",
        "sluice_requests_total{request=\"write\",outcome=\"answered\"} 2",
        "sluice_requests_total{request=\"read\",outcome=\"answered\"} 1",
        "sluice_requests_total{request=\"set_pipeline\",outcome=\"answered\"} 1",
        "sluice_controller_updates_total 1",
        "sluice_controller_updates_refused_total 1",
        "sluice_shadow_size{kind=\"entries\"} 1.0",
        "sluice_controller_streams 1.0",
    ] {
        assert!(page.contains(&format!("{line}\n")), "no {line} in {page}");
    }
    assert!(page.contains("sluice_driver_calls_total{call=\"write\"}"), "{page}");
    assert!(page.contains("sluice_driver_call_seconds_total{call=\"write\"}"), "{page}");
    assert_eq!(objections(&page), "");
    bench.served.abort();
    bench.driver.hang_up();
    while controller.try_read(Entity::TableEntry(p4::TableEntry::default())).await.is_ok() {
        tokio::task::yield_now().await;
    }
    let page = scrape(&bench).await;
    assert!(page.contains("sluice_requests_total{request=\"read\",outcome=\"refused\"} 1\n"), "{page}");
}

#[tokio::test]
async fn driver_calls_are_counted_over_reconnections_and_loads() {
    let bench = Bench::with_settings(Driver::new(BFRT), P4INFO, |settings| settings.reload = true).await;
    let mut controller = bench.controller(10).await;
    controller.push(Action::VerifyAndCommit, Some(bench.config())).await.unwrap();
    let writes = |bench: &Bench| bench.gateway.driver_calls().write.ended().0;
    let loaded = writes(&bench);
    controller.insert(server(1)).await;
    assert_eq!(writes(&bench), loaded + 1);
    assert_eq!(bench.gateway.statistics().connections.get(), 1, "a load is not a reconnection");
    bench.driver.hang_up();
    bench.driver.connected(3).await;
    bench.gateway.connected().await;
    assert_eq!(bench.gateway.statistics().connections.get(), 2);
    let connected = writes(&bench);
    controller.insert(server(2)).await;
    assert_eq!(writes(&bench), connected + 1);
}
