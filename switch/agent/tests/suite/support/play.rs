//! A connection whose sides send what they like, in any order: the moves, whatever the protocol.

use std::ops::Range;

use sluice_agent::order::{Order, Status};
use sluice_agent::wire::flags::{FIN, RST, SYN};

use super::exact::{Exact, Seen};
use super::world::Rng;

/// Client, server and data plane of one connection.
pub trait Play {
    fn parts(&mut self) -> (&mut Exact, &mut Rng);
    /// Takes note of what came out.
    fn look(&mut self, seen: &[Seen]);
    fn client_sends(&mut self);
    fn server_sends(&mut self);
    /// The data plane's confirmation of the last order, if it sends one.
    fn confirmation(&mut self) -> Option<(Order, Status)>;

    fn step(&mut self) {
        let (_, rng) = self.parts();
        match rng.below(10) {
            0..=4 => self.client_sends(),
            5..=7 => self.server_sends(),
            8 => {
                let (exact, rng) = self.parts();
                let seen = exact.waits(rng.below(400));
                self.look(&seen);
            }
            _ => {
                if let Some((order, status)) = self.confirmation() {
                    let seen = self.parts().0.confirms(&order, status);
                    self.look(&seen);
                }
            }
        }
    }
}

/// The usual flags; in so many percent of the cases with an odd one.
pub fn flags(rng: &mut Rng, usual: u8, percent: u64) -> u8 {
    let odd = [FIN, RST, SYN, 0xff, 0][rng.below(5) as usize];
    if rng.percent(percent) { usual ^ odd } else { usual }
}

/// Which bytes of a text are sent: in so many percent of the cases the next ones, else some that are repeated or ahead.
pub fn part(rng: &mut Rng, sent: &mut usize, length: usize, most: u64, percent: u64) -> Range<usize> {
    let start = if rng.percent(percent) { *sent } else { rng.below(length as u64) as usize };
    let end = (start + rng.below(most) as usize).min(length);
    if start == *sent {
        *sent = end;
    }
    start..end
}

/// What is left ends by itself, and all memory comes back.
pub fn ends(exact: &mut Exact, seed: u64) {
    for _ in 0..80 {
        exact.waits(10_000);
    }
    assert_eq!((exact.engine.connections(), exact.engine.memory()), (0, 0), "seed {seed}");
}
