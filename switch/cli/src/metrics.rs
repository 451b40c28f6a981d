//! Serves the statistics of the switch to Prometheus over HTTP.

use std::fmt;
use std::io;
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use sluice_p4runtime::statistics::engine_entries;
use sluice_serve::metrics::{counters, gauges};
use tokio::net::TcpListener;

use crate::statistics::{PortStatistics, Statistics};

/// Replies to `GET /metrics` as long as the future is polled.
///
/// # Errors
/// Fails if the listener fails.
pub async fn serve(listener: TcpListener, statistics: Arc<Statistics>) -> io::Result<()> {
    sluice_serve::metrics::serve(listener, Metrics(statistics)).await
}

struct Metrics(Arc<Statistics>);

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Metrics")
    }
}

impl Collector for Metrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let Statistics { ports, device, no_such_port } = &*self.0;
        let encoder = &mut encoder;
        let version = vec![("version", env!("CARGO_PKG_VERSION").to_owned())];
        gauges(encoder, "build_info", "The switch's version", [(version, 1.0)])?;
        let uptime = device.now() as f64 / 1e9;
        gauges(encoder, "uptime_seconds", "Time since the start", [(vec![], uptime)])?;
        encode_ports(encoder, ports, &device.ports_up())?;
        let help = "Packets that the program sent to a port without interface";
        counters(encoder, "no_such_port", help, [(vec![], no_such_port.load(std::sync::atomic::Ordering::Relaxed))])?;
        for (name, value) in engine_entries(&device.engine_counts()) {
            counters(
                encoder,
                &format!("engine_{name}"),
                "Packets in the engine, by what became of them",
                [(vec![], value)],
            )?;
        }
        for (name, value) in device.counters().entries() {
            counters(
                encoder,
                &format!("controller_{name}"),
                "What went to and came from controllers",
                [(vec![], value)],
            )?;
        }
        let streams = device.open_streams() as f64;
        gauges(encoder, "controller_streams", "Open streams of controllers", [(vec![], streams)])?;
        let tables = device.occupancy();
        let label = |name: &str| vec![("table", name.to_owned())];
        let entries = tables.iter().map(|table| (label(&table.name), table.entries as f64));
        gauges(encoder, "table_entries", "Entries in a table", entries)?;
        let sizes = tables.iter().map(|table| (label(&table.name), table.size as f64));
        gauges(encoder, "table_size", "Entries that a table can hold; 0 for any number", sizes)
    }
}

fn encode_ports(encoder: &mut DescriptorEncoder<'_>, ports: &[PortStatistics], up: &[(u32, bool)]) -> fmt::Result {
    let labels = |port: &PortStatistics| vec![("port", port.number.to_string()), ("interface", port.interface.clone())];
    let is_up = |port: &PortStatistics| f64::from(u8::from(up.contains(&(port.number, true))));
    let links = ports.iter().map(|port| (labels(port), is_up(port)));
    gauges(encoder, "port_up", "Whether the port's interface and link are up", links)?;
    let snapshots: Vec<Vec<_>> = ports.iter().map(|port| port.counters.snapshot().entries().collect()).collect();
    let names = snapshots.first().into_iter().flatten().map(|(name, _)| *name);
    for (place, name) in names.enumerate() {
        let values = ports.iter().zip(&snapshots).map(|(port, counts)| (labels(port), counts[place].1));
        counters(encoder, &format!("port_{name}"), "What the port has carried or lost", values)?;
    }
    Ok(())
}
