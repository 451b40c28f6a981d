//! Reassembles a byte stream: segments may arrive out of order, repeated and overlapping.

use std::ops::Range;

use crate::seq::Seq;

/// The number of ranges beyond a gap that are buffered. A sender with more gaps retransmits the bytes of further
/// ranges.
const ISLANDS: usize = 32;

/// The received bytes from `base` on. The first copy of a byte counts: later segments only fill gaps.
#[derive(Debug)]
pub struct Assembler {
    base: Seq,
    /// Forgotten bytes, and then the bytes from `base` to the end of the last range; gaps between ranges are zero.
    bytes: Vec<u8>,
    /// The number of forgotten bytes. They are removed when they make up half of `bytes`, so that a removal moves at
    /// most as many bytes as it frees.
    forgotten: usize,
    /// The number of bytes from `base` on without a gap.
    ready: usize,
    /// Ranges received beyond a gap, as offsets from `base`: ascending, and neither touching nor overlapping.
    islands: Vec<Range<usize>>,
    /// Capacity in bytes, from `base` on.
    room: usize,
}

impl Assembler {
    /// Creates an empty buffer of `room` bytes for a stream that begins at `base`.
    pub fn new(base: Seq, room: usize) -> Assembler {
        Assembler { base, bytes: Vec::new(), forgotten: 0, ready: 0, islands: Vec::new(), room }
    }

    /// The sequence number of the first buffered byte.
    pub fn base(&self) -> Seq {
        self.base
    }

    /// The number behind the last byte that was received without a gap.
    pub fn end(&self) -> Seq {
        self.base + self.ready as u32
    }

    /// The number behind the last byte that there is room for.
    pub fn edge(&self) -> Seq {
        self.base + self.room.max(self.ready) as u32
    }

    /// The number behind the last received byte, with or without gaps before it.
    pub fn last(&self) -> Seq {
        self.base + self.islands.last().map_or(self.ready, |island| island.end) as u32
    }

    fn buffered(&self) -> &[u8] {
        &self.bytes[self.forgotten..]
    }

    /// The bytes received without a gap.
    pub fn ready(&self) -> &[u8] {
        &self.buffered()[..self.ready]
    }

    /// The bytes from `start` to `end`, as far as they were received without a gap.
    pub fn between(&self, start: Seq, end: Seq) -> &[u8] {
        let (start, end) = (start.since(self.base), end.since(self.base).min(self.ready));
        self.buffered().get(start..end).unwrap_or(&[])
    }

    /// Returns the bytes of memory in use.
    pub fn memory(&self) -> usize {
        self.bytes.capacity() + self.islands.capacity() * size_of::<Range<usize>>()
    }

    /// The number of bytes that there is room for, behind those without a gap.
    pub fn room(&self) -> usize {
        self.room.saturating_sub(self.ready)
    }

    /// Sets the capacity in bytes.
    pub fn set_room(&mut self, room: usize) {
        self.room = room;
    }

    /// The ranges beyond a gap in ascending order, as pairs of first number and number behind the last, for a SACK
    /// option.
    pub fn islands(&self) -> impl Iterator<Item = (Seq, Seq)> {
        self.islands.iter().map(|island| (self.base + island.start as u32, self.base + island.end as u32))
    }

    /// Whether [`Self::insert`] would store all new bytes of a segment.
    pub fn can_take(&self, seq: Seq, length: usize) -> bool {
        let is_next = !self.end().is_before(seq);
        (seq + length as u32).since(self.base) <= self.room && (is_next || self.islands.len() < ISLANDS)
    }

    /// Stores the bytes of a segment, except those outside of the capacity. Returns whether any byte was new.
    pub fn insert(&mut self, seq: Seq, segment: &[u8]) -> bool {
        let early = self.base.since(seq).min(segment.len());
        let (seq, segment) = (seq + early as u32, &segment[early..]);
        let start = seq.since(self.base);
        if segment.is_empty() || start >= self.room {
            return false;
        }
        let segment = &segment[..segment.len().min(self.room - start)];
        let end = start + segment.len();
        if start == self.ready && self.islands.is_empty() {
            self.bytes.extend_from_slice(segment);
            self.ready = end;
            return true;
        }
        if start > self.ready && self.islands.len() >= ISLANDS {
            return false;
        }
        if self.buffered().len() < end {
            self.bytes.resize(self.forgotten + end, 0);
        }
        let buffered = &mut self.bytes[self.forgotten..];
        let mut is_new = false;
        let mut at = start.max(self.ready);
        // Fill the gaps between the ranges.
        for island in self.islands.iter().chain(std::iter::once(&(usize::MAX..usize::MAX))) {
            if at >= end {
                break;
            }
            let gap = island.start.min(end);
            if at < gap {
                buffered[at..gap].copy_from_slice(&segment[at - start..gap - start]);
                is_new = true;
            }
            at = at.max(island.end);
        }
        if is_new {
            self.note(start, end);
        }
        is_new
    }

    /// Records that the bytes from `start` to `end` were received.
    fn note(&mut self, start: usize, end: usize) {
        let mut whole = start..end;
        self.islands.retain(|island| {
            let touches = island.start <= whole.end && whole.start <= island.end;
            if touches {
                whole = whole.start.min(island.start)..whole.end.max(island.end);
            }
            !touches
        });
        if whole.start <= self.ready {
            self.ready = self.ready.max(whole.end);
        } else {
            let place = self.islands.partition_point(|island| island.start < whole.start);
            self.islands.insert(place, whole);
        }
    }

    /// Replaces the bytes before `seq` by other bytes. No gap may precede `seq`.
    pub fn replace_before(&mut self, seq: Seq, bytes: &[u8]) {
        self.forget_before(seq);
        let count = bytes.len();
        self.bytes.splice(..self.forgotten, bytes.iter().copied());
        self.forgotten = 0;
        self.base = self.base - count as u32;
        self.ready += count;
        for island in &mut self.islands {
            *island = island.start + count..island.end + count;
        }
    }

    /// Forgets the bytes before `seq`. No gap may precede `seq`.
    pub fn forget_before(&mut self, seq: Seq) {
        let count = seq.since(self.base).min(self.ready);
        if count == 0 {
            return;
        }
        self.forgotten += count;
        if self.forgotten * 2 >= self.bytes.len() {
            self.bytes.drain(..self.forgotten);
            self.forgotten = 0;
        }
        self.base += count as u32;
        self.ready -= count;
        for island in &mut self.islands {
            *island = island.start - count..island.end - count;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &[u8] = b"GET /static/logo.gif HTTP/1.1\r\nHost: shop.example\r\n\r\n";

    #[test]
    fn a_stream_split_anywhere_comes_together() {
        let base = Seq(u32::MAX - 10);
        for first in 0..TEXT.len() {
            for second in first..TEXT.len() {
                let mut stream = Assembler::new(base, 1000);
                let parts = [0..first, first..second, second..TEXT.len()];
                for part in [2, 0, 2, 1, 0] {
                    let part: Range<usize> = parts[part].clone();
                    stream.insert(base + part.start as u32, &TEXT[part]);
                }
                assert_eq!(stream.ready(), TEXT);
                assert_eq!(stream.islands().count(), 0);
            }
        }
    }

    #[test]
    fn what_came_first_stays() {
        let mut stream = Assembler::new(Seq(100), 1000);
        assert!(stream.insert(Seq(104), b"EF"));
        assert!(stream.insert(Seq(101), b"bcdxx?"));
        assert_eq!(stream.ready(), b"");
        assert!(stream.insert(Seq(98), b"..abcdefgh"));
        assert_eq!(stream.ready(), b"abcdEF?h");
        assert!(!stream.insert(Seq(100), b"ABCDEFG"));
        assert_eq!(stream.ready(), b"abcdEF?h");
    }

    #[test]
    fn what_has_no_room_is_left_out() {
        let mut stream = Assembler::new(Seq(0), 6);
        assert!(stream.insert(Seq(4), b"efgh"));
        assert!(!stream.insert(Seq(6), b"g"));
        assert!(stream.insert(Seq(0), b"abcdefgh"));
        assert_eq!((stream.ready(), stream.room()), (&b"abcdef"[..], 0));
        stream.forget_before(Seq(4));
        assert!(stream.insert(Seq(6), b"ghijkl"));
        assert_eq!((stream.ready(), stream.base(), stream.end()), (&b"efghij"[..], Seq(4), Seq(10)));
        assert_eq!(stream.between(Seq(5), Seq(8)), b"fgh");
        assert_eq!(stream.between(Seq(8), Seq(80)), b"ij");
    }

    /// For every number of bytes forgotten at a time, while more bytes arrive in order and beyond gaps.
    #[test]
    fn what_is_forgotten_leaves_the_rest() {
        let text: Vec<u8> = (0..1000).map(|n| (n % 251) as u8).collect();
        for step in 1..60 {
            let base = Seq(u32::MAX - 100);
            let (mut stream, mut sent, mut gone) = (Assembler::new(base, 300), 0, 0);
            while gone < text.len() {
                let end = (gone + 300).min(text.len());
                for part in [sent + 40..end, sent..(sent + 40).min(end)] {
                    if part.start < part.end {
                        stream.insert(base + part.start as u32, &text[part]);
                    }
                }
                sent = end;
                assert_eq!(stream.ready(), &text[gone..sent], "{step} at a time");
                let middle = gone + (sent - gone) / 2;
                let number = |at: usize| base + at as u32;
                assert_eq!(stream.between(number(middle), number(sent)), &text[middle..sent]);
                gone = (gone + step).min(sent);
                stream.forget_before(number(gone));
                assert_eq!((stream.base(), stream.end()), (number(gone), number(sent)));
                // Forgotten bytes take up less than half of the buffer.
                assert!(stream.forgotten * 2 < stream.bytes.len().max(1));
            }
        }
    }

    #[test]
    fn bytes_are_replaced() {
        let mut stream = Assembler::new(Seq(u32::MAX - 1), 100);
        stream.insert(Seq(u32::MAX - 1), b"abcdef");
        stream.insert(Seq(6), b"ij");
        stream.replace_before(Seq(2), b"XY");
        assert_eq!((stream.base(), stream.ready(), stream.end()), (Seq(0), &b"XYef"[..], Seq(4)));
        stream.insert(Seq(0), b"????gh");
        assert_eq!(stream.ready(), b"XYefghij");
    }

    #[test]
    fn islands_are_joined() {
        let mut stream = Assembler::new(Seq(0), 100);
        for (at, length) in [(10, 5), (20, 5), (30, 5), (12, 10), (50, 1)] {
            stream.insert(Seq(at), &vec![1; length]);
        }
        let islands: Vec<_> = stream.islands().map(|(start, end)| (start.0, end.0)).collect();
        assert_eq!(islands, [(10, 25), (30, 35), (50, 51)]);
        stream.insert(Seq(0), &[2; 60]);
        assert_eq!((stream.ready().len(), stream.islands().count()), (60, 0));
    }
}
