//! The switch as its parts share it: the engine behind one lock, the streams, and what waits between the threads.
//!
//! The data-plane thread calls [`Device::receive`] and [`Device::take_packet_outs`]; everything else belongs to the
//! P4Runtime server. The engine is locked for one batch of packets or for one short request at a time, and never while
//! anything is waited for.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use parking_lot::{Mutex, MutexGuard};
use sluice_engine::{Backlog, Digest, Drops, Options, Sink, TableId, TableInfo, TraceEvent};

use crate::controllers::Controllers;
use crate::digests::List;
use crate::entity::Target;
use crate::fault::{Fault, Outcome};
use crate::pipeline::{Pipeline, Running};
use crate::ports::Ports;
use crate::proto::p4::v1 as p4;
use crate::read::no_pipeline;
use crate::statistics::{Counters, sum};

/// Packets from controllers that may wait for the data plane.
const PACKET_OUTS: usize = 1024;

/// What is fixed when the switch starts.
#[derive(Debug, Clone)]
pub struct Config {
    /// P4Runtime's device id.
    pub device_id: u64,
    /// The port that stands for the controller, if any.
    pub cpu_port: Option<u32>,
    /// Options of every engine that is started.
    pub engine: Options,
}

/// The programs: at work, and saved for a later commit.
#[derive(Default)]
pub(crate) struct Programs {
    pub running: Option<Running>,
    /// Set by VERIFY_AND_SAVE; control requests go here until it is committed.
    pub saved: Option<Running>,
    /// The ports of the switch.
    pub ports: Ports,
    /// Counts of the engines that ran before this one.
    pub past: Drops,
}

impl Programs {
    /// The program that control requests are about.
    pub fn addressed(&mut self) -> Option<&mut Running> {
        self.saved.as_mut().or(self.running.as_mut())
    }

    /// What a write works on.
    ///
    /// # Errors
    /// `FAILED_PRECONDITION` without a program, or without its P4Info.
    pub fn target(&mut self, now: u64) -> Outcome<Target<'_>> {
        let running = self.saved.as_mut().or(self.running.as_mut()).ok_or_else(no_pipeline)?;
        let binding = running.pipeline.binding.as_ref().ok_or_else(no_pipeline)?;
        let Running { engine, replication, .. } = running;
        Ok(Target { engine, binding, replication, ports: &self.ports, now })
    }
}

/// One switch.
pub struct Device {
    config: Config,
    started: Instant,
    pub(crate) programs: Mutex<Programs>,
    pub(crate) controllers: Controllers,
    /// Keeps control requests in an order; held across engine locks, never by the data plane.
    pub(crate) gate: Arc<tokio::sync::Mutex<()>>,
    /// Keeps pipeline requests in an order, one program being compiled at a time; held before the gate is asked for.
    pub(crate) compiling: Arc<tokio::sync::Mutex<()>>,
    packet_outs: Mutex<VecDeque<Vec<u8>>>,
    waker: OnceLock<Box<dyn Fn() + Send + Sync>>,
    trace: bool,
}

/// How full a table is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Occupancy {
    /// Its name in the program.
    pub name: String,
    /// Entries it has.
    pub entries: usize,
    /// Entries it can hold; 0 for any number.
    pub size: u64,
}

/// Takes aside what goes to the CPU port.
struct CpuTap<'a, S> {
    cpu_port: Option<u32>,
    sink: &'a mut S,
    packets: Vec<Vec<u8>>,
}

impl<S: Sink> Sink for CpuTap<'_, S> {
    fn emit(&mut self, port: u32, head: &[u8], payload: &[u8]) {
        if Some(port) == self.cpu_port {
            self.packets.push([head, payload].concat());
        } else {
            self.sink.emit(port, head, payload);
        }
    }

    fn backlog(&mut self, port: u32) -> Backlog {
        if Some(port) == self.cpu_port { Backlog::default() } else { self.sink.backlog(port) }
    }
}

impl Device {
    /// A switch without a program.
    pub fn new(config: Config, trace: bool) -> Self {
        Self {
            started: Instant::now(),
            programs: Mutex::default(),
            controllers: Controllers::new(config.device_id),
            gate: Arc::default(),
            compiling: Arc::default(),
            packet_outs: Mutex::default(),
            waker: OnceLock::new(),
            trace,
            config,
        }
    }

    /// What was fixed at the start.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Nanoseconds since the start.
    pub fn now(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Puts a program to work, with empty state, in place of the one there is.
    pub fn start(&self, pipeline: Arc<Pipeline>) {
        self.replace(self.fresh(pipeline));
    }

    /// A program with empty state.
    pub(crate) fn fresh(&self, pipeline: Arc<Pipeline>) -> Running {
        let mut running = Running::start(pipeline, self.config.engine.clone());
        running.engine.set_trace(self.trace);
        running
    }

    /// Says that the switch has a port, and whether its link is up. Packets after this one see every group and every
    /// replica that depends on it changed, and none half-changed.
    /// True if that is news.
    pub fn set_port(&self, port: u32, up: bool) -> bool {
        let mut programs = self.programs.lock();
        let Programs { running, saved, ports, .. } = &mut *programs;
        if !ports.set(port, up) {
            return false;
        }
        for program in [running, saved].into_iter().flatten() {
            follow(program, ports);
        }
        true
    }

    /// The ports, and which of them are up.
    pub fn ports_up(&self) -> Vec<(u32, bool)> {
        self.programs.lock().ports.iter().collect()
    }

    /// How full the tables of the program at work are.
    pub fn occupancy(&self) -> Vec<Occupancy> {
        let programs = self.programs.lock();
        let Some(running) = &programs.running else { return Vec::new() };
        let tables = running.pipeline.program.tables();
        let occupancy = |(id, info): (TableId, &TableInfo)| Occupancy {
            name: info.name.clone(),
            entries: running.engine.table_len(id),
            size: info.size,
        };
        tables.map(occupancy).collect()
    }

    /// Streams of controllers that are open.
    pub fn open_streams(&self) -> usize {
        self.controllers.streams.count()
    }

    /// Keeps a program for a later commit.
    pub(crate) fn save(&self, mut next: Running) {
        let mut programs = self.programs.lock();
        follow(&mut next, &programs.ports);
        let old = programs.saved.replace(next);
        drop(programs);
        drop(old);
    }

    /// Puts a program to work with the state it has.
    pub(crate) fn replace(&self, mut next: Running) {
        let mut programs = self.programs.lock();
        follow(&mut next, &programs.ports);
        programs.saved = None;
        let old = programs.running.replace(next);
        if let Some(old) = &old {
            programs.past = sum(&programs.past, &old.engine.drops());
        }
        drop(programs);
        // Freeing large state takes its time; packets need not wait for it.
        drop(old);
        self.controllers.digests.lock().clear();
        self.controllers.timer.notify_one();
    }

    /// Counts of all packets since the start, whatever program they met.
    pub fn engine_counts(&self) -> Drops {
        let programs = self.programs.lock();
        let now = programs.running.as_ref().map(|running| running.engine.drops()).unwrap_or_default();
        sum(&programs.past, &now)
    }

    /// Counts of everything between engine and controllers.
    pub fn counters(&self) -> &Counters {
        &self.controllers.counters
    }

    /// Runs frames that came in by `port` through the program, in order. What leaves by a port goes to `sink`; what
    /// leaves by the CPU port goes to the controllers. With `trace`, what happened to all of them is added there, up to the
    /// queues of the controllers.
    pub fn receive<'f>(
        &self,
        port: u32,
        frames: impl ExactSizeIterator<Item = &'f [u8]>,
        sink: &mut impl Sink,
        mut trace: Option<&mut Vec<TraceEvent>>,
    ) {
        let mut programs = self.programs.lock();
        let Some(running) = &mut programs.running else {
            drop(programs);
            self.controllers.counters.no_program.add(frames.len() as u64);
            note_loss(trace, "packet", Some("there is no program"));
            return;
        };
        let mut tap = CpuTap { cpu_port: self.config.cpu_port, sink, packets: Vec::new() };
        for frame in frames {
            running.engine.receive(self.now(), port, frame, &mut tap);
        }
        if let Some(trace) = &mut trace {
            trace.append(&mut running.engine.take_trace());
        }
        let digests = running.engine.take_digests();
        let packets = tap.packets;
        if packets.is_empty() && digests.is_empty() {
            // A request that waits gets its turn now, not when the lock happens to be free as it looks.
            MutexGuard::unlock_fair(programs);
            return;
        }
        let pipeline = Arc::clone(&running.pipeline);
        let lists = self.gather(running, digests);
        MutexGuard::unlock_fair(programs);
        for packet in packets {
            let loss = self.controllers.packet_in(pipeline.binding.as_ref(), &packet);
            note_loss(trace.as_deref_mut(), "packet-in", loss);
        }
        for list in lists {
            let loss = self.controllers.digest_list(pipeline.binding.as_ref(), list);
            note_loss(trace.as_deref_mut(), "list of digests", loss);
        }
    }

    /// Adds digest messages to their buffers; the result is the lists that became full.
    fn gather(&self, running: &Running, messages: Vec<Digest>) -> Vec<List> {
        if messages.is_empty() {
            return Vec::new();
        }
        let Some(binding) = &running.pipeline.binding else { return Vec::new() };
        let now = self.now();
        let mut digests = self.controllers.digests.lock();
        let before = digests.deadline();
        let lists = messages
            .into_iter()
            .filter_map(|message| {
                let config = running.engine.digest_config(message.digest)?;
                let digest = binding.digest_of(message.digest)?;
                digests.add(now, config, message, |fields| digest.encode(fields))
            })
            .collect();
        if digests.deadline() != before {
            self.controllers.timer.notify_one();
        }
        lists
    }

    /// Has the messages of digests that wait and are remembered follow the configurations of the program at work.
    pub(crate) fn follow_digests(&self) {
        let programs = self.programs.lock();
        let Some(running) = &programs.running else { return };
        self.controllers.digests.lock().configure(|digest| running.engine.digest_config(digest));
        drop(programs);
        self.controllers.timer.notify_one();
    }

    /// Has `wake` called whenever a packet from a controller waits. Can be set once.
    pub fn on_packet_out(&self, wake: impl Fn() + Send + Sync + 'static) {
        let _ = self.waker.set(Box::new(wake));
    }

    /// Packets from controllers, headers included, oldest first; they enter by the CPU port.
    pub fn take_packet_outs(&self) -> Vec<Vec<u8>> {
        self.packet_outs.lock().drain(..).collect()
    }

    /// Queues a controller's packet for the data plane.
    pub(crate) fn queue_packet_out(&self, packet: &p4::PacketOut) -> Outcome {
        if self.config.cpu_port.is_none() {
            return Err(Fault::precondition("the switch has no CPU port; start it with --cpu-port"));
        }
        let pipeline = self.programs.lock().running.as_ref().map(|running| Arc::clone(&running.pipeline));
        let binding = pipeline.as_ref().and_then(|pipeline| pipeline.binding.as_ref());
        let binding = binding.ok_or_else(no_pipeline)?;
        let frame = binding.packet_out_frame(packet)?;
        let mut waiting = self.packet_outs.lock();
        if waiting.len() >= PACKET_OUTS {
            return Err(Fault::exhausted(
                "too many packets wait for the data plane, this one is dropped; send fewer at a time",
            ));
        }
        waiting.push_back(frame);
        drop(waiting);
        if let Some(wake) = self.waker.get() {
            wake();
        }
        Ok(())
    }
}

/// Adds to a trace what is lost, if anything is, and why.
fn note_loss(trace: Option<&mut Vec<TraceEvent>>, what: &str, why: Option<&str>) {
    if let (Some(trace), Some(why)) = (trace, why) {
        trace.push(TraceEvent::Drop(format!("{what}: {why}")));
    }
}

pub(crate) fn follow(program: &mut Running, ports: &Ports) {
    if let Err(error) = program.follow(ports) {
        tracing::error!(%error, "a group could not follow its ports");
    }
}
