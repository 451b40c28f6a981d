//! A connection whose client and server send random segments in random order, for any protocol.

use std::ops::Range;

use sluice_agent::order::{Order, Status};
use sluice_agent::wire::flags::{FIN, RST, SYN};

use super::harness::{Harness, Output};
use super::world::Rng;

/// A model of the client, server and data plane of a connection.
pub trait Play {
    fn split(&mut self) -> (&mut Harness, &mut Rng);
    /// Updates the model according to the engine's outputs.
    fn record(&mut self, outputs: &[Output]);
    fn client_sends(&mut self);
    fn server_sends(&mut self);
    /// Returns the data plane's answer to the last order, if it sends one.
    fn confirmation(&mut self) -> Option<(Order, Status)>;

    fn step(&mut self) {
        let (_, rng) = self.split();
        match rng.below(10) {
            0..=4 => self.client_sends(),
            5..=7 => self.server_sends(),
            8 => {
                let (harness, rng) = self.split();
                let outputs = harness.waits(rng.below(400));
                self.record(&outputs);
            }
            _ => {
                if let Some((order, status)) = self.confirmation() {
                    let outputs = self.split().0.confirms(&order, status);
                    self.record(&outputs);
                }
            }
        }
    }
}

/// Returns the flags `usual`; in `percent` percent of the cases inverts the flag FIN, RST or SYN, all flags, or none.
pub fn flags(rng: &mut Rng, usual: u8, percent: u64) -> u8 {
    let odd = [FIN, RST, SYN, 0xff, 0][rng.below(5) as usize];
    if rng.percent(percent) { usual ^ odd } else { usual }
}

/// Returns which bytes of a text of `length` bytes are sent, fewer than `max_length`: in `percent` percent of the cases
/// the bytes from the offset `sent` on, otherwise bytes from a random offset on. If the bytes begin at `sent`, advances
/// `sent` to their end.
pub fn pick_range(rng: &mut Rng, sent: &mut usize, length: usize, max_length: u64, percent: u64) -> Range<usize> {
    let start = if rng.percent(percent) { *sent } else { rng.below(length as u64) as usize };
    let end = (start + rng.below(max_length) as usize).min(length);
    if start == *sent {
        *sent = end;
    }
    start..end
}

/// Asserts that the connection ends by its timeouts, and that all memory is freed.
pub fn assert_ends(harness: &mut Harness, seed: u64) {
    for _ in 0..80 {
        harness.waits(10_000);
    }
    assert_eq!((harness.engine.connections(), harness.engine.memory()), (0, 0), "seed {seed}");
}
