//! The machine: a program and all its state.

use std::sync::Arc;

use crate::layout::Slots;
use crate::machine::Machine;
use crate::phv::Head;
use crate::pipeline::Pass;
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
    /// Instructions are interpreted instead of compiled to machine code.
    pub interpret: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options { drop_port: 511, seed: 1, max_passes: 64, max_digests: 65_536, interpret: false }
    }
}

/// What waits to leave by a port.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Packets: `enq_qdepth` and `deq_qdepth`.
    pub packets: u32,
    /// Microseconds that one that is sent now waits, as far as is known: `deq_timedelta`.
    pub wait_us: u32,
}

/// Takes the frames that leave.
pub trait Sink {
    /// A frame leaves by `port`; it is `head` followed by `payload`. Both are valid only during the call.
    fn emit(&mut self, port: u32, head: &[u8], payload: &[u8]);

    /// What waits to leave by `port`: nothing, where nobody knows. Asked as a packet's egress begins, if the program reads the
    /// answer.
    fn backlog(&mut self, port: u32) -> Backlog {
        let _ = port;
        Backlog::default()
    }
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
    /// A loop in the parser or in an action that would not end.
    pub endless_loops: u64,
}

/// A program and all its state.
pub struct Engine {
    pub(crate) program: Arc<Program>,
    slots: Box<Slots>,
    pub(crate) machine: Machine,
    /// Deparsed headers.
    head: Head,
}

impl Engine {
    /// A fresh engine: const entries in place, everything else empty or zero.
    #[must_use]
    pub fn new(program: Arc<Program>, options: Options) -> Engine {
        let mut slots = fresh_slots();
        for &(slot, value) in &program.init {
            slots[usize::from(slot)] = value;
        }
        slots[usize::from(program.standard.drop_port)] = options.drop_port.into();
        let compile = !options.interpret;
        let machine = Machine::new(&program, options);
        let head = Head::new(program.most_head_bytes());
        if compile {
            // compiled now, so that no packet waits for it
            let _ = program.native();
        }
        let mut engine = Engine { program, slots, machine, head };
        engine.install_const_entries();
        engine
    }

    /// The program it runs.
    #[must_use]
    pub fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// Runs one frame to its end. `now`: nanoseconds since the caller's origin, never decreasing.
    /// `ingress_global_timestamp` is `now / 1000`.
    pub fn receive(&mut self, now: u64, port: u32, frame: &[u8], out: &mut impl Sink) {
        self.machine.now = now;
        self.machine.drops.received += 1;
        let code = if self.machine.trace.is_some() { &self.program.traced } else { &self.program.code };
        let interpret = self.machine.options.interpret || self.machine.trace.is_some();
        let native = if interpret { None } else { self.program.native().ok() };
        let mut pass = Pass {
            native,
            p: &self.program,
            code,
            s: &mut self.slots,
            m: &mut self.machine,
            head: &mut self.head,
            port,
            budget: 0,
        };
        pass.frame(frame, out);
    }

    /// Whether packets run as machine code (but for those that are traced); otherwise, why they are interpreted.
    pub fn compiled(&self) -> Result<(), &str> {
        if self.machine.options.interpret {
            return Err("the interpreter was asked for");
        }
        self.program.native().map(|_| ())
    }

    /// Totals and drops by cause.
    #[must_use]
    pub fn drops(&self) -> Drops {
        self.machine.drops
    }

    /// Turns the per-packet trace on or off (off at first; costs nothing while off).
    pub fn set_trace(&mut self, on: bool) {
        self.machine.trace = on.then(Vec::new);
    }

    /// The trace since the last call.
    pub fn take_trace(&mut self) -> Vec<TraceEvent> {
        self.machine.trace.as_mut().map(std::mem::take).unwrap_or_default()
    }
}

/// An array of zeros that never was on the stack.
fn fresh_slots() -> Box<Slots> {
    let zeros: Box<[u64]> = vec![0; std::mem::size_of::<Slots>() / 8].into_boxed_slice();
    // the length is the array's by construction
    zeros.try_into().unwrap_or_else(|_| unreachable!("the length is the array's"))
}
