//! Counters and meters as they are written and read.

/// A counter cell; both are always counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(C)]
#[allow(missing_docs)]
pub struct CounterData {
    pub packets: u64,
    pub bytes: u64,
}

/// A two-rate three-colour meter's configuration: per second, in packets or bytes.
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
    /// Its configuration (`None`: default, always green).
    pub config: Option<MeterConfig>,
    /// Packets and bytes that were given each colour: green, yellow, red.
    pub counts: [CounterData; 3],
}
