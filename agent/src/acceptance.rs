//! Decides whether a segment may change the state of a connection (RFC 9293, section 3.10.7.4; RFC 5961, sections 3
//! to 5). Each segment of a client or a server is checked here before it is processed in any other way.
//!
//! The agent sits between two hosts, so it replaces RCV.NXT by two numbers. `next` follows the bytes that the agent has
//! acknowledged to the peer; `received` follows the bytes that arrived in order, some of which may still be
//! unacknowledged. As in Linux, a segment may begin exactly at the window's edge. A sender that has filled the window
//! uses the edge as the sequence number of its acknowledgements, and of its probes of the closed window.

use crate::seq::Seq;
use crate::wire::Segment;
use crate::wire::flags::{ACK, FIN, RST, SYN};

/// The minimum interval, in nanoseconds, between two answers to bare ACKs that are not acceptable. Without this limit,
/// two hosts that reject each other's ACKs would answer each other forever (RFC 5961, section 7; Linux uses 500 ms as
/// well).
const CHALLENGE_INTERVAL_NS: u64 = 500_000_000;

/// The sequence and acknowledgement numbers that a peer may send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expected {
    /// The sequence number after the last byte that was acknowledged to the peer.
    pub next: Seq,
    /// The sequence number after the last byte of the peer that arrived in order.
    pub received: Seq,
    /// The first sequence number behind the window that the peer may use (RCV.NXT + RCV.WND).
    pub edge: Seq,
    /// The sequence number after the last byte that the peer has acknowledged (SND.UNA).
    pub una: Seq,
    /// The sequence number after the last byte that was sent to the peer (SND.NXT).
    pub sent: Seq,
    /// The largest window in bytes that the peer can have announced (MAX.SND.WND).
    pub max_window: u32,
}

/// What the agent does with a segment of an established connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Process the segment.
    Accept,
    /// Close the connection: the segment is a valid reset.
    Reset,
    /// Do not process the segment; answer with a challenge ACK: `<SEQ=SND.NXT><ACK=RCV.NXT><CTL=ACK>`.
    Challenge,
    /// Discard the segment without an answer.
    Drop,
}

impl Expected {
    /// Returns what to do with a segment of an established connection.
    pub fn judge(&self, segment: &Segment<'_>) -> Verdict {
        let edge = self.edge.later(self.next);
        let is_in_window = !segment.end().is_before(self.next) && !edge.is_before(segment.seq());
        if segment.has(RST) {
            // RFC 5961, section 3.2: a reset must carry exactly the next expected sequence number. A host that resets a
            // connection uses the sequence number after its last byte, or the acknowledgement number of the last ACK
            // that it has received; the agent accepts both.
            return match segment.seq() {
                seq if seq == self.next || seq == self.received => Verdict::Reset,
                _ if is_in_window => Verdict::Challenge,
                _ => Verdict::Drop,
            };
        }
        // RFC 5961, section 4.2: a SYN with any sequence number is challenged.
        if !is_in_window || self.is_old(segment) || segment.has(SYN) {
            return Verdict::Challenge;
        }
        if !segment.has(ACK) {
            return Verdict::Drop;
        }
        // RFC 5961, section 5.2: an acknowledgement number is valid if it is at most `max_window` bytes before `una`,
        // and not after `sent`.
        let is_known = !segment.ack().is_before(self.una - self.max_window) && !self.sent.is_before(segment.ack());
        if is_known { Verdict::Accept } else { Verdict::Challenge }
    }

    /// Returns whether a segment begins before `next` and contains no byte from `next` on, such as a keepalive (RFC
    /// 9293, section 3.8.4).
    fn is_old(&self, segment: &Segment<'_>) -> bool {
        segment.seq().is_before(self.next) && !self.next.is_before(segment.end())
    }
}

/// What a segment means for a SYN that is not answered yet (RFC 9293, section 3.10.7.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SynReply {
    /// The server accepts the connection.
    Accepts,
    /// The server refuses the connection.
    Refuses,
    /// The segment belongs to an earlier connection that the server still has: reset that connection, and repeat the
    /// SYN.
    Stale,
    /// The segment does not answer the SYN.
    Unrelated,
}

/// Classifies a segment that arrives before a SYN is answered; `first` is the sequence number after the SYN.
pub fn classify_syn_reply(first: Seq, segment: &Segment<'_>) -> SynReply {
    if !segment.has(ACK) {
        return SynReply::Unrelated;
    }
    match (segment.ack() == first, segment.has(RST), segment.has(SYN)) {
        (true, true, _) => SynReply::Refuses,
        (true, false, true) => SynReply::Accepts,
        (false, true, _) => SynReply::Unrelated,
        _ => SynReply::Stale,
    }
}

/// Limits the rate of challenge ACKs in answer to bare ACKs: segments without data, SYN, FIN and RST.
#[derive(Debug, Default)]
pub struct Challenges {
    /// Time of the last answer to a bare ACK, in nanoseconds.
    last: Option<u64>,
}

impl Challenges {
    /// Returns whether to answer an unacceptable segment that arrives at the time `now`, in nanoseconds. Always true
    /// for a segment that is not a bare ACK.
    pub fn may_answer(&mut self, now: u64, segment: &Segment<'_>) -> bool {
        let is_bare = segment.payload().is_empty() && !segment.has(SYN) && !segment.has(RST) && !segment.has(FIN);
        if !is_bare {
            return true;
        }
        let may = self.last.is_none_or(|last| now >= last + CHALLENGE_INTERVAL_NS);
        if may {
            self.last = Some(now);
        }
        may
    }
}

#[cfg(test)]
mod tests {
    use super::Verdict::{Accept, Challenge, Drop, Reset};
    use super::*;
    use crate::wire::flags::PSH;
    use crate::wire::{Link, SegmentHeader};

    /// `NEXT` is the peer's next sequence number, `UNA` the first sequence number that the peer has not acknowledged.
    /// Both are close to 2^32, so that the tests cover the wrap-around to 0.
    const NEXT: u32 = u32::MAX - 9;
    const UNA: u32 = u32::MAX - 99;
    const EXPECTED: Expected = Expected {
        next: Seq(NEXT),
        received: Seq(NEXT.wrapping_add(20)),
        edge: Seq(NEXT.wrapping_add(1000)),
        una: Seq(UNA),
        sent: Seq(UNA.wrapping_add(500)),
        max_window: 4096,
    };

    fn with<T>(seq: Seq, ack: Seq, flags: u8, length: usize, check: impl FnOnce(&Segment<'_>) -> T) -> T {
        let (source, destination) = ("10.0.1.1:4711".parse().unwrap(), "10.0.9.2:80".parse().unwrap());
        let mut frame = Vec::new();
        let link = Link { own: [2; 6], router: [4; 6] };
        let head = SegmentHeader { source, destination, seq, ack, flags, window: 9 };
        head.write(&link, &[], [&vec![b'x'; length], b""], &mut frame);
        check(&Segment::read(&frame).unwrap())
    }

    /// Judges a segment; `seq` is relative to the next expected sequence number (RCV.NXT), `ack` to the first sequence
    /// number that is not acknowledged (SND.UNA).
    fn judged(expected: Expected, seq: i32, ack: i32, flags: u8, length: usize) -> Verdict {
        let seq = expected.next + seq as u32;
        with(seq, expected.una + ack as u32, flags, length, |segment| expected.judge(segment))
    }

    #[test]
    fn segments_of_an_open_connection() {
        let table = [
            // Segments in order, behind a gap, at the window's edge, and beyond the edge.
            (0, 0, ACK, 0, Accept),
            (0, 0, ACK | PSH, 30, Accept),
            (999, 0, ACK, 50, Accept),
            (1000, 0, ACK, 0, Accept),
            (1000, 0, ACK, 1, Accept),
            (1001, 0, ACK, 0, Challenge),
            (1001, 0, ACK | FIN, 9, Challenge),
            // Segments that are partly new, and segments that are completely old, such as keepalives with and without a
            // byte.
            (-5, 0, ACK, 6, Accept),
            (-5, 0, ACK | FIN, 5, Accept),
            (-5, 0, ACK, 5, Challenge),
            (-1, 0, ACK, 1, Challenge),
            (-1, 0, ACK, 0, Challenge),
            (i32::MIN, 0, ACK, 9, Challenge),
            // Acknowledgements of sent bytes, of unsent bytes, and of bytes acknowledged long before; then segments
            // without an acknowledgement.
            (0, 500, ACK, 9, Accept),
            (0, 501, ACK, 9, Challenge),
            (0, 501, ACK | FIN, 0, Challenge),
            (0, i32::MAX, ACK, 9, Challenge),
            (0, -4096, ACK, 9, Accept),
            (0, -4097, ACK, 9, Challenge),
            (0, 0, PSH, 9, Drop),
            (0, 0, 0, 0, Drop),
            (0, 0, FIN, 0, Drop),
            // Resets at the expected sequence numbers (`next` and `received`), near them, and outside the window. The
            // acknowledgement number of a reset has no effect.
            (0, 0, RST, 0, Reset),
            (0, 99_999, RST | ACK, 0, Reset),
            (20, 0, RST, 0, Reset),
            (1, 0, RST | ACK, 0, Challenge),
            (1000, 0, RST, 0, Challenge),
            (1001, 0, RST, 0, Drop),
            (-1, 0, RST | ACK, 0, Drop),
            (i32::MIN, 0, RST, 0, Drop),
            // SYNs with any sequence number; a SYN with RST counts as a reset.
            (0, 0, SYN, 0, Challenge),
            (-1, 0, SYN | ACK, 0, Challenge),
            (i32::MIN, 0, SYN, 0, Challenge),
            (0, 0, SYN | RST, 0, Reset),
        ];
        for (seq, ack, flags, length, verdict) in table {
            let actual = judged(EXPECTED, seq, ack, flags, length);
            assert_eq!(actual, verdict, "seq {seq}, ack {ack}, flags {flags:#x}, {length} bytes");
        }
    }

    #[test]
    fn a_closed_window_takes_acknowledgements_probes_and_resets() {
        for edge in [0, u32::MAX] {
            let closed = Expected { edge: EXPECTED.next + edge, ..EXPECTED };
            assert_eq!([judged(closed, 0, 0, ACK, 0), judged(closed, 0, 0, ACK, 1)], [Accept; 2]);
            assert_eq!(judged(closed, 1, 0, ACK, 1), Challenge);
            assert_eq!([judged(closed, 0, 0, RST, 0), judged(closed, 1, 0, RST, 0)], [Reset, Drop]);
        }
    }

    #[test]
    fn replies_to_a_syn() {
        let first = Seq(u32::MAX);
        let table = [
            (0, SYN | ACK, SynReply::Accepts),
            (0, RST | ACK, SynReply::Refuses),
            (0, RST | SYN | ACK, SynReply::Refuses),
            (0, ACK, SynReply::Stale),
            (1, SYN | ACK, SynReply::Stale),
            (777, ACK, SynReply::Stale),
            (1, RST | ACK, SynReply::Unrelated),
            (u32::MAX, RST | ACK, SynReply::Unrelated),
            (0, RST, SynReply::Unrelated),
            (0, SYN, SynReply::Unrelated),
        ];
        for (ack, flags, reply) in table {
            let actual = with(Seq(7), first + ack, flags, 0, |segment| classify_syn_reply(first, segment));
            assert_eq!(actual, reply, "ack {ack}, flags {flags:#x}");
        }
    }

    #[test]
    fn bare_segments_are_answered_twice_a_second_at_most() {
        let mut challenges = Challenges::default();
        let mut answers =
            |now, flags, length| with(Seq(1), Seq(2), flags, length, |segment| challenges.may_answer(now, segment));
        assert!(answers(1, ACK, 0) && !answers(2, ACK, 0) && !answers(500_000_000, ACK, 0));
        assert!([answers(3, ACK, 1), answers(3, SYN, 0), answers(3, RST, 0), answers(3, ACK | FIN, 0)] == [true; 4]);
        assert!(answers(500_000_001, ACK, 0) && !answers(500_000_002, ACK, 0));
    }
}
