//! Stray segments, which belong to no connection and have no valid cookie. The agent resets the connection of a sender
//! that repeats such segments.
//!
//! Data may overtake the first segment of its request, which the agent needs to check the cookie. So the agent does not
//! answer a stray segment by a reset at once. It sends a reset when the same data arrives for the third time, or again
//! at least 1 s after its first arrival. By then, the sender would have retransmitted an overtaken first segment.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::net::SocketAddrV4;

use crate::seq::Seq;

const ENTRIES: usize = 1 << 12;
const MAX_ARRIVALS: u8 = 3;
/// Nanoseconds within which an overtaken segment arrives, or within which its sender retransmits it (RFC 6298).
const MAX_REORDERING_NS: u64 = 1_000_000_000;

/// The recent stray segments, in a table of fixed size: newer segments replace older ones.
pub struct Strays {
    /// For each entry, a hash of the segment, the number of its arrivals, and the time of its first arrival in
    /// nanoseconds.
    entries: Box<[(u32, u8, u64)]>,
    hash: RandomState,
}

impl Default for Strays {
    fn default() -> Self {
        Self { entries: vec![(0, 0, 0); ENTRIES].into(), hash: RandomState::new() }
    }
}

impl Strays {
    /// Records that a stray segment arrived from `client` at the agent's port `port`. Returns whether to reset the
    /// sender's connection.
    pub fn is_persistent(&mut self, now: u64, client: SocketAddrV4, port: u16, seq: Seq) -> bool {
        let hash = self.hash.hash_one((client, port, seq.0));
        let (index, mark) = (hash as usize % ENTRIES, (hash >> 32) as u32);
        let (stored_mark, arrivals, first) = &mut self.entries[index];
        if *stored_mark != mark {
            (*stored_mark, *arrivals, *first) = (mark, 0, now);
        }
        *arrivals = arrivals.saturating_add(1);
        *arrivals >= MAX_ARRIVALS || now - *first >= MAX_REORDERING_NS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_third_time_counts() {
        let (mut strays, client) = (Strays::default(), "10.0.1.1:4711".parse().unwrap());
        let mut ask = |seq| strays.is_persistent(7, client, 8080, Seq(seq));
        assert_eq!([ask(1), ask(2), ask(1), ask(2), ask(1), ask(1)], [false, false, false, false, true, true]);
    }

    #[test]
    fn a_second_later_counts() {
        let (mut strays, client) = (Strays::default(), "10.0.1.1:4711".parse().unwrap());
        let mut ask = |now, seq| strays.is_persistent(now, client, 8080, Seq(seq));
        assert_eq!(
            [ask(7, 1), ask(MAX_REORDERING_NS + 6, 2), ask(MAX_REORDERING_NS + 7, 1), ask(MAX_REORDERING_NS + 8, 2)],
            [false, false, true, false]
        );
    }
}
