//! Metrics for Prometheus over HTTP, in the text format 0.0.4 or, if the scraper requests it, in OpenMetrics.

use std::fmt;
use std::io;
use std::sync::Arc;

use axum::Router;
use axum::http::HeaderMap;
use axum::http::header::{ACCEPT, CONTENT_TYPE};
use axum::routing::get;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;
use tokio::net::TcpListener;

const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Replies to `GET /metrics` as long as the future is polled.
///
/// # Errors
/// Fails if the listener fails.
pub async fn serve(listener: TcpListener, metrics: impl Collector) -> io::Result<()> {
    let mut registry = Registry::with_prefix("sluice");
    registry.register_collector(Box::new(metrics));
    let registry = Arc::new(registry);
    let answer = move |headers: HeaderMap| {
        let mut body = String::new();
        // Writing to a string cannot fail.
        let _ = text::encode(&mut body, &registry);
        let accepted = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
        std::future::ready(if accepts_openmetrics(accepted) {
            ([(CONTENT_TYPE, OPENMETRICS)], body)
        } else {
            ([(CONTENT_TYPE, TEXT)], plain(&body))
        })
    };
    axum::serve(listener, Router::new().route("/metrics", get(answer))).await
}

/// Returns whether the `Accept` headers list OpenMetrics without a version, or in version 1.0.0 or later. The metrics
/// endpoint of the Python controller chooses its format in the same way.
fn accepts_openmetrics<'v>(accepted: impl Iterator<Item = &'v str>) -> bool {
    accepted.flat_map(|value| value.split(',')).any(|range| {
        let mut parts = range.split(';').map(str::trim);
        let is_openmetrics = parts.next() == Some("application/openmetrics-text");
        let version = parts.find_map(|parameter| parameter.strip_prefix("version="));
        is_openmetrics && version.is_none_or(|version| !version.trim_matches('"').starts_with("0."))
    })
}

/// Converts OpenMetrics to Prometheus' text format, in which a family of counters has the same name as its samples.
fn plain(openmetrics: &str) -> String {
    let mut text = String::with_capacity(openmetrics.len());
    let mut help = None;
    for line in openmetrics.lines() {
        if line.starts_with("# HELP ") {
            help = Some(line);
        } else if let Some(kind) = line.strip_prefix("# TYPE ") {
            let (name, suffix) = match kind.split_once(' ') {
                Some((name, "counter")) => (name, "_total"),
                Some((name, _)) => (name, ""),
                None => (kind, ""),
            };
            for metadata in help.take().into_iter().chain([line]) {
                text += &metadata.replacen(name, &format!("{name}{suffix}"), 1);
                text.push('\n');
            }
        } else if !line.starts_with('#') {
            text += line;
            text.push('\n');
        }
    }
    text
}

/// The labels of a sample, as pairs of name and value.
pub type Labels = Vec<(&'static str, String)>;

/// Encodes a family of counters, each with labels and a value.
///
/// # Errors
/// Fails if the encoder fails.
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

/// Encodes a family of gauges, each with labels and a value.
///
/// # Errors
/// Fails if the encoder fails.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_accept_header_selects_the_format() {
        // The `Accept` headers that Prometheus 2.24, 2.50 and 3.0 and a browser send.
        let old = "application/openmetrics-text; version=0.0.1,text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
        let new =
            "application/openmetrics-text;version=1.0.0;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,*/*";
        let newest = "text/plain;version=0.0.4;q=0.5,application/openmetrics-text;version=\"1.0.0\";q=0.4";
        for (accepted, expected) in [
            (&[][..], false),
            (&["*/*"], false),
            (&["text/html,application/xhtml+xml,*/*;q=0.8"], false),
            (&["text/plain"], false),
            (&[old], false),
            (&[new], true),
            (&[newest], true),
            (&["application/openmetrics-text"], true),
            (&["text/plain", "application/openmetrics-text"], true),
        ] {
            assert_eq!(accepts_openmetrics(accepted.iter().copied()), expected, "{accepted:?}");
        }
    }

    #[test]
    fn families_have_the_names_of_their_samples() {
        let openmetrics = "# HELP a_b A counter named a_b.\n# TYPE a_b counter\na_b_total{x=\"# 1\"} 2\n\
            # HELP g A gauge.\n# TYPE g gauge\n# UNIT g s\ng 1\n# EOF\n";
        let text = "# HELP a_b_total A counter named a_b.\n# TYPE a_b_total counter\na_b_total{x=\"# 1\"} 2\n\
            # HELP g A gauge.\n# TYPE g gauge\ng 1\n";
        assert_eq!(plain(openmetrics), text);
    }
}
