//! Counters and meters as they are written and read.

/// A counter cell. It always counts both packets and bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(C)]
#[allow(missing_docs)]
pub struct CounterData {
    pub packets: u64,
    pub bytes: u64,
}

/// The configuration of a two-rate three-colour meter. Rates are in packets or bytes per second, bursts in packets or
/// bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct MeterConfig {
    pub cir: u64,
    pub cburst: u64,
    pub pir: u64,
    pub pburst: u64,
}

/// A meter as read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MeterView {
    /// The configuration; `None` for the default, with which every packet is green.
    pub config: Option<MeterConfig>,
    /// Packets and bytes of each colour: green, yellow, red.
    pub counts: [CounterData; 3],
}
