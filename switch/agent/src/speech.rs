//! What the agent itself says to a client, and repeats until the client has it.

use crate::seq::Seq;

/// The first repetition comes after this time, the next after twice as long.
const FIRST: u64 = 250_000_000;
const REPETITIONS: u32 = 5;

/// Bytes for a client, and perhaps the end of the connection.
#[derive(Debug)]
pub struct Speech {
    from: Seq,
    bytes: Vec<u8>,
    ends: bool,
    due: u64,
    repeated: u32,
}

impl Speech {
    /// Bytes from this number on, sent at this time.
    pub fn new(from: Seq, bytes: Vec<u8>, ends: bool, now: u64) -> Speech {
        Speech { from, bytes, ends, due: now + FIRST, repeated: 0 }
    }

    /// Says more.
    pub fn add(&mut self, bytes: &[u8], ends: bool, now: u64) {
        self.bytes.extend_from_slice(bytes);
        self.ends |= ends;
        (self.due, self.repeated) = (now + FIRST, 0);
    }

    /// The number behind it.
    pub fn end(&self) -> Seq {
        self.from + self.bytes.len() as u32 + u32::from(self.ends)
    }

    /// Whether it ends the connection.
    pub fn ends(&self) -> bool {
        self.ends
    }

    /// What follows this number.
    pub fn rest(&self, from: Seq) -> (Seq, &[u8]) {
        let sent = from.since(self.from).min(self.bytes.len());
        (self.from + sent as u32, &self.bytes[sent..])
    }

    /// When it is to be repeated; never again after some times.
    pub fn due(&self) -> Option<u64> {
        (self.repeated < REPETITIONS).then_some(self.due)
    }

    /// Whether to repeat it now.
    pub fn is_due(&mut self, now: u64) -> bool {
        let is_due = self.due().is_some_and(|due| due <= now);
        if is_due {
            self.repeated += 1;
            self.due = now + (FIRST << self.repeated);
        }
        is_due
    }

    /// Memory taken.
    pub fn memory(&self) -> usize {
        self.bytes.capacity()
    }
}
