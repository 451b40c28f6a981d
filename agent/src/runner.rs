//! The thread that runs the engine on a network interface.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use sluice_ports::{Event, Interface, Poller, Pulse, RxBatch, TxBatch, Waker};

use crate::clock::Clock;
use crate::control::{Load, SharedState, locked};
use crate::{Engine, Frames};

/// The interval of periodic work: reporting the load, and reopening a lost interface.
const PERIODIC_INTERVAL: Duration = Duration::from_millis(100);

/// Moves frames between an interface and the engine.
pub struct Runner {
    engine: Engine,
    interface: Interface,
    poller: Poller,
    shared: Arc<SharedState>,
    started: Instant,
    clock: Clock,
    is_draining: Arc<AtomicBool>,
    is_ending: Arc<AtomicBool>,
    rx: RxBatch,
    tx: TxBatch,
    out: Frames,
}

/// Controls the engine's thread from other threads.
#[derive(Clone)]
pub struct Handle {
    is_draining: Arc<AtomicBool>,
    is_ending: Arc<AtomicBool>,
    waker: Waker,
}

impl Handle {
    /// Wakes the engine's thread, so that the thread applies the state shared with the controller's interface.
    pub fn wake(&self) {
        self.waker.wake();
    }

    /// Orders the thread to drain: it accepts no new connections, and ends when no connection is left.
    pub fn drain(&self) {
        self.is_draining.store(true, Relaxed);
        self.waker.wake();
    }

    /// Returns a `Pulse`, with which another thread can check that the engine's thread still runs.
    pub fn pulse(&self) -> Pulse {
        Pulse::new(self.waker.clone())
    }

    /// Orders the thread to end.
    pub fn end(&self) {
        self.is_ending.store(true, Relaxed);
        self.waker.wake();
    }
}

impl Runner {
    /// Creates the runner of an engine on an open interface.
    ///
    /// # Errors
    /// Fails if the kernel refuses the resources for waiting.
    pub fn new(engine: Engine, interface: Interface, shared: Arc<SharedState>) -> io::Result<Runner> {
        let poller = Poller::new()?;
        if let Some(socket) = interface.raw_fd() {
            poller.add(socket, 0)?;
        }
        Ok(Runner {
            engine,
            interface,
            poller,
            shared,
            started: Instant::now(),
            clock: Clock::default(),
            is_draining: Arc::default(),
            is_ending: Arc::default(),
            rx: RxBatch::default(),
            tx: TxBatch::default(),
            out: Frames::default(),
        })
    }

    /// Returns a handle that controls the thread.
    pub fn handle(&self) -> Handle {
        let (is_draining, is_ending) = (Arc::clone(&self.is_draining), Arc::clone(&self.is_ending));
        Handle { is_draining, is_ending, waker: self.poller.waker() }
    }

    /// Runs until the handle orders the end. While draining, it ends as soon as no connection is left.
    ///
    /// # Errors
    /// Fails if the kernel cannot wait for events.
    pub fn run(&mut self) -> io::Result<()> {
        let (mut events, mut periodic_work_due) = (Vec::new(), Instant::now());
        while !self.is_ending.load(Relaxed) {
            let due = self.started + Duration::from_nanos(self.clock.elapsed_at(self.engine.due()));
            let timeout = due.min(periodic_work_due).saturating_duration_since(Instant::now());
            self.poller.wait(&mut events, Some(timeout))?;
            if events.iter().any(|event| matches!(event, Event::Ready(_))) {
                self.receive();
            }
            if events.contains(&Event::Woken) {
                self.apply_shared_state();
            }
            let now = self.now();
            self.engine.poll(now, &mut self.out);
            self.send();
            if periodic_work_due <= Instant::now() {
                periodic_work_due = Instant::now() + PERIODIC_INTERVAL;
                self.do_periodic_work();
            }
            if self.is_draining.load(Relaxed) && self.engine.connections() == 0 {
                break;
            }
        }
        self.do_periodic_work();
        Ok(())
    }

    fn now(&mut self) -> u64 {
        let elapsed = u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let (now, pause) = self.clock.read(elapsed);
        if pause > 0 {
            self.engine.note_pause(pause);
            tracing::warn!(ms = pause / 1_000_000, "the agent was not running; its timeouts are extended by this time");
        }
        now
    }

    fn apply_shared_state(&mut self) {
        let now = self.now();
        if let Some(configuration) = locked(&self.shared.next).take() {
            self.engine.configure(now, configuration);
        }
        if let Some(shared) = locked(&self.shared.others).take() {
            self.engine.share(now, shared);
        }
        if self.is_draining.load(Relaxed) {
            self.engine.drain(now, &mut self.out);
        }
    }

    fn receive(&mut self) {
        self.interface.receive(&mut self.rx);
        let now = self.now();
        for frame in self.rx.frames() {
            self.engine.receive(now, frame, &mut self.out);
        }
        self.rx.clear();
    }

    fn send(&mut self) {
        for frame in self.out.iter() {
            self.tx.push(frame, &[]);
        }
        self.out.clear();
        self.interface.send(&mut self.tx);
    }

    fn do_periodic_work(&mut self) {
        let (connections, waiting) = (self.engine.connections(), self.engine.waiting());
        let is_draining = self.is_draining.load(Relaxed);
        *locked(&self.shared.load) = Load { connections, waiting, memory: self.engine.memory(), is_draining };
        let now = self.now();
        *locked(&self.shared.learned) = self.engine.learned(now);
        self.interface.update_kernel_drops();
        if self.interface.was_down() {
            self.interface.check();
        }
        if !self.interface.is_open() && self.interface.reopen().is_ok() {
            tracing::info!(interface = self.interface.name(), "interface is back");
            if let Some(socket) = self.interface.raw_fd()
                && self.poller.add(socket, 0).is_err()
            {
                self.interface.close();
            }
        }
    }
}
