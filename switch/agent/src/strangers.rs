//! Segments that no connection and no cookie explains: who insists is told to stop.
//!
//! Data may overtake the first segment of its request, which alone brings a connection back from its cookie. So a stranger is
//! not reset at once, but when the same data comes for the third time: the first segment would have been repeated before.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::net::SocketAddrV4;

use crate::seq::Seq;

const PLACES: usize = 1 << 12;
const PATIENCE: u8 = 3;

/// What was seen lately, of bounded size: newer ones push older ones out.
pub struct Strangers {
    seen: Box<[(u32, u8)]>,
    hash: RandomState,
}

impl Default for Strangers {
    fn default() -> Self {
        Self { seen: vec![(0, 0); PLACES].into(), hash: RandomState::new() }
    }
}

impl Strangers {
    /// Notes a segment; true at its third time.
    pub fn is_persistent(&mut self, client: SocketAddrV4, port: u16, seq: Seq) -> bool {
        let hash = self.hash.hash_one((client, port, seq.0));
        let (place, mark) = (hash as usize % PLACES, (hash >> 32) as u32);
        let (seen, times) = &mut self.seen[place];
        if *seen != mark {
            (*seen, *times) = (mark, 0);
        }
        *times = times.saturating_add(1);
        *times >= PATIENCE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_third_time_counts() {
        let (mut strangers, client) = (Strangers::default(), "10.0.1.1:4711".parse().unwrap());
        let mut ask = |seq| strangers.is_persistent(client, 8080, Seq(seq));
        assert_eq!([ask(1), ask(2), ask(1), ask(2), ask(1), ask(1)], [false, false, false, false, true, true]);
    }
}
