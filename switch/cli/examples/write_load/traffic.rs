//! Sends frames to the switch at a steady rate, and counts the frames that return from it.

use std::error::Error;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use sluice_ports::{Input, Interface, Options, TxBatch};

use crate::veths::packets;

/// Time between two transmissions of frames, here called a tick.
const TICK: Duration = Duration::from_micros(500);
/// Limit on the number of frames that are sent at once. If more frames are due after a late tick, the frames above the
/// limit are never sent. Otherwise the measurement would include the irregular scheduling of this thread.
const BURST: u64 = 512;
/// Time after the last frame was sent, at whose end a frame that has not returned counts as lost.
const SETTLED: Duration = Duration::from_millis(500);

/// Traffic that one interface sends, and that may return through any of the interfaces in `to`.
pub struct Traffic {
    interface: Interface,
    to: Vec<String>,
}

/// The result of sending frames.
pub struct Carried {
    /// The number of frames that reached the switch's interface.
    pub sent: u64,
    /// The number of these frames that did not return.
    pub lost: u64,
    /// The duration of sending, in seconds.
    pub seconds: f64,
}

impl Traffic {
    pub fn new(from: &str, to: &[&str]) -> Result<Self, Box<dyn Error>> {
        let interface = Interface::open_with(from, Options { input: Input::Calls, ..Options::default() })?;
        Ok(Self { interface, to: to.iter().map(|name| (*name).to_owned()).collect() })
    }

    /// Sends `rate` frames per second while `work` runs. Returns the result of `work`, and the counts of sent and lost
    /// frames.
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

    /// Returns the number of frames sent to the switch, and the number of frames received from the switch.
    fn count(&self) -> Result<(u64, u64), Box<dyn Error>> {
        let mut received = 0;
        for name in &self.to {
            received += packets(name)?.received;
        }
        Ok((packets(self.interface.name())?.sent, received))
    }
}

/// Sends frames until `stop` is set. Returns the duration of sending, in seconds.
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
