//! The options with which an engine is created.

/// Settings that cannot change after an engine is created.
#[derive(Debug, Clone)]
pub struct Options {
    /// The value of `egress_spec` that drops a packet. BMv2's default is 511.
    pub drop_port: u32,
    /// The seed of `random()`.
    pub seed: u64,
    /// The maximum number of passes through the pipeline that a received frame may cause after its first pass, by
    /// resubmission, recirculation or cloning. Packets that need further passes are dropped and counted.
    pub max_passes: u32,
    /// The maximum number of digest messages that wait for the control plane. Further messages are dropped and counted.
    pub max_digests: usize,
    /// Whether instructions are interpreted instead of compiled to machine code.
    pub interpret: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options { drop_port: 511, seed: 1, max_passes: 64, max_digests: 65_536, interpret: false }
    }
}
