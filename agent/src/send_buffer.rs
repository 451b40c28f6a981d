//! Bytes that the agent itself sends to a client, and retransmits until the client acknowledges them.

use crate::seq::Seq;

/// Nanoseconds until the first retransmission; the interval doubles each time.
const FIRST_RETRANSMISSION_NS: u64 = 250_000_000;
const MAX_RETRANSMISSIONS: u32 = 5;

/// Bytes for a client, with an optional FIN behind them.
#[derive(Debug)]
pub struct SendBuffer {
    first_seq: Seq,
    bytes: Vec<u8>,
    ends: bool,
    due: u64,
    retransmissions: u32,
}

impl SendBuffer {
    /// Creates the buffer with bytes that begin at the sequence number `first_seq`, and that are sent at the time
    /// `now`.
    pub fn new(first_seq: Seq, bytes: Vec<u8>, ends: bool, now: u64) -> SendBuffer {
        SendBuffer { first_seq, bytes, ends, due: now + FIRST_RETRANSMISSION_NS, retransmissions: 0 }
    }

    /// Appends bytes, and a FIN if `ends` is true. Restarts the timer and the count of retransmissions at the time
    /// `now`.
    pub fn append(&mut self, bytes: &[u8], ends: bool, now: u64) {
        self.bytes.extend_from_slice(bytes);
        self.ends |= ends;
        (self.due, self.retransmissions) = (now + FIRST_RETRANSMISSION_NS, 0);
    }

    /// Returns the sequence number after the last byte, or after the FIN if there is one.
    pub fn end(&self) -> Seq {
        self.first_seq + self.bytes.len() as u32 + u32::from(self.ends)
    }

    /// Returns whether a FIN follows the bytes.
    pub fn ends(&self) -> bool {
        self.ends
    }

    /// Returns the bytes from the sequence number `start` on, and the sequence number of the first of them.
    pub fn bytes_from(&self, start: Seq) -> (Seq, &[u8]) {
        let sent = start.since(self.first_seq).min(self.bytes.len());
        (self.first_seq + sent as u32, &self.bytes[sent..])
    }

    /// Returns the time of the next retransmission; none after the last one.
    pub fn due(&self) -> Option<u64> {
        (self.retransmissions < MAX_RETRANSMISSIONS).then_some(self.due)
    }

    /// Returns whether to retransmit at the time `now`. If so, sets the next timer.
    pub fn is_due(&mut self, now: u64) -> bool {
        let is_due = self.due().is_some_and(|due| due <= now);
        if is_due {
            self.retransmissions += 1;
            self.due = now + (FIRST_RETRANSMISSION_NS << self.retransmissions);
        }
        is_due
    }

    /// Returns the bytes of memory in use.
    pub fn memory(&self) -> usize {
        self.bytes.capacity()
    }
}
