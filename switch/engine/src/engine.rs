//! The machine: a program and all its state.

use std::sync::Arc;

use crate::program::Program;
use crate::trace::TraceEvent;

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
}

impl Default for Options {
    fn default() -> Self {
        Options { drop_port: 511, seed: 1, max_passes: 64, max_digests: 65_536 }
    }
}

/// Takes the frames that leave.
pub trait Sink {
    /// A frame leaves by `port`; it is `head` followed by `payload`. Both are valid only during the call.
    fn emit(&mut self, port: u32, head: &[u8], payload: &[u8]);
}

impl Sink for Vec<(u32, Vec<u8>)> {
    fn emit(&mut self, port: u32, head: &[u8], payload: &[u8]) {
        self.push((port, [head, payload].concat()));
    }
}

/// Packets that ended inside the engine, by cause, and totals. All cumulative.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Drops {
    /// Frames given to `receive`.
    pub received: u64,
    /// Frames handed to the sink.
    pub emitted: u64,
    /// `egress_spec` was the drop port at the end of ingress.
    pub ingress: u64,
    /// `egress_spec` was the drop port at the end of egress.
    pub egress: u64,
    /// Multicast to a group without replicas (or one that does not exist).
    pub empty_multicast: u64,
    /// A clone to a session that does not exist.
    pub unknown_clone_session: u64,
    /// Resubmitted or recirculated more often than `Options::max_passes`.
    pub too_many_passes: u64,
    /// Digest messages that found the queue full (the packet itself goes on).
    pub digests_lost: u64,
    /// `assert` or `assume` did not hold: the packet is dropped (BMv2 aborts).
    pub assertions: u64,
}

/// A program and all its state.
pub struct Engine {}

impl Engine {
    /// A fresh engine: const entries in place, everything else empty or zero.
    #[must_use]
    pub fn new(_program: Arc<Program>, _options: Options) -> Engine {
        todo!()
    }
    /// The program it runs.
    #[must_use]
    pub fn program(&self) -> &Arc<Program> {
        todo!()
    }
    /// Runs one frame to its end. `now`: nanoseconds since the caller's origin, never decreasing.
    /// `ingress_global_timestamp` is `now / 1000`.
    pub fn receive(&mut self, _now: u64, _port: u32, _frame: &[u8], _out: &mut impl Sink) {
        todo!()
    }
    /// Totals and drops by cause.
    #[must_use]
    pub fn drops(&self) -> Drops {
        todo!()
    }
    /// Turns the per-packet trace on or off (off at first; costs nothing while off).
    pub fn set_trace(&mut self, _on: bool) {
        todo!()
    }
    /// The trace since the last call.
    pub fn take_trace(&mut self) -> Vec<TraceEvent> {
        todo!()
    }
}
