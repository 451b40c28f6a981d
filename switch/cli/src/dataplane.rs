//! The data-plane thread: receives frames from the interfaces, runs them through the program, and sends the results, in
//! order.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::{Duration, Instant};

use sluice_engine::{Backlog, Sink, TraceEvent};
use sluice_p4runtime::Device;
use sluice_ports::{BATCH, Event, Loss, OpenError, Poller, Pulse, Received, RxBatch, TxBatch, Waker};

use crate::args::TraceFormat;
use crate::captures::Captures;
use crate::files::{Input, Inputs};
use crate::link::Link;
use crate::queues::Queues;
use crate::statistics::PortStatistics;
use crate::trace;

/// Time between two runs of the periodic tasks, while any of the tasks is necessary. The tasks search for vanished
/// interfaces, flush captures, and read the kernel's drop counts.
const CHORES: Duration = Duration::from_millis(250);
/// With busy polling, the thread queries the kernel for other events after this number of rounds over the rings of all
/// ports, or after this number of forwarded batches.
const SPINS: usize = 256;

/// The state of one port.
struct Port {
    number: u32,
    link: Link,
    is_present: Arc<AtomicBool>,
    out: TxBatch,
    captures: Option<Captures>,
    /// The reason why the last attempt to open the interface again failed; `None` if there was no attempt, if it
    /// succeeded, or if the interface does not exist.
    last_failure: Option<String>,
}

impl Port {
    fn mark_gone(&self) {
        tracing::warn!(interface = self.link.name(), "interface is gone; waiting for it to come back");
        self.is_present.store(false, Relaxed);
    }

    /// Tries to open the interface again. Logs each new reason for a failure once. Does not log that the interface does
    /// not exist.
    fn try_to_reopen(&mut self, poller: &Poller, place: usize) {
        let last_failure = match self.link.reopen(poller, place) {
            Ok(()) => {
                tracing::warn!(interface = self.link.name(), "interface is back");
                self.is_present.store(true, Relaxed);
                None
            }
            Err(OpenError::Missing { .. }) => None,
            Err(error) => Some(error.to_string()),
        };
        if let Some(error) = &last_failure
            && self.last_failure != last_failure
        {
            tracing::error!(interface = self.link.name(), error, "interface cannot be opened yet; trying again");
        }
        self.last_failure = last_failure;
    }
}

/// The state of the data-plane thread.
pub struct DataPlane {
    device: Arc<Device>,
    poller: Poller,
    ports: Vec<Port>,
    /// For each port number, the port's index in `ports`; `None` if no port has the number.
    by_number: Vec<Option<usize>>,
    queues: Queues,
    no_such_port: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    /// Whether the statistics are read while the switch runs.
    watched: bool,
    busy_poll: bool,
    /// The number of packets traced so far, and the format of the trace; `None` if packets are not traced.
    traced: Option<(u64, TraceFormat)>,
    /// The capture files whose frames replace those that interfaces receive; `None` without such files, and after their
    /// reading has begun.
    files: Option<Inputs>,
}

/// A sink that queues the frames that the program sends, by port.
struct Outputs<'a> {
    ports: &'a mut [Port],
    by_number: &'a [Option<usize>],
    queues: &'a mut Queues,
    no_such_port: &'a AtomicU64,
}

impl Sink for Outputs<'_> {
    fn emit(&mut self, port: u32, head: &[u8], payload: &[u8]) {
        match self.by_number.get(port as usize).copied().flatten() {
            Some(place) => self.ports[place].out.push(head, payload),
            None => {
                self.no_such_port.fetch_add(1, Relaxed);
            }
        }
    }

    fn backlog(&mut self, port: u32) -> Backlog {
        let place = self.by_number.get(port as usize).copied().flatten();
        place.map_or_else(Backlog::default, |place| self.queues.backlog(place, &self.ports[place].link))
    }
}

/// A handle with which another thread ends the data-plane thread.
#[derive(Clone)]
pub struct Stop {
    flag: Arc<AtomicBool>,
    waker: Waker,
}

impl Stop {
    /// Makes the data-plane thread end after the current batch.
    pub fn stop(&self) {
        self.flag.store(true, Relaxed);
        self.waker.wake();
    }

    /// Returns a handle with which another thread checks that the data-plane thread still works.
    pub fn pulse(&self) -> Pulse {
        Pulse::new(self.waker.clone())
    }
}

/// The options of the data-plane thread.
#[derive(Debug, Clone, Copy)]
pub struct RunOptions {
    /// The format in which the thread logs the processing of each packet; `None` for no trace.
    pub trace: Option<TraceFormat>,
    /// Whether the thread keeps the statistics current, because they are read while the switch runs.
    pub watched: bool,
    /// Whether the thread polls for frames without sleeping.
    pub busy_poll: bool,
}

impl DataPlane {
    /// Creates a data plane. Each port consists of number, link and captures. `files` are the input files.
    ///
    /// # Errors
    /// Fails if the kernel refuses to create the poller, or to add the socket of an interface to it.
    pub fn new(
        device: Arc<Device>,
        ports: Vec<(u32, Link, Option<Captures>)>,
        files: Option<Inputs>,
        options: RunOptions,
    ) -> io::Result<Self> {
        let poller = Poller::new()?;
        let highest = ports.iter().map(|(number, ..)| *number).max();
        let mut by_number = vec![None; highest.map_or(0, |number| number as usize + 1)];
        let mut running = Vec::with_capacity(ports.len());
        for (place, (number, link, captures)) in ports.into_iter().enumerate() {
            if let Some(socket) = link.raw_fd() {
                poller.add(socket, place)?;
            }
            by_number[number as usize] = Some(place);
            let is_present = Arc::new(AtomicBool::new(true));
            running.push(Port { number, link, is_present, out: TxBatch::default(), captures, last_failure: None });
        }
        let waker = poller.waker();
        device.on_packet_out(move || waker.wake());
        Ok(Self {
            device,
            poller,
            queues: Queues::new(running.len()),
            ports: running,
            by_number,
            no_such_port: Arc::default(),
            stop: Arc::default(),
            watched: options.watched,
            busy_poll: options.busy_poll,
            traced: options.trace.map(|format| (0, format)),
            files,
        })
    }

    /// Returns a handle with which another thread ends this thread.
    pub fn stop_handle(&self) -> Stop {
        Stop { flag: Arc::clone(&self.stop), waker: self.poller.waker() }
    }

    /// Returns the counters of the ports.
    pub fn port_statistics(&self) -> Vec<PortStatistics> {
        let port = |port: &Port| PortStatistics {
            number: port.number,
            interface: port.link.name().to_owned(),
            is_present: Arc::clone(&port.is_present),
            counters: Arc::clone(port.link.counters()),
        };
        self.ports.iter().map(port).collect()
    }

    /// Returns the counter of packets that the program sent to a port without an interface.
    pub fn no_such_port(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.no_such_port)
    }

    /// Forwards packets until the thread is stopped.
    ///
    /// # Errors
    /// Fails if the kernel refuses to let the thread wait, or if the input files cannot be read.
    pub fn run(&mut self) -> io::Result<()> {
        let (mut rx, mut events) = (RxBatch::default(), Vec::new());
        let mut chores_due = Instant::now() + CHORES;
        let mut inputs = self.files.take().map(|files| files.start(self.poller.waker())).transpose()?;
        while !self.stop.load(Relaxed) {
            if self.busy_poll {
                self.spin(&mut rx);
            }
            let chores = self.has_chores();
            let timeout = match self.busy_poll {
                true => Some(Duration::ZERO),
                false => chores.then(|| chores_due.saturating_duration_since(Instant::now())),
            };
            self.poller.wait(&mut events, timeout)?;
            for event in &events {
                match *event {
                    Event::Ready(place) => self.receive(place, &mut rx),
                    Event::Woken => {
                        self.inject_packet_outs();
                        if let Some(receiver) = &inputs
                            && self.inject_files(receiver)?
                        {
                            inputs = None;
                            tracing::info!("all input files are at their end");
                        }
                    }
                }
            }
            // The clock is read only if the result matters.
            if chores && Instant::now() >= chores_due {
                self.do_chores();
                chores_due = Instant::now() + CHORES;
            }
        }
        self.do_chores();
        Ok(())
    }

    /// Forwards the frames in the rings of all ports. Returns after [`SPINS`] rounds over the rings, or earlier if
    /// [`SPINS`] batches have been forwarded. The caller then queries the kernel for other events.
    fn spin(&mut self, rx: &mut RxBatch) {
        let mut batches = 0;
        for _ in 0..SPINS {
            for place in 0..self.ports.len() {
                if self.ports[place].link.may_have_frames() {
                    self.receive(place, rx);
                    batches += 1;
                    if batches == SPINS {
                        return;
                    }
                }
            }
            std::hint::spin_loop();
        }
    }

    fn receive(&mut self, place: usize, rx: &mut RxBatch) {
        let port = &mut self.ports[place];
        let Link::Interface(interface) = &mut port.link else { return };
        match interface.receive(rx) {
            Received::Frames => {}
            Received::Down => tracing::info!(interface = interface.name(), "interface is down"),
            Received::Lost => port.mark_gone(),
        }
        if rx.is_empty() {
            return;
        }
        if let Some(captures) = &mut port.captures {
            captures.received(rx.frames());
        }
        let number = port.number;
        self.forward(number, rx.frames());
        rx.clear();
    }

    fn inject_packet_outs(&mut self) {
        let Some(cpu_port) = self.device.config().cpu_port else { return };
        for packets in self.device.take_packet_outs().chunks(BATCH) {
            self.forward(cpu_port, packets.iter().map(Vec::as_slice));
        }
    }

    /// Forwards at most one batch of the frames that were read from files, so that packet-outs are processed between
    /// two calls. Returns true at the end of the files.
    fn inject_files(&mut self, inputs: &Receiver<Input>) -> io::Result<bool> {
        for _ in 0..BATCH {
            let input = match inputs.try_recv() {
                Ok(input) => input,
                Err(TryRecvError::Empty) => return Ok(false),
                Err(TryRecvError::Disconnected) => return Ok(true),
            };
            let (place, frame) = input.map_err(io::Error::other)?;
            let port = &self.ports[place];
            port.link.counters().rx_packets.add(1);
            port.link.counters().rx_bytes.add(frame.len() as u64);
            let number = port.number;
            self.forward(number, std::iter::once(frame.as_slice()));
        }
        self.poller.waker().wake();
        Ok(false)
    }

    /// Runs frames through the program, and sends the resulting frames.
    fn forward<'f>(&mut self, number: u32, frames: impl ExactSizeIterator<Item = &'f [u8]>) {
        if self.traced.is_some() {
            frames.for_each(|frame| self.forward_traced(number, frame));
            return;
        }
        self.run_program(number, frames, None);
        self.send(|_, _| {});
    }

    /// Runs one frame through the program, sends the resulting frames, and logs the trace.
    fn forward_traced(&mut self, number: u32, frame: &[u8]) {
        let mut events = Vec::new();
        self.run_program(number, std::iter::once(frame), Some(&mut events));
        let cpu_port = self.device.config().cpu_port;
        let no_such_port = |event: &TraceEvent| match *event {
            TraceEvent::Emit { port, .. } if Some(port) != cpu_port && self.place(port).is_none() => {
                Some(TraceEvent::Drop(format!("no such port {port}")))
            }
            _ => None,
        };
        let mut losses: Vec<_> = events.iter().filter_map(no_such_port).collect();
        self.send(|port, loss| losses.push(TraceEvent::Drop(format!("port {port}: {loss}"))));
        events.append(&mut losses);
        if let Some((count, format)) = &mut self.traced {
            *count += 1;
            trace::log(*format, *count, number, &events);
        }
    }

    fn run_program<'f>(
        &mut self,
        number: u32,
        frames: impl ExactSizeIterator<Item = &'f [u8]>,
        trace: Option<&mut Vec<TraceEvent>>,
    ) {
        let mut outputs = Outputs {
            ports: &mut self.ports,
            by_number: &self.by_number,
            queues: &mut self.queues,
            no_such_port: &self.no_such_port,
        };
        self.device.receive(number, frames, &mut outputs, trace);
    }

    /// Sends the frames that the program has produced. Calls `lost` with the port for each frame that could not be
    /// sent.
    fn send(&mut self, mut lost: impl FnMut(u32, Loss)) {
        for port in &mut self.ports {
            if port.out.is_empty() {
                continue;
            }
            if let Some(captures) = &mut port.captures {
                captures.sent(port.out.frames());
            }
            port.link.send(&mut port.out, |loss| lost(port.number, loss));
        }
    }

    /// Returns the index in `ports` of the port with this number.
    fn place(&self, number: u32) -> Option<usize> {
        self.by_number.get(number as usize).copied().flatten()
    }

    fn has_chores(&self) -> bool {
        let has_chore = |port: &Port| {
            !port.link.is_open() || port.link.was_down() || port.captures.as_ref().is_some_and(Captures::is_unflushed)
        };
        self.watched || self.ports.iter().any(has_chore)
    }

    fn do_chores(&mut self) {
        for (place, port) in self.ports.iter_mut().enumerate() {
            if let Some(captures) = &mut port.captures {
                captures.flush();
            }
            port.link.update_kernel_drops();
            if port.link.was_down() && !port.link.is_still_there() {
                port.mark_gone();
            }
            if !port.link.is_open() {
                port.try_to_reopen(&self.poller, place);
            }
        }
    }
}
