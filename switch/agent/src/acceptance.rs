//! Whether a segment may change anything of a connection (RFC 9293, section 3.10.7.4; RFC 5961, sections 3 to 5). Every segment of a
//! client and of a server is judged here before anything else is done with it.
//!
//! The agent stands between two hosts, so two numbers take the place of RCV.NXT: `next`, which the peer has been acknowledged, and
//! `received`, behind what has come in order and is not acknowledged yet. As in Linux a segment may begin right at the window's
//! edge: acknowledgements of a sender that has filled the window do, and so do probes of a closed one.

use crate::seq::Seq;
use crate::wire::Segment;
use crate::wire::flags::{ACK, FIN, RST, SYN};

/// Nanoseconds between two answers to bare segments that are not acceptable: two hosts that do not accept each other's
/// acknowledgements would answer each other without end (RFC 5961, section 7; Linux takes 500 ms as well).
const CHALLENGE_INTERVAL: u64 = 500_000_000;

/// What a peer may send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expected {
    /// The number behind all that the peer has been acknowledged.
    pub next: Seq,
    /// The number behind all that has come of it in order.
    pub received: Seq,
    /// The number at which its window ends (RCV.NXT + RCV.WND).
    pub edge: Seq,
    /// The number behind all that it has acknowledged (SND.UNA).
    pub una: Seq,
    /// The number behind all that it was sent (SND.NXT).
    pub sent: Seq,
    /// The largest window, in bytes, that it can have announced (MAX.SND.WND).
    pub max_window: u32,
}

/// What is to become of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It counts.
    Accept,
    /// It resets the connection.
    Reset,
    /// It changes nothing, and is answered with what is expected: `<SEQ=SND.NXT><ACK=RCV.NXT><CTL=ACK>`.
    Challenge,
    /// It changes nothing.
    Drop,
}

impl Expected {
    /// Judges a segment of a connection that both sides have opened.
    pub fn judge(&self, segment: &Segment<'_>) -> Verdict {
        let edge = self.edge.later(self.next);
        let is_in_window = !segment.end().is_before(self.next) && !edge.is_before(segment.seq());
        if segment.has(RST) {
            // RFC 5961, section 3.2: at the very number. A host resets behind its last byte, or at the number last acknowledged to it.
            return match segment.seq() {
                seq if seq == self.next || seq == self.received => Verdict::Reset,
                _ if is_in_window => Verdict::Challenge,
                _ => Verdict::Drop,
            };
        }
        // RFC 5961, section 4.2: a SYN wherever it is.
        if !is_in_window || self.is_old(segment) || segment.has(SYN) {
            return Verdict::Challenge;
        }
        if !segment.has(ACK) {
            return Verdict::Drop;
        }
        // RFC 5961, section 5.2.
        let is_known = !segment.ack().is_before(self.una - self.max_window) && !self.sent.is_before(segment.ack());
        if is_known { Verdict::Accept } else { Verdict::Challenge }
    }

    /// Whether all that a segment carries was acknowledged before, as a keepalive's byte (RFC 9293, section 3.8.4).
    fn is_old(&self, segment: &Segment<'_>) -> bool {
        segment.seq().is_before(self.next) && !self.next.is_before(segment.end())
    }
}

/// How a segment answers a SYN (RFC 9293, section 3.10.7.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reply {
    /// The server opens.
    Opens,
    /// The server refuses.
    Refuses,
    /// It is of an earlier connection that the server has not forgotten: it is to be reset, and asked again.
    Stale,
    /// It is no answer.
    Nothing,
}

/// Judges a segment that comes when a SYN is out which this number follows.
pub fn judge_reply(first: Seq, segment: &Segment<'_>) -> Reply {
    if !segment.has(ACK) {
        return Reply::Nothing;
    }
    match (segment.ack() == first, segment.has(RST), segment.has(SYN)) {
        (true, true, _) => Reply::Refuses,
        (true, false, true) => Reply::Opens,
        (false, true, _) => Reply::Nothing,
        _ => Reply::Stale,
    }
}

/// Limits the answers to segments that are not acceptable.
#[derive(Debug, Default)]
pub struct Challenges {
    /// When the last bare segment was answered.
    last: Option<u64>,
}

impl Challenges {
    /// Whether to answer a segment that comes now.
    pub fn may_answer(&mut self, now: u64, segment: &Segment<'_>) -> bool {
        let is_bare = segment.payload().is_empty() && !segment.has(SYN) && !segment.has(RST) && !segment.has(FIN);
        if !is_bare {
            return true;
        }
        let may = self.last.is_none_or(|last| now >= last + CHALLENGE_INTERVAL);
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
    use crate::wire::{Head, Link};

    /// Near the wrap of both sides' numbers.
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

    fn with<T>(seq: Seq, ack: Seq, flags: u8, length: usize, look: impl FnOnce(&Segment<'_>) -> T) -> T {
        let (source, destination) = ("10.0.1.1:4711".parse().unwrap(), "10.0.9.2:80".parse().unwrap());
        let mut frame = Vec::new();
        let link = Link { own: [2; 6], router: [4; 6] };
        let head = Head { source, destination, seq, ack, flags, window: 9 };
        head.write(&link, &[], [&vec![b'x'; length], b""], &mut frame);
        look(&Segment::read(&frame).unwrap())
    }

    /// Numbers count from those that are expected next.
    fn judged(expected: Expected, seq: i32, ack: i32, flags: u8, length: usize) -> Verdict {
        let seq = expected.next + seq as u32;
        with(seq, expected.una + ack as u32, flags, length, |segment| expected.judge(segment))
    }

    #[test]
    fn segments_of_an_open_connection() {
        let table = [
            // In order, ahead of a gap, at the edge, and beyond it.
            (0, 0, ACK, 0, Accept),
            (0, 0, ACK | PSH, 30, Accept),
            (999, 0, ACK, 50, Accept),
            (1000, 0, ACK, 0, Accept),
            (1000, 0, ACK, 1, Accept),
            (1001, 0, ACK, 0, Challenge),
            (1001, 0, ACK | FIN, 9, Challenge),
            // Partly new, and old: a keepalive with and without a byte.
            (-5, 0, ACK, 6, Accept),
            (-5, 0, ACK | FIN, 5, Accept),
            (-5, 0, ACK, 5, Challenge),
            (-1, 0, ACK, 1, Challenge),
            (-1, 0, ACK, 0, Challenge),
            (i32::MIN, 0, ACK, 9, Challenge),
            // Acknowledgements: of what was sent, and never sent; old, and too old.
            (0, 500, ACK, 9, Accept),
            (0, 501, ACK, 9, Challenge),
            (0, 501, ACK | FIN, 0, Challenge),
            (0, i32::MAX, ACK, 9, Challenge),
            (0, -4096, ACK, 9, Accept),
            (0, -4097, ACK, 9, Challenge),
            (0, 0, PSH, 9, Drop),
            (0, 0, 0, 0, Drop),
            (0, 0, FIN, 0, Drop),
            // Resets: at the very number, nearby, elsewhere. What they acknowledge says nothing.
            (0, 0, RST, 0, Reset),
            (0, 99_999, RST | ACK, 0, Reset),
            (20, 0, RST, 0, Reset),
            (1, 0, RST | ACK, 0, Challenge),
            (1000, 0, RST, 0, Challenge),
            (1001, 0, RST, 0, Drop),
            (-1, 0, RST | ACK, 0, Drop),
            (i32::MIN, 0, RST, 0, Drop),
            // SYNs, wherever they are.
            (0, 0, SYN, 0, Challenge),
            (-1, 0, SYN | ACK, 0, Challenge),
            (i32::MIN, 0, SYN, 0, Challenge),
            (0, 0, SYN | RST, 0, Reset),
        ];
        for (seq, ack, flags, length, verdict) in table {
            let found = judged(EXPECTED, seq, ack, flags, length);
            assert_eq!(found, verdict, "seq {seq}, ack {ack}, flags {flags:#x}, {length} bytes");
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
            (0, SYN | ACK, Reply::Opens),
            (0, RST | ACK, Reply::Refuses),
            (0, RST | SYN | ACK, Reply::Refuses),
            (0, ACK, Reply::Stale),
            (1, SYN | ACK, Reply::Stale),
            (777, ACK, Reply::Stale),
            (1, RST | ACK, Reply::Nothing),
            (u32::MAX, RST | ACK, Reply::Nothing),
            (0, RST, Reply::Nothing),
            (0, SYN, Reply::Nothing),
        ];
        for (ack, flags, reply) in table {
            let found = with(Seq(7), first + ack, flags, 0, |segment| judge_reply(first, segment));
            assert_eq!(found, reply, "ack {ack}, flags {flags:#x}");
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
