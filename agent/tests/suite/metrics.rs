//! Tests of the metrics that the agent serves to Prometheus.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Instant;

use sluice_agent::control::{Control, SharedState};
use sluice_agent::metrics::{Metrics, serve};
use sluice_agent::proto::agent_server::Agent as _;
use sluice_agent::proto::{Configuration, Service};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tonic::Request;

const CONTENT: &str = r#"{"protocol": "http", "default": {"to": "all"},
    "rules": [{"name": "no", "match": {"path": "/admin"}, "refuse": 403}]}"#;

/// Returns the answer to a scrape with the Accept header `accept`.
async fn scrape(accept: &str) -> String {
    let shared = Arc::new(SharedState::default());
    let service = Service {
        name: "shop".to_owned(),
        address: "10.0.0.100".to_owned(),
        port: 80,
        agent_port: 8080,
        groups: [("all".to_owned(), "10.9.0.1:80".to_owned())].into(),
        content: CONTENT.to_owned(),
        ..Service::default()
    };
    let configuration = Configuration { services: vec![service], cookie_key: vec![1; 16], ..Configuration::default() };
    Control::new(Arc::clone(&shared), || {}).configure(Request::new(configuration)).await.unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let metrics = Metrics { shared, interface: Arc::default(), started: Instant::now() };
    let server = tokio::spawn(serve(listener, metrics));
    let mut client = TcpStream::connect(address).await.unwrap();
    let request = format!("GET /metrics HTTP/1.1\r\nHost: a\r\n{accept}Connection: close\r\n\r\n");
    client.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).await.unwrap();
    server.abort();
    answer
}

/// Returns the metric names in the lines that begin with a keyword (such as `# TYPE `). If the keyword is empty,
/// returns the names in the samples.
fn names<'t>(text: &'t str, keyword: &str) -> HashSet<&'t str> {
    let lines = text.lines().filter_map(|line| line.strip_prefix(keyword));
    lines.filter_map(|line| line.split([' ', '{']).next().filter(|name| name.starts_with("sluice_"))).collect()
}

#[tokio::test]
async fn every_sample_has_help_and_type() {
    let answer = scrape("").await;
    assert!(answer.contains("content-type: text/plain; version=0.0.4; charset=utf-8\r\n"), "{answer}");
    let samples = names(&answer, "");
    assert!(samples.contains("sluice_agent_handshakes_total") && samples.contains("sluice_agent_connections"));
    let (help, kind) = (names(&answer, "# HELP "), names(&answer, "# TYPE "));
    assert!(samples.is_subset(&help) && samples.is_subset(&kind), "{:?}", samples.difference(&help));
    assert_eq!(help, kind);
    assert!(!answer.contains("# EOF"), "{answer}");
}

#[tokio::test]
async fn openmetrics_is_served_on_request() {
    let answer = scrape("Accept: application/openmetrics-text;version=1.0.0,text/plain;q=0.5\r\n").await;
    let kind = "content-type: application/openmetrics-text; version=1.0.0; charset=utf-8\r\n";
    assert!(answer.contains(kind) && answer.contains("# EOF"), "{answer}");
    assert!(names(&answer, "# TYPE ").contains("sluice_agent_handshakes"), "{answer}");
}
