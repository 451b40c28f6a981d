//! Reassembles a byte stream: segments may arrive out of order, repeated and overlapping.

use std::ops::Range;

use crate::seq::Seq;

/// The maximum number of buffered ranges that lie beyond a gap. Bytes of further ranges are discarded, and their sender
/// retransmits them.
const MAX_RANGES: usize = 32;

/// The received bytes from `base` on. The first copy of a byte counts: later segments only fill gaps.
#[derive(Debug)]
pub struct Assembler {
    base: Seq,
    /// Discarded (forgotten) bytes, followed by the bytes from `base` to the end of the last range; gaps between ranges
    /// are zero.
    bytes: Vec<u8>,
    /// The number of discarded bytes at the start of `bytes`. They are removed from `bytes` when they make up half of
    /// it, so that a removal moves at most as many bytes as it frees.
    forgotten: usize,
    /// The number of bytes from `base` on without a gap.
    ready: usize,
    /// Ranges received beyond a gap, as offsets from `base`: ascending, and neither touching nor overlapping.
    ranges: Vec<Range<usize>>,
    /// Capacity in bytes, from `base` on.
    room: usize,
}

impl Assembler {
    /// Creates an empty buffer of `room` bytes for a stream that begins at `base`.
    pub fn new(base: Seq, room: usize) -> Assembler {
        Assembler { base, bytes: Vec::new(), forgotten: 0, ready: 0, ranges: Vec::new(), room }
    }

    /// Returns the sequence number of the first buffered byte.
    pub fn base(&self) -> Seq {
        self.base
    }

    /// Returns the sequence number after the last byte that was received without a gap before it.
    pub fn end(&self) -> Seq {
        self.base + self.ready as u32
    }

    /// Returns the sequence number at which the buffer's capacity ends. Never before [`Self::end`], even if the
    /// capacity was reduced.
    pub fn edge(&self) -> Seq {
        self.base + self.room.max(self.ready) as u32
    }

    /// Returns the sequence number after the last received byte, with or without gaps before it.
    pub fn last(&self) -> Seq {
        self.base + self.ranges.last().map_or(self.ready, |range| range.end) as u32
    }

    fn buffered(&self) -> &[u8] {
        &self.bytes[self.forgotten..]
    }

    /// Returns the bytes received without a gap.
    pub fn ready(&self) -> &[u8] {
        &self.buffered()[..self.ready]
    }

    /// Returns the bytes from `start` to `end`, as far as they were received without a gap.
    pub fn between(&self, start: Seq, end: Seq) -> &[u8] {
        let (start, end) = (start.since(self.base), end.since(self.base).min(self.ready));
        self.buffered().get(start..end).unwrap_or(&[])
    }

    /// Returns the bytes of memory in use besides the structure itself.
    pub fn memory(&self) -> usize {
        self.bytes.capacity() + self.ranges.capacity() * size_of::<Range<usize>>()
    }

    /// Returns the number of bytes that can still be stored behind the bytes received without a gap.
    pub fn room(&self) -> usize {
        self.room.saturating_sub(self.ready)
    }

    /// Sets the capacity in bytes.
    pub fn set_room(&mut self, room: usize) {
        self.room = room;
    }

    /// Returns the ranges beyond a gap in ascending order, for a SACK option. Each pair contains a range's first
    /// sequence number, and the sequence number after its last byte.
    pub fn ranges(&self) -> impl Iterator<Item = (Seq, Seq)> {
        self.ranges.iter().map(|range| (self.base + range.start as u32, self.base + range.end as u32))
    }

    /// Returns whether [`Self::insert`] would store all new bytes of a segment.
    pub fn can_take(&self, seq: Seq, length: usize) -> bool {
        let is_next = !self.end().is_before(seq);
        (seq + length as u32).since(self.base) <= self.room && (is_next || self.ranges.len() < MAX_RANGES)
    }

    /// Stores those bytes of a segment that are new and within the capacity. A segment that begins behind a gap is
    /// discarded if `MAX_RANGES` ranges are buffered already. Returns whether any byte was stored.
    pub fn insert(&mut self, seq: Seq, segment: &[u8]) -> bool {
        let early = self.base.since(seq).min(segment.len());
        let (seq, segment) = (seq + early as u32, &segment[early..]);
        let start = seq.since(self.base);
        if segment.is_empty() || start >= self.room {
            return false;
        }
        let segment = &segment[..segment.len().min(self.room - start)];
        let end = start + segment.len();
        if start == self.ready && self.ranges.is_empty() {
            self.bytes.extend_from_slice(segment);
            self.ready = end;
            return true;
        }
        if start > self.ready && self.ranges.len() >= MAX_RANGES {
            return false;
        }
        if self.buffered().len() < end {
            self.bytes.resize(self.forgotten + end, 0);
        }
        let buffered = &mut self.bytes[self.forgotten..];
        let mut is_new = false;
        let mut at = start.max(self.ready);
        // Copy only into the gaps before, between and behind the ranges.
        for range in self.ranges.iter().chain(std::iter::once(&(usize::MAX..usize::MAX))) {
            if at >= end {
                break;
            }
            let gap = range.start.min(end);
            if at < gap {
                buffered[at..gap].copy_from_slice(&segment[at - start..gap - start]);
                is_new = true;
            }
            at = at.max(range.end);
        }
        if is_new {
            self.record(start, end);
        }
        is_new
    }

    /// Records that the bytes from `start` to `end` (offsets from `base`) were received.
    fn record(&mut self, start: usize, end: usize) {
        let mut merged = start..end;
        self.ranges.retain(|range| {
            let touches = range.start <= merged.end && merged.start <= range.end;
            if touches {
                merged = merged.start.min(range.start)..merged.end.max(range.end);
            }
            !touches
        });
        if merged.start <= self.ready {
            self.ready = self.ready.max(merged.end);
        } else {
            let place = self.ranges.partition_point(|range| range.start < merged.start);
            self.ranges.insert(place, merged);
        }
    }

    /// Replaces the bytes before `seq` by `bytes`, whose last byte then precedes `seq`. No gap may precede `seq`.
    pub fn replace_before(&mut self, seq: Seq, bytes: &[u8]) {
        self.forget_before(seq);
        let count = bytes.len();
        self.bytes.splice(..self.forgotten, bytes.iter().copied());
        self.forgotten = 0;
        self.base = self.base - count as u32;
        self.ready += count;
        for range in &mut self.ranges {
            *range = range.start + count..range.end + count;
        }
    }

    /// Discards the bytes before `seq`. No gap may precede `seq`.
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
        for range in &mut self.ranges {
            *range = range.start - count..range.end - count;
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
                for piece in [2, 0, 2, 1, 0] {
                    let piece: Range<usize> = parts[piece].clone();
                    stream.insert(base + piece.start as u32, &TEXT[piece]);
                }
                assert_eq!(stream.ready(), TEXT);
                assert_eq!(stream.ranges().count(), 0);
            }
        }
    }

    #[test]
    fn the_first_copy_of_a_byte_stays() {
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
    fn bytes_beyond_the_capacity_are_dropped() {
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

    /// Bytes arrive in order and beyond gaps, and the oldest bytes are discarded in steps of 1 to 59: later bytes stay
    /// intact.
    #[test]
    fn forgetting_keeps_later_bytes() {
        let text: Vec<u8> = (0..1000).map(|n| (n % 251) as u8).collect();
        for step in 1..60 {
            let base = Seq(u32::MAX - 100);
            let (mut stream, mut sent, mut forgotten_count) = (Assembler::new(base, 300), 0, 0);
            while forgotten_count < text.len() {
                let end = (forgotten_count + 300).min(text.len());
                for piece in [sent + 40..end, sent..(sent + 40).min(end)] {
                    if piece.start < piece.end {
                        stream.insert(base + piece.start as u32, &text[piece]);
                    }
                }
                sent = end;
                assert_eq!(stream.ready(), &text[forgotten_count..sent], "{step} at a time");
                let middle = forgotten_count + (sent - forgotten_count) / 2;
                let number = |at: usize| base + at as u32;
                assert_eq!(stream.between(number(middle), number(sent)), &text[middle..sent]);
                forgotten_count = (forgotten_count + step).min(sent);
                stream.forget_before(number(forgotten_count));
                assert_eq!((stream.base(), stream.end()), (number(forgotten_count), number(sent)));
                // Discarded bytes take up less than half of the buffer.
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
    fn ranges_are_joined() {
        let mut stream = Assembler::new(Seq(0), 100);
        for (at, length) in [(10, 5), (20, 5), (30, 5), (12, 10), (50, 1)] {
            stream.insert(Seq(at), &vec![1; length]);
        }
        let ranges: Vec<_> = stream.ranges().map(|(start, end)| (start.0, end.0)).collect();
        assert_eq!(ranges, [(10, 25), (30, 35), (50, 51)]);
        stream.insert(Seq(0), &[2; 60]);
        assert_eq!((stream.ready().len(), stream.ranges().count()), (60, 0));
    }
}
