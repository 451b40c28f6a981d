//! Handshakes of services whose protocol begins with a greeting, which the agent sends. A client that waits for a
//! greeting does not retransmit its ACK if the ACK is lost. So the agent retransmits its SYN-ACK (RFC 9293, section
//! 3.8.1).
//!
//! Each handshake needs a cell of memory. Memory for cells is limited; if it is used up, the cells whose SYN-ACKs are
//! due next are dropped. A client without a cell can still continue by its cookie.

use std::collections::{BTreeSet, HashMap};

use crate::engine::Key;
use crate::wire::{SegmentHeader, SynOptions};

/// Nanoseconds until a SYN-ACK is sent for the second time; the interval before the third time is twice as long.
const REPEAT: u64 = 1_000_000_000;
const REPETITIONS: u32 = 2;
/// The memory of a cell in bytes: an entry of the map, and an entry of the ordered set with its share of a tree node.
const CELL: usize = size_of::<(Key, Cell)>() + 2 * size_of::<(u64, Key)>();

/// A SYN-ACK that the agent may have to send again.
struct Cell {
    head: SegmentHeader,
    syn_options: SynOptions,
    due: u64,
    repeated: u32,
}

/// The SYN-ACKs that are not acknowledged yet.
#[derive(Default)]
pub struct Handshakes {
    cells: HashMap<Key, Cell>,
    due: BTreeSet<(u64, Key)>,
}

impl Handshakes {
    /// Records the SYN-ACK for a SYN; it replaces an earlier SYN-ACK to the same client.
    pub fn note(&mut self, key: Key, head: SegmentHeader, syn_options: SynOptions, now: u64) {
        self.forget(&key);
        let due = now + REPEAT;
        self.cells.insert(key, Cell { head, syn_options, due, repeated: 0 });
        self.due.insert((due, key));
    }

    /// Removes a handshake, because the client has answered or reset it.
    pub fn forget(&mut self, key: &Key) {
        if let Some(cell) = self.cells.remove(key) {
            self.due.remove(&(cell.due, *key));
        }
    }

    /// Drops the handshake whose SYN-ACK is due next. Returns false if there is no handshake.
    pub fn make_room(&mut self) -> bool {
        let first = self.due.pop_first();
        first.is_some_and(|(_, key)| self.cells.remove(&key).is_some())
    }

    /// Returns the time at which the next SYN-ACK is sent again.
    pub fn due(&self) -> u64 {
        self.due.first().map_or(u64::MAX, |(due, _)| *due)
    }

    /// Returns a SYN-ACK that is due at the time `now`, if there is one, and schedules its next repetition. After the
    /// last repetition, removes the handshake.
    pub fn repeat(&mut self, now: u64) -> Option<(SegmentHeader, SynOptions)> {
        let &(due, key) = self.due.first().filter(|(due, _)| *due <= now)?;
        self.due.remove(&(due, key));
        let cell = self.cells.get_mut(&key)?;
        let answer = (cell.head, cell.syn_options);
        cell.repeated += 1;
        if cell.repeated == REPETITIONS {
            self.cells.remove(&key);
        } else {
            cell.due = now + (REPEAT << cell.repeated);
            self.due.insert((cell.due, key));
        }
        Some(answer)
    }

    /// Returns the bytes of memory in use.
    pub fn memory(&self) -> usize {
        self.cells.len() * CELL
    }
}
