//! The switch state that the server's tasks and the data-plane thread share: the engine behind one lock, the streams of
//! the controllers, and the packets queued between threads.
//!
//! The data-plane thread calls [`Device::receive`] and [`Device::take_packet_outs`]; the P4Runtime server calls the
//! other methods. A thread locks the engine for one batch of packets or for one short request, and never while it
//! waits.

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

/// Limit on the number of packets from controllers that wait for the data plane. Further packets are refused.
const PACKET_OUTS: usize = 1024;

/// Settings that are fixed when the switch starts.
#[derive(Debug, Clone)]
pub struct Config {
    /// The device id that P4Runtime requests for this switch must carry.
    pub device_id: u64,
    /// The data-plane port that connects the controllers, if the switch has one.
    pub cpu_port: Option<u32>,
    /// The options of every engine.
    pub engine: Options,
}

/// The running program and the program that is saved for a later commit.
#[derive(Default)]
pub(crate) struct Programs {
    pub running: Option<Running>,
    /// The program that `VERIFY_AND_SAVE` stored. Until it is committed, reads and writes apply to it, not to the
    /// running program.
    pub saved: Option<Running>,
    /// The ports of the switch and their link states.
    pub ports: Ports,
    /// Sums of the packet counts of all engines that ran before the current one.
    pub past: Drops,
}

impl Programs {
    /// Returns the program to which reads and writes apply: the saved program, or if no program is saved, the running
    /// one.
    pub fn addressed(&mut self) -> Option<&mut Running> {
        self.saved.as_mut().or(self.running.as_mut())
    }

    /// Returns the state that a write at the time `now` changes: that of the saved program, or if no program is saved,
    /// of the running one.
    ///
    /// # Errors
    /// `FAILED_PRECONDITION` if there is no program, or only a program without P4Info.
    pub fn target(&mut self, now: u64) -> Outcome<Target<'_>> {
        let running = self.saved.as_mut().or(self.running.as_mut()).ok_or_else(no_pipeline)?;
        let binding = running.pipeline.binding.as_ref().ok_or_else(no_pipeline)?;
        let Running { engine, replication, .. } = running;
        Ok(Target { engine, binding, replication, ports: &self.ports, now })
    }
}

/// One switch: its programs, its controllers, and the queues between its threads.
pub struct Device {
    config: Config,
    started: Instant,
    pub(crate) programs: Mutex<Programs>,
    pub(crate) controllers: Controllers,
    /// Lets one control request run at a time. A request holds this lock until it is finished, even while it unlocks
    /// the engine for packets. The data plane never acquires this lock.
    pub(crate) gate: Arc<tokio::sync::Mutex<()>>,
    /// Lets one pipeline request run at a time, so that one program is compiled at a time. A request acquires this lock
    /// before `gate`.
    pub(crate) compiling: Arc<tokio::sync::Mutex<()>>,
    packet_outs: Mutex<VecDeque<Vec<u8>>>,
    waker: OnceLock<Box<dyn Fn() + Send + Sync>>,
    trace: bool,
}

/// A table's number of entries and its size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Occupancy {
    /// The table's name in the program.
    pub name: String,
    /// Number of entries in the table.
    pub entries: usize,
    /// Number of entries that fit into the table; 0 if unlimited.
    pub size: u64,
}

/// A sink that collects the packets for the CPU port and passes all other packets to `sink`.
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
    /// Returns a switch without a program.
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

    /// Returns the settings that were fixed when the switch started.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Returns the nanoseconds since the switch started.
    pub fn now(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Replaces the running program by `pipeline`, which starts with empty state.
    pub fn start(&self, pipeline: Arc<Pipeline>) {
        self.replace(self.with_empty_state(pipeline));
    }

    /// Returns the program in a new engine with empty state.
    pub(crate) fn with_empty_state(&self, pipeline: Arc<Pipeline>) -> Running {
        let mut running = Running::start(pipeline, self.config.engine.clone());
        running.engine.set_trace(self.trace);
        running
    }

    /// Adds a port, or records that the port's link changed to up or down. No packet is processed while only some of
    /// the groups and replicas that depend on the port have changed. Returns whether the call changed anything.
    pub fn set_port(&self, port: u32, up: bool) -> bool {
        let mut programs = self.programs.lock();
        let Programs { running, saved, ports, .. } = &mut *programs;
        if !ports.set(port, up) {
            return false;
        }
        for program in [running, saved].into_iter().flatten() {
            apply_port_states(program, ports);
        }
        true
    }

    /// Returns all ports, each with a flag that is true if the port is up.
    pub fn ports_up(&self) -> Vec<(u32, bool)> {
        self.programs.lock().ports.iter().collect()
    }

    /// Returns the number of entries and the size of each table of the running program.
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

    /// Returns the number of streams that controllers have opened.
    pub fn open_streams(&self) -> usize {
        self.controllers.streams.count()
    }

    /// Stores a program for a later `COMMIT`.
    pub(crate) fn save(&self, mut next: Running) {
        let mut programs = self.programs.lock();
        apply_port_states(&mut next, &programs.ports);
        let old = programs.saved.replace(next);
        drop(programs);
        drop(old);
    }

    /// Replaces the running program and its state by `next`, which already has its state. Discards the saved program
    /// and the queued digest messages.
    pub(crate) fn replace(&self, mut next: Running) {
        let mut programs = self.programs.lock();
        apply_port_states(&mut next, &programs.ports);
        programs.saved = None;
        let old = programs.running.replace(next);
        if let Some(old) = &old {
            programs.past = sum(&programs.past, &old.engine.drops());
        }
        drop(programs);
        // Freeing a large state is slow. The lock is released first, so that packets do not wait for it.
        drop(old);
        self.controllers.digests.lock().clear();
        self.controllers.timer.notify_one();
    }

    /// Returns the counts of all packets since the switch started, under the current program and all earlier ones.
    pub fn engine_counts(&self) -> Drops {
        let programs = self.programs.lock();
        let now = programs.running.as_ref().map(|running| running.engine.drops()).unwrap_or_default();
        sum(&programs.past, &now)
    }

    /// Returns the counters of the messages between engine and controllers.
    pub fn counters(&self) -> &Counters {
        &self.controllers.counters
    }

    /// Runs frames that arrived at `port` through the program, in order. The controllers receive the packets for the
    /// CPU port and the digest lists that become due; `sink` receives all other packets. Appends the events of every
    /// packet to `trace`, if given, including losses at the queues of the controllers.
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
            trace_loss(trace, "packet", Some("there is no program"));
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
            // Passes the lock directly to a waiting request. Otherwise the request would get the lock only if it
            // happened to try while the lock is free.
            MutexGuard::unlock_fair(programs);
            return;
        }
        let pipeline = Arc::clone(&running.pipeline);
        let lists = self.collect_digests(running, digests);
        MutexGuard::unlock_fair(programs);
        for packet in packets {
            let loss = self.controllers.packet_in(pipeline.binding.as_ref(), &packet);
            trace_loss(trace.as_deref_mut(), "packet-in", loss);
        }
        for list in lists {
            let loss = self.controllers.digest_list(pipeline.binding.as_ref(), list);
            trace_loss(trace.as_deref_mut(), "list of digests", loss);
        }
    }

    /// Adds digest messages to the lists that wait. Returns the lists that must be sent now.
    fn collect_digests(&self, running: &Running, messages: Vec<Digest>) -> Vec<List> {
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

    /// Applies the running program's digest configurations to the messages that wait and to the messages that were sent
    /// but are not yet acknowledged.
    pub(crate) fn apply_digest_configs(&self) {
        let programs = self.programs.lock();
        let Some(running) = &programs.running else { return };
        self.controllers.digests.lock().configure(|digest| running.engine.digest_config(digest));
        drop(programs);
        self.controllers.timer.notify_one();
    }

    /// Registers `wake`, which the switch calls whenever it has queued a controller's packet for the data plane. Later
    /// calls have no effect.
    pub fn on_packet_out(&self, wake: impl Fn() + Send + Sync + 'static) {
        let _ = self.waker.set(Box::new(wake));
    }

    /// Removes and returns the queued packets from controllers, oldest first, each with its packet-out header. The data
    /// plane passes them to the program through the CPU port.
    pub fn take_packet_outs(&self) -> Vec<Vec<u8>> {
        self.packet_outs.lock().drain(..).collect()
    }

    /// Queues a controller's packet for the data plane, and wakes the data plane.
    ///
    /// # Errors
    /// `FAILED_PRECONDITION` without a CPU port or a program, `RESOURCE_EXHAUSTED` if `PACKET_OUTS` packets wait.
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

/// Appends to a trace that `what` (for example a packet) was lost for the reason `why`. Does nothing if `why` or the
/// trace is `None`.
fn trace_loss(trace: Option<&mut Vec<TraceEvent>>, what: &str, why: Option<&str>) {
    if let (Some(trace), Some(why)) = (trace, why) {
        trace.push(TraceEvent::Drop(format!("{what}: {why}")));
    }
}

/// Applies the link states of the ports to the groups and replicas of a program. Logs a failure.
pub(crate) fn apply_port_states(program: &mut Running, ports: &Ports) {
    if let Err(error) = program.apply_port_states(ports) {
        tracing::error!(%error, "a port's state could not be applied to a group");
    }
}
