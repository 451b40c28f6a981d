//! Stray segments, which belong to no connection and have no valid cookie. A sender that repeats them is reset.
//!
//! Data may overtake the first segment of its request, without which the cookie cannot be checked. So a stray segment
//! is not answered by a reset at once, but when the same data arrives for the third time, or 1 s after its first
//! arrival: by then the sender would have repeated an overtaken first segment.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::net::SocketAddrV4;

use crate::seq::Seq;

const PLACES: usize = 1 << 12;
const PATIENCE: u8 = 3;
/// Longer than data overtakes an earlier segment, and than a sender waits to repeat that segment (RFC 6298).
const LATE: u64 = 1_000_000_000;

/// The recent stray segments, in a table of fixed size: newer ones replace older ones.
pub struct Strangers {
    /// For each entry: a hash of the segment, how often it has arrived, and when it first did.
    seen: Box<[(u32, u8, u64)]>,
    hash: RandomState,
}

impl Default for Strangers {
    fn default() -> Self {
        Self { seen: vec![(0, 0, 0); PLACES].into(), hash: RandomState::new() }
    }
}

impl Strangers {
    /// Records a segment, and returns whether its sender is to be reset.
    pub fn is_persistent(&mut self, now: u64, client: SocketAddrV4, port: u16, seq: Seq) -> bool {
        let hash = self.hash.hash_one((client, port, seq.0));
        let (place, mark) = (hash as usize % PLACES, (hash >> 32) as u32);
        let (seen, times, first) = &mut self.seen[place];
        if *seen != mark {
            (*seen, *times, *first) = (mark, 0, now);
        }
        *times = times.saturating_add(1);
        *times >= PATIENCE || now - *first >= LATE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_third_time_counts() {
        let (mut strangers, client) = (Strangers::default(), "10.0.1.1:4711".parse().unwrap());
        let mut ask = |seq| strangers.is_persistent(7, client, 8080, Seq(seq));
        assert_eq!([ask(1), ask(2), ask(1), ask(2), ask(1), ask(1)], [false, false, false, false, true, true]);
    }

    #[test]
    fn a_second_later_counts() {
        let (mut strangers, client) = (Strangers::default(), "10.0.1.1:4711".parse().unwrap());
        let mut ask = |now, seq| strangers.is_persistent(now, client, 8080, Seq(seq));
        assert_eq!([ask(7, 1), ask(LATE + 6, 2), ask(LATE + 7, 1), ask(LATE + 8, 2)], [false, false, true, false]);
    }
}
