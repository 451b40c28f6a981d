//! What the switch has carried and lost, as JSON. Every packet is in exactly one place of it.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use serde_json::{Map, Value, json};
use sluice_p4runtime::Device;
use sluice_p4runtime::statistics::engine_entries;
use sluice_ports::Counters;

/// A port as statistics see it.
pub struct PortStatistics {
    /// Its number.
    pub number: u32,
    /// Its interface.
    pub interface: String,
    /// Whether the interface is there.
    pub present: Arc<AtomicBool>,
    /// Its counters.
    pub counters: Arc<Counters>,
}

/// Everything that counts.
pub struct Statistics {
    /// The ports, in order of the command line.
    pub ports: Vec<PortStatistics>,
    /// The engine and the controllers' side.
    pub device: Arc<Device>,
    /// Packets that the program sent to a port without interface.
    pub no_such_port: Arc<AtomicU64>,
}

fn object<'n>(entries: impl IntoIterator<Item = (&'n str, u64)>) -> Map<String, Value> {
    entries.into_iter().map(|(name, count)| (name.to_owned(), json!(count))).collect()
}

impl Statistics {
    /// All counters at this moment.
    pub fn to_json(&self) -> Value {
        let ports: Map<String, Value> = self
            .ports
            .iter()
            .map(|port| {
                let mut counters = Map::new();
                counters.insert("interface".to_owned(), json!(port.interface));
                counters.insert("present".to_owned(), json!(port.present.load(Relaxed)));
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

    /// Replaces the file's content; readers see either the old or the new one.
    ///
    /// # Errors
    /// When the file or one beside it cannot be written.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let mut beside = path.as_os_str().to_owned();
        beside.push(".new");
        fs::write(&beside, format!("{}\n", self.to_json()))?;
        fs::rename(&beside, path)
    }
}
