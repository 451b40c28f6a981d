//! Handshakes of services whose agent greets: a client that waits for a greeting does not repeat a lost acknowledgement, so the agent
//! repeats its SYN-ACK (RFC 9293, section 3.8.1).
//!
//! It costs a cell of bounded number, and the oldest make room. A client whose cell is gone still has its cookie.

use std::collections::{BTreeSet, HashMap};

use crate::engine::Key;
use crate::wire::{Head, RawOffer};

/// A SYN-ACK is repeated after this time, then after twice as long.
const REPEAT: u64 = 1_000_000_000;
const REPETITIONS: u32 = 2;
/// Bytes of a cell: in the map, and in the set with its share of a node.
const CELL: usize = size_of::<(Key, Cell)>() + 2 * size_of::<(u64, Key)>();

/// What was answered.
struct Cell {
    head: Head,
    offer: RawOffer,
    due: u64,
    repeated: u32,
}

/// SYN-ACKs that wait for their acknowledgement.
#[derive(Default)]
pub struct Handshakes {
    cells: HashMap<Key, Cell>,
    due: BTreeSet<(u64, Key)>,
}

impl Handshakes {
    /// Notes an answer to a SYN; one before counts no more.
    pub fn note(&mut self, key: Key, head: Head, offer: RawOffer, now: u64) {
        self.forget(&key);
        let due = now + REPEAT;
        self.cells.insert(key, Cell { head, offer, due, repeated: 0 });
        self.due.insert((due, key));
    }

    /// The client has answered, or is gone.
    pub fn forget(&mut self, key: &Key) {
        if let Some(cell) = self.cells.remove(key) {
            self.due.remove(&(cell.due, *key));
        }
    }

    /// Forgets the one that has waited longest for its turn. False when there is none.
    pub fn make_room(&mut self) -> bool {
        let first = self.due.pop_first();
        first.is_some_and(|(_, key)| self.cells.remove(&key).is_some())
    }

    /// When the next is to be repeated.
    pub fn due(&self) -> u64 {
        self.due.first().map_or(u64::MAX, |(due, _)| *due)
    }

    /// What is to be repeated now, if something is.
    pub fn repeat(&mut self, now: u64) -> Option<(Head, RawOffer)> {
        let &(due, key) = self.due.first().filter(|(due, _)| *due <= now)?;
        self.due.remove(&(due, key));
        let cell = self.cells.get_mut(&key)?;
        let answer = (cell.head, cell.offer);
        cell.repeated += 1;
        if cell.repeated == REPETITIONS {
            self.cells.remove(&key);
        } else {
            cell.due = now + (REPEAT << cell.repeated);
            self.due.insert((cell.due, key));
        }
        Some(answer)
    }

    /// Memory taken.
    pub fn memory(&self) -> usize {
        self.cells.len() * CELL
    }
}
