//! The agent's metrics for Prometheus.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Instant;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use sluice_ports::Counters;
use sluice_serve::metrics::{Labels, counters, gauges};
use tokio::net::TcpListener;

use crate::control::{SharedState, status};
use crate::proto;

/// The sources of the metrics.
pub struct Metrics {
    /// The engine's state.
    pub shared: Arc<SharedState>,
    /// The interface's counters.
    pub interface: Arc<Counters>,
    /// The time at which the agent started.
    pub started: Instant,
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Metrics")
    }
}

/// Serves `GET /metrics` for as long as the future is polled.
///
/// # Errors
/// Fails if the listener fails.
pub async fn serve(listener: TcpListener, metrics: Metrics) -> io::Result<()> {
    sluice_serve::metrics::serve(listener, metrics).await
}

type Values = Vec<(Labels, u64)>;

/// Name and help text of a metric of a service, and the function that reads its value.
type ServiceMetric = (&'static str, &'static str, fn(&proto::ServiceStatus) -> u64);

/// The metrics that have a single value per service.
const SERVICE_METRICS: [ServiceMetric; 10] = [
    ("handshakes", "SYNs answered", |service| service.handshakes),
    ("spliced", "Connections that the data plane took over", |service| service.spliced),
    ("orders_repeated", "Splice orders repeated", |service| service.orders_repeated),
    ("orders_failed", "Splice orders that were refused or not confirmed", |service| service.orders_failed),
    ("resets", "Connections that a client or server reset while the agent forwarded them", |service| service.resets),
    (
        "lost",
        "Connections lost with bytes that the agent had acknowledged, or because their former agent is gone",
        |service| service.lost,
    ),
    ("strays", "Segments of no connection", |service| service.strays),
    ("guesses_right", "Guessed connections whose server is in the group that the rules select", |service| {
        service.guesses_right
    }),
    ("guesses_wrong", "Guessed connections whose server is in another group", |service| service.guesses_wrong),
    (
        "guesses_reset",
        "Guessed connections that were reset because the wrong server had already sent data",
        |service| service.guesses_reset,
    ),
];

impl Collector for Metrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let encoder = &mut encoder;
        let status = status(&self.shared, self.started);
        let loads = [
            ("connections", "Connections that the agent forwards", status.connections),
            ("waiting", "Requests that are incomplete", status.waiting),
            ("memory_bytes", "Memory of the connections in bytes", status.memory),
            ("generation", "Generation of the rules", u64::from(status.generation)),
        ];
        gauges(encoder, "agent_uptime_seconds", "Seconds since the start", [(vec![], status.uptime_ms as f64 / 1e3)])?;
        for (name, help, value) in loads {
            gauges(encoder, &format!("agent_{name}"), help, [(vec![], value as f64)])?;
        }
        for (name, value) in self.interface.snapshot().entries() {
            counters(
                encoder,
                &format!("agent_port_{name}"),
                "Packets and bytes that the interface has carried or lost",
                [(vec![], value)],
            )?;
        }
        if status.services.is_empty() {
            return Ok(());
        }
        let of = |service: &proto::ServiceStatus| ("service", service.name.clone());
        for (name, help, value) in SERVICE_METRICS {
            let values = status.services.iter().map(|service| (vec![of(service)], value(service)));
            counters(encoder, &format!("agent_{name}"), help, values)?;
        }
        let each = |values: &dyn Fn(&proto::ServiceStatus) -> Values| -> Values {
            status.services.iter().flat_map(values).collect()
        };
        let hits = each(&|service| {
            let rules = service.rules.iter().map(|rule| (rule.name.clone(), rule.hits));
            let all = rules.chain([("default".to_owned(), service.by_default)]);
            all.map(|(rule, hits)| (vec![of(service), ("rule", rule)], hits)).collect()
        });
        counters(encoder, "agent_rule_hits", "Requests that a rule matched", hits)?;
        let group = |value: fn(&proto::GroupStatus) -> u64| {
            each(&|service| {
                let groups = service.groups.iter();
                groups.map(|group| (vec![of(service), ("group", group.name.clone())], value(group))).collect()
            })
        };
        counters(encoder, "agent_group_opened", "Connections opened to a group", group(|group| group.opened))?;
        counters(encoder, "agent_group_failed", "Connections that no server accepted", group(|group| group.failed))?;
        let refused = each(&|service| {
            let refused = service.refused.iter();
            refused.map(|(why, count)| (vec![of(service), ("why", why.clone())], *count)).collect()
        });
        counters(encoder, "agent_refused", "Requests refused", refused)
    }
}
