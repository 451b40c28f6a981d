//! Values with which the control plane reads and writes counters and meters.

/// The value of a counter cell. Every cell counts both packets and bytes, independently of the counter's type.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(C)]
#[allow(missing_docs)]
pub struct CounterData {
    pub packets: u64,
    pub bytes: u64,
}

/// The configuration of a two-rate three-colour meter. Rates are in packets/s or bytes/s, and bursts in packets or
/// bytes, depending on the meter's type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct MeterConfig {
    pub cir: u64,
    pub cburst: u64,
    pub pir: u64,
    pub pburst: u64,
}

/// The configuration and the counts of a meter, as the control plane reads them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MeterView {
    /// The configuration; `None` is the default configuration. With it every packet is green, except that the direct
    /// meter of a default entry then writes no colour.
    pub config: Option<MeterConfig>,
    /// The packets and bytes that were coloured green, yellow and red, in this order.
    pub counts: [CounterData; 3],
}
