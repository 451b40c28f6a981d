//! The options of an engine.

/// Settings that are fixed when an engine starts.
#[derive(Debug, Clone)]
pub struct Options {
    /// The value of `egress_spec` that drops a packet (BMv2's default: 511).
    pub drop_port: u32,
    /// Seed of `random()`.
    pub seed: u64,
    /// The most passes of a packet: one that is resubmitted or recirculated more often is dropped and counted.
    pub max_passes: u32,
    /// The most digest messages that wait for the control plane; further ones are dropped and counted.
    pub max_digests: usize,
    /// Whether instructions are interpreted instead of compiled to machine code.
    pub interpret: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options { drop_port: 511, seed: 1, max_passes: 64, max_digests: 65_536, interpret: false }
    }
}
