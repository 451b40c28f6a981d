//! The options of an engine.

/// What is fixed when an engine starts.
#[derive(Debug, Clone)]
pub struct Options {
    /// `egress_spec` of this value drops (BMv2's default: 511).
    pub drop_port: u32,
    /// Seed of `random()`.
    pub seed: u64,
    /// A packet that was resubmitted or recirculated more often than this is dropped and counted.
    pub max_passes: u32,
    /// Digest messages kept for the control plane; more are dropped and counted.
    pub max_digests: usize,
    /// Instructions are interpreted instead of compiled to machine code.
    pub interpret: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options { drop_port: 511, seed: 1, max_passes: 64, max_digests: 65_536, interpret: false }
    }
}
