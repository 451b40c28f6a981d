//! What waits behind the ports, for programs that read queueing metadata: the backlog of the interfaces' queueing disciplines.
//!
//! The kernel is asked when such a program reads them, at most once a millisecond for a port. It does not report how long a frame
//! waits: that is estimated from the backlog, at the rate at which frames have left since the queue was last empty.

use std::time::{Duration, Instant};

use sluice_engine::Backlog;
use sluice_ports::{Backlogs, Waiting};

use crate::link::Link;

/// How long an answer of the kernel's is used.
const GOOD: Duration = Duration::from_millis(1);

/// The queues of all ports.
pub struct Queues {
    /// Opened when it is first needed; an error is logged once.
    kernel: Option<Option<Backlogs>>,
    /// By place of the port.
    queues: Vec<Queue>,
}

impl Queues {
    /// Those of so many ports.
    pub fn new(ports: usize) -> Self {
        Self { kernel: None, queues: vec![Queue::default(); ports] }
    }

    /// The backlog of the port in this place.
    pub fn backlog(&mut self, place: usize, link: &Link) -> Backlog {
        let (queue, now) = (&mut self.queues[place], Instant::now());
        if queue.asked.is_none_or(|asked| now.duration_since(asked) >= GOOD) {
            let kernel = self.kernel.get_or_insert_with(open);
            // An interface that is gone has no queue.
            let waiting = kernel.as_ref().zip(link.index()).and_then(|(kernel, index)| kernel.of(index).ok());
            queue.learn(waiting.unwrap_or_default(), now);
        }
        queue.backlog
    }
}

fn open() -> Option<Backlogs> {
    Backlogs::new()
        .inspect_err(|error| tracing::warn!(%error, "the kernel cannot be asked for queues; their depth stays 0"))
        .ok()
}

/// What is known of one queue.
#[derive(Debug, Clone, Copy, Default)]
struct Queue {
    asked: Option<Instant>,
    /// When the queue was last empty, and how many frames had left by then.
    busy: Option<(Instant, u32)>,
    backlog: Backlog,
}

impl Queue {
    /// Takes an answer of the kernel's.
    fn learn(&mut self, waiting: Waiting, now: Instant) {
        let Waiting { frames, left } = waiting;
        if frames == 0 {
            self.busy = None;
        }
        let wait_us = (frames > 0).then(|| {
            let (since, left_then) = *self.busy.get_or_insert((now, left));
            let pace = now.duration_since(since).as_micros().checked_div(left.wrapping_sub(left_then).into());
            pace.map_or(0, |pace| pace * u128::from(frames))
        });
        self.backlog = Backlog { packets: frames, wait_us: wait_us.unwrap_or(0).try_into().unwrap_or(u32::MAX) };
        self.asked = Some(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_is_what_waits_at_the_pace_since_nothing_did() {
        let (mut queue, start) = (Queue::default(), Instant::now());
        for (ms, frames, left, wait_us) in [
            (0, 0, u32::MAX - 1, 0),
            (10, 5, u32::MAX, 0),
            (20, 6, u32::MAX, 0),
            // Of two frames in 20 ms, one has been counted past the end of 32 bits.
            (30, 7, 1, 70_000),
            (50, 10, 3, 100_000),
            (60, 0, 13, 0),
            (70, 4, 14, 0),
            (71, 4, 15, 4_000),
            (10_000_000_000, 4, 16, u32::MAX),
        ] {
            queue.learn(Waiting { frames, left }, start + Duration::from_millis(ms));
            assert_eq!(queue.backlog, Backlog { packets: frames, wait_us }, "after {ms} ms");
        }
    }
}
