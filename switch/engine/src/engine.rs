//! The engine, which contains a program and all its state.

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

/// A program with all its state: tables, registers, counters, meters and queues of messages.
pub struct Engine {
    pub(crate) program: Arc<Program>,
    slots: Box<Slots>,
    pub(crate) machine: Machine,
    /// The bytes of the deparsed headers of the packet that is being processed.
    head: Head,
}

impl Engine {
    /// Creates an engine whose tables contain the entries and default actions that the program declares. All other
    /// state is empty or zero.
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
            // Compile to machine code before the first packet, so that no packet has to wait for the compiler.
            let _ = program.native();
        }
        let mut engine = Engine { program, slots, machine, head };
        engine.install_const_entries();
        engine
    }

    /// Returns the program that the engine runs.
    #[must_use]
    pub fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// Processes one frame that was received at `port`, with all its resubmissions, recirculations and clones, and
    /// passes the resulting frames to `out`. `now` is the time in nanoseconds since the caller's origin and must not
    /// decrease from call to call. The program reads `now / 1000` as `ingress_global_timestamp`.
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

    /// Returns `Ok` if machine code processes packets. Traced packets are interpreted in any case.
    ///
    /// # Errors
    /// The reason why all packets are interpreted.
    pub fn compiled(&self) -> Result<(), &str> {
        if self.machine.options.interpret {
            return Err("the options select the interpreter");
        }
        self.program.native().map(|_| ())
    }

    /// Returns the numbers of packets received, emitted and dropped (by cause) since the engine was created.
    #[must_use]
    pub fn drops(&self) -> Drops {
        self.machine.drops
    }

    /// Turns the trace of packets on or off, and discards the events that [`Engine::take_trace`] has not returned. A
    /// new engine's trace is off. While the trace is on, all packets are interpreted.
    pub fn set_trace(&mut self, on: bool) {
        self.machine.trace = on.then(Vec::new);
    }

    /// Returns and clears the trace events recorded since the last call.
    pub fn take_trace(&mut self) -> Vec<TraceEvent> {
        self.machine.trace.as_mut().map(std::mem::take).unwrap_or_default()
    }
}

/// Returns an array of zeros. It is allocated on the heap, because it is too large for the stack.
fn fresh_slots() -> Box<Slots> {
    let zeros: Box<[u64]> = vec![0; std::mem::size_of::<Slots>() / 8].into_boxed_slice();
    // The vector was created with the length of the array, so the conversion cannot fail.
    zeros.try_into().unwrap_or_else(|_| unreachable!("the length is the array's"))
}
