//! The machine: a program and all its state.

use std::sync::Arc;

use crate::drops::Drops;
use crate::layout::Slots;
use crate::machine::Machine;
use crate::options::Options;
use crate::phv::Head;
use crate::pipeline::Pass;
use crate::program::Program;
use crate::sink::Sink;
use crate::trace::TraceEvent;

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
