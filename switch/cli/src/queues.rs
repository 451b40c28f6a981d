//! Supplies queueing metadata for the program: the backlog of the interfaces' queueing disciplines in the kernel.
//!
//! The switch queries the kernel only for a program that reads queueing metadata, and at most once per millisecond and
//! port. The kernel does not report how long a frame waits. The switch estimates the waiting time from the backlog, and
//! from the rate at which frames have left since the kernel first reported waiting frames.

use std::time::{Duration, Instant};

use sluice_engine::Backlog;
use sluice_ports::{Backlogs, Waiting};

use crate::link::Link;

/// Time for which a reply of the kernel is used.
const MAX_AGE: Duration = Duration::from_millis(1);

/// The queues of all ports.
pub struct Queues {
    /// The connection to the kernel, opened at the first use. `Some(None)` means that opening it failed, which is
    /// logged once.
    kernel: Option<Option<Backlogs>>,
    /// The queues, by the index of their port.
    queues: Vec<Queue>,
}

impl Queues {
    /// Creates the state of `ports` queues.
    pub fn new(ports: usize) -> Self {
        Self { kernel: None, queues: vec![Queue::default(); ports] }
    }

    /// Returns the backlog of the port with the index `place`.
    pub fn backlog(&mut self, place: usize, link: &Link) -> Backlog {
        let (queue, now) = (&mut self.queues[place], Instant::now());
        if queue.queried.is_none_or(|queried| now.duration_since(queried) >= MAX_AGE) {
            let kernel = self.kernel.get_or_insert_with(open);
            // An interface that does not exist has no queue, so the backlog is empty.
            let waiting = kernel.as_ref().zip(link.index()).and_then(|(kernel, index)| kernel.of(index).ok());
            queue.update(waiting.unwrap_or_default(), now);
        }
        queue.backlog
    }
}

fn open() -> Option<Backlogs> {
    Backlogs::new()
        .inspect_err(|error| tracing::warn!(%error, "the kernel cannot be queried for queues; their depth stays 0"))
        .ok()
}

/// The state of one queue.
#[derive(Debug, Clone, Copy, Default)]
struct Queue {
    queried: Option<Instant>,
    /// The time of the first reply that reported waiting frames, and the number of frames that had left the queue by
    /// then; `None` while the queue is empty.
    busy: Option<(Instant, u32)>,
    backlog: Backlog,
}

impl Queue {
    /// Updates the state of the queue with a reply of the kernel.
    fn update(&mut self, waiting: Waiting, now: Instant) {
        let Waiting { frames, departed } = waiting;
        if frames == 0 {
            self.busy = None;
        }
        let wait_us = (frames > 0).then(|| {
            let (since, departed_then) = *self.busy.get_or_insert((now, departed));
            let time_per_frame =
                now.duration_since(since).as_micros().checked_div(departed.wrapping_sub(departed_then).into());
            time_per_frame.map_or(0, |time_per_frame| time_per_frame * u128::from(frames))
        });
        self.backlog = Backlog { packets: frames, wait_us: wait_us.unwrap_or(0).try_into().unwrap_or(u32::MAX) };
        self.queried = Some(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_is_the_backlog_over_the_rate_since_the_queue_was_empty() {
        let (mut queue, start) = (Queue::default(), Instant::now());
        for (ms, frames, departed, wait_us) in [
            (0, 0, u32::MAX - 1, 0),
            (10, 5, u32::MAX, 0),
            (20, 6, u32::MAX, 0),
            // Two frames left in 20 ms, during which the 32-bit counter wrapped around.
            (30, 7, 1, 70_000),
            (50, 10, 3, 100_000),
            (60, 0, 13, 0),
            (70, 4, 14, 0),
            (71, 4, 15, 4_000),
            (10_000_000_000, 4, 16, u32::MAX),
        ] {
            queue.update(Waiting { frames, departed }, start + Duration::from_millis(ms));
            assert_eq!(queue.backlog, Backlog { packets: frames, wait_us }, "after {ms} ms");
        }
    }
}
