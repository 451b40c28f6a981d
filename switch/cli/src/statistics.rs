//! The numbers of packets that the switch received, sent and lost, as JSON. Every lost packet is counted in exactly one
//! counter, by the cause of the loss.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use serde_json::{Map, Value, json};
use sluice_p4runtime::Device;
use sluice_p4runtime::statistics::engine_entries;
use sluice_ports::Counters;

/// The statistics of one port.
pub struct PortStatistics {
    /// The port's number.
    pub number: u32,
    /// The name of the port's interface.
    pub interface: String,
    /// Whether the interface exists.
    pub is_present: Arc<AtomicBool>,
    /// The port's counters.
    pub counters: Arc<Counters>,
}

/// The sources of all counters in the statistics.
pub struct Statistics {
    /// The ports, in the order of the command line.
    pub ports: Vec<PortStatistics>,
    /// The device, with the counts of the engine and of the P4Runtime server.
    pub device: Arc<Device>,
    /// The number of packets that the program sent to a port without an interface.
    pub no_such_port: Arc<AtomicU64>,
}

fn object<'n>(entries: impl IntoIterator<Item = (&'n str, u64)>) -> Map<String, Value> {
    entries.into_iter().map(|(name, count)| (name.to_owned(), json!(count))).collect()
}

impl Statistics {
    /// Returns the current values of all counters.
    pub fn to_json(&self) -> Value {
        let ports: Map<String, Value> = self
            .ports
            .iter()
            .map(|port| {
                let mut counters = Map::new();
                counters.insert("interface".to_owned(), json!(port.interface));
                counters.insert("present".to_owned(), json!(port.is_present.load(Relaxed)));
                counters.extend(object(port.counters.snapshot().entries()));
                (port.number.to_string(), Value::Object(counters))
            })
            .collect();
        json!({
            "device_id": self.device.config().device_id,
            "uptime_s": self.device.now() as f64 / 1e9,
            "ports": ports,
            "no_such_port": self.no_such_port.load(Relaxed),
            "engine": object(engine_entries(&self.device.engine_counts())),
            "controller": object(self.device.counters().entries()),
        })
    }

    /// Replaces the content of the file atomically.
    ///
    /// # Errors
    /// Fails if the file, or the temporary file beside it, cannot be written.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let mut temporary = path.as_os_str().to_owned();
        temporary.push(".new");
        fs::write(&temporary, format!("{}\n", self.to_json()))?;
        fs::rename(&temporary, path)
    }
}
