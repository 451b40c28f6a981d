//! Bytes that the agent itself sends to a client, and retransmits until the client acknowledges them.

use crate::seq::Seq;

/// Nanoseconds until the first retransmission; the interval doubles each time.
const FIRST: u64 = 250_000_000;
const REPETITIONS: u32 = 5;

/// Bytes for a client, with an optional FIN behind them.
#[derive(Debug)]
pub struct Speech {
    from: Seq,
    bytes: Vec<u8>,
    ends: bool,
    due: u64,
    repeated: u32,
}

impl Speech {
    /// Creates the buffer with bytes that begin at the number `from`, sent at the time `now`.
    pub fn new(from: Seq, bytes: Vec<u8>, ends: bool, now: u64) -> Speech {
        Speech { from, bytes, ends, due: now + FIRST, repeated: 0 }
    }

    /// Appends bytes.
    pub fn add(&mut self, bytes: &[u8], ends: bool, now: u64) {
        self.bytes.extend_from_slice(bytes);
        self.ends |= ends;
        (self.due, self.repeated) = (now + FIRST, 0);
    }

    /// The number behind the last byte and FIN.
    pub fn end(&self) -> Seq {
        self.from + self.bytes.len() as u32 + u32::from(self.ends)
    }

    /// Whether a FIN follows the bytes.
    pub fn ends(&self) -> bool {
        self.ends
    }

    /// Returns the bytes from the number `from` on, with the number of the first one.
    pub fn rest(&self, from: Seq) -> (Seq, &[u8]) {
        let sent = from.since(self.from).min(self.bytes.len());
        (self.from + sent as u32, &self.bytes[sent..])
    }

    /// The time of the next retransmission; none after the last one.
    pub fn due(&self) -> Option<u64> {
        (self.repeated < REPETITIONS).then_some(self.due)
    }

    /// Whether to retransmit now; if so, sets the next timer.
    pub fn is_due(&mut self, now: u64) -> bool {
        let is_due = self.due().is_some_and(|due| due <= now);
        if is_due {
            self.repeated += 1;
            self.due = now + (FIRST << self.repeated);
        }
        is_due
    }

    /// Returns the bytes of memory in use.
    pub fn memory(&self) -> usize {
        self.bytes.capacity()
    }
}
