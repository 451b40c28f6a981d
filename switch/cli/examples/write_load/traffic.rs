//! Frames at a steady rate into the switch, and how many of them come out again.

use std::error::Error;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use sluice_ports::{Input, Interface, Options, TxBatch};

use crate::veths::packets;

/// How often frames are sent.
const TICK: Duration = Duration::from_micros(500);
/// Frames that are sent at once at most: what a late tick owes beyond that is not sent at all, so that it is the switch that is
/// measured, not how unevenly this thread runs.
const BURST: u64 = 512;
/// What is under way has come out after this time.
const SETTLED: Duration = Duration::from_millis(500);

/// Traffic by one interface, out by any of some others.
pub struct Traffic {
    interface: Interface,
    to: Vec<String>,
}

/// What has become of the frames.
pub struct Carried {
    /// Frames that reached the switch's interface.
    pub sent: u64,
    /// Of these, frames that came out nowhere.
    pub lost: u64,
    /// How long it took to send them.
    pub seconds: f64,
}

impl Traffic {
    pub fn new(from: &str, to: &[&str]) -> Result<Self, Box<dyn Error>> {
        let interface = Interface::open_with(from, Options { input: Input::Calls, ..Options::default() })?;
        Ok(Self { interface, to: to.iter().map(|name| (*name).to_owned()).collect() })
    }

    /// Sends so many frames a second while `work` runs.
    pub fn during<T>(&mut self, rate: u32, work: impl FnOnce() -> T) -> Result<(T, Carried), Box<dyn Error>> {
        let before = self.count()?;
        let stop = AtomicBool::new(false);
        let interface = &mut self.interface;
        let (done, seconds) = std::thread::scope(|scope| {
            let sender = scope.spawn(|| send(interface, f64::from(rate), &stop));
            let done = work();
            stop.store(true, Relaxed);
            (done, sender.join())
        });
        let seconds = seconds.map_err(|_| "the sender failed")?;
        std::thread::sleep(SETTLED);
        let after = self.count()?;
        let sent = after.0 - before.0;
        Ok((done, Carried { sent, lost: sent - (after.1 - before.1), seconds }))
    }

    /// Frames that went to the switch, and that came from it.
    fn count(&self) -> Result<(u64, u64), Box<dyn Error>> {
        let mut received = 0;
        for name in &self.to {
            received += packets(name)?.received;
        }
        Ok((packets(self.interface.name())?.sent, received))
    }
}

/// Sends until told to stop; the result is how many seconds that took.
fn send(interface: &mut Interface, rate: f64, stop: &AtomicBool) -> f64 {
    let mut frame = vec![0, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 7, 8, 0];
    frame.resize(64, 0);
    let mut batch = TxBatch::default();
    let started = Instant::now();
    let mut accounted = 0;
    while !stop.load(Relaxed) {
        let due = (started.elapsed().as_secs_f64() * rate) as u64;
        for _ in 0..(due - accounted).min(BURST) {
            batch.push(&frame, &[]);
        }
        accounted = due;
        interface.send(&mut batch);
        std::thread::sleep(TICK);
    }
    started.elapsed().as_secs_f64()
}
