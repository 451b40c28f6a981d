//! Metrics for Prometheus, over HTTP.

use std::fmt;
use std::io;
use std::sync::Arc;

use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::routing::get;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;
use tokio::net::TcpListener;

const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Answers `GET /metrics` for as long as it is polled.
///
/// # Errors
/// When the listener fails.
pub async fn serve(listener: TcpListener, metrics: impl Collector) -> io::Result<()> {
    let mut registry = Registry::with_prefix("sluice");
    registry.register_collector(Box::new(metrics));
    let registry = Arc::new(registry);
    let answer = move || {
        let mut body = String::new();
        // Writing into a string does not fail.
        let _ = text::encode(&mut body, &registry);
        std::future::ready(([(CONTENT_TYPE, OPENMETRICS)], body))
    };
    axum::serve(listener, Router::new().route("/metrics", get(answer))).await
}

/// Names and values of labels.
pub type Labels = Vec<(&'static str, String)>;

/// A family of counters, by their labels.
///
/// # Errors
/// When the encoder fails.
pub fn counters(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    values: impl IntoIterator<Item = (Labels, u64)>,
) -> fmt::Result {
    let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
    for (labels, value) in values {
        if labels.is_empty() {
            return ConstCounter::new(value).encode(family);
        }
        ConstCounter::new(value).encode(family.encode_family(&labels)?)?;
    }
    Ok(())
}

/// A family of gauges, by their labels.
///
/// # Errors
/// When the encoder fails.
pub fn gauges(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    values: impl IntoIterator<Item = (Labels, f64)>,
) -> fmt::Result {
    let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
    for (labels, value) in values {
        if labels.is_empty() {
            return ConstGauge::new(value).encode(family);
        }
        ConstGauge::new(value).encode(family.encode_family(&labels)?)?;
    }
    Ok(())
}
