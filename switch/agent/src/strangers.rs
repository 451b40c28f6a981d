//! Segments that no connection and no cookie explains: a sender that repeats them is reset.
//!
//! Data may overtake the first segment of its request, which alone brings a connection back from its cookie. So a stranger is
//! not reset at once, but when the same data comes for the third time, or later than any first segment is overtaken: that would
//! have been repeated before.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::net::SocketAddrV4;

use crate::seq::Seq;

const PLACES: usize = 1 << 12;
const PATIENCE: u8 = 3;
/// Longer than data overtakes what was sent before it, and than a sender waits until it repeats that (RFC 6298).
const LATE: u64 = 1_000_000_000;

/// What was seen lately, of bounded size: newer ones push older ones out.
pub struct Strangers {
    /// A segment's mark, how often it has come, and when first.
    seen: Box<[(u32, u8, u64)]>,
    hash: RandomState,
}

impl Default for Strangers {
    fn default() -> Self {
        Self { seen: vec![(0, 0, 0); PLACES].into(), hash: RandomState::new() }
    }
}

impl Strangers {
    /// Notes a segment at this time; true when it insists.
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
