//! Hands a client's bytes on to a server, within what the server takes, and repeats what the client no longer does.
//!
//! A small sender of TCP: slow start and congestion avoidance as one (RFC 5681 without its finer points, for at most some tens of
//! KB), fast retransmit after three duplicates (section 3.2), one segment at each partial acknowledgement (RFC 6582), the time to
//! repeat doubles (RFC 6298), and a closed window is probed.

use crate::seq::Seq;

/// Segments sent before the first acknowledgement (RFC 6928).
const FIRST_SEGMENTS: usize = 10;
const DUPLICATES: u32 = 3;
/// Time until the first repetition: that of Linux at its least, for servers are near.
const TIMEOUT: u64 = 200_000_000;
const LONGEST: u64 = 5_000_000_000;
const TIMEOUTS: u32 = 8;

/// How far a server has come with what it is sent. All numbers are the client's, which the server has as well.
#[derive(Debug)]
pub struct Handover {
    /// The first number that the server has not acknowledged.
    pub una: Seq,
    /// The first that was not sent.
    pub next: Seq,
    /// Largest segment the server takes.
    pub mss: usize,
    /// The number that the server's window ends before; none while only the client knows it.
    edge: Option<Seq>,
    congestion: usize,
    duplicates: u32,
    /// While a loss is made good: what was sent when it was noticed.
    recover: Option<Seq>,
    due: Option<u64>,
    timeouts: u32,
    /// A byte is out that the closed window does not allow.
    is_probing: bool,
}

/// What an acknowledgement asks for.
#[derive(Debug, PartialEq, Eq)]
pub enum Then {
    /// Nothing but more of what is new.
    GoOn,
    /// The first segment that was not acknowledged, up to this number at most.
    Repeat(Seq),
}

impl Handover {
    /// Nothing is sent yet to a server that opened with this window; none: the client knows it, and obeys it.
    pub fn new(first: Seq, mss: u16, window: Option<u32>) -> Handover {
        let mss = usize::from(mss.max(64));
        Handover {
            una: first,
            next: first,
            mss,
            edge: window.map(|window| first + window),
            congestion: FIRST_SEGMENTS * mss,
            duplicates: 0,
            recover: None,
            due: None,
            timeouts: 0,
            is_probing: false,
        }
    }

    /// What may be sent next, of bytes that end before `end`. What ends before `owned` is paced here, the rest by the client.
    pub fn next_segment(&self, owned: Seq, end: Seq) -> Option<(Seq, Seq)> {
        let paced = self.next.is_before(owned);
        let allowed = self.edge.map_or(end, |edge| edge.earlier(end));
        let limit = if paced { allowed.earlier(self.una + self.congestion as u32) } else { allowed };
        let length = limit.since(self.next).min(self.mss);
        (length > 0).then(|| (self.next, self.next + length as u32))
    }

    /// Whether the server's window is closed, with nothing on its way that would be answered.
    pub fn is_closed(&self) -> bool {
        self.una == self.next && self.edge.is_some_and(|edge| !self.una.is_before(edge))
    }

    /// Notes that what comes before `end` was sent.
    pub fn sent(&mut self, end: Seq, owned: Seq, now: u64) {
        self.next = self.next.later(end);
        self.watch(owned, now);
    }

    /// Sees to it that what the agent owns does not wait for ever: a lost segment is repeated, a closed window probed.
    pub fn watch(&mut self, owned: Seq, now: u64) {
        let is_owing = self.una.is_before(owned);
        let timeout = (TIMEOUT << self.timeouts).min(LONGEST);
        self.due = match self.due {
            _ if !is_owing => None,
            None => Some(now + timeout),
            due => due,
        };
    }

    /// Takes an acknowledgement; `is_bare` when the segment carried nothing else, `sacked` where its first SACK block begins.
    pub fn acknowledge(
        &mut self,
        ack: Seq,
        window: u32,
        owned: Seq,
        is_bare: bool,
        sacked: Option<Seq>,
        now: u64,
    ) -> Then {
        let edge = ack + window;
        let opened = self.edge.is_none_or(|known| known.is_before(edge));
        if window < self.mss as u32 {
            // The server is there, and lets wait.
            self.timeouts = 0;
        }
        self.edge = Some(self.edge.map_or(edge, |known| known.later(edge)));
        if self.is_probing && (opened || self.una.is_before(ack)) {
            self.is_probing = false;
            // A probe that the server has not taken is sent with the rest, now that there is room for it.
            self.next = self.una.later(ack);
        }
        let until = sacked.unwrap_or(self.next);
        if self.una.is_before(ack) {
            self.congestion += self.mss.min(ack.since(self.una));
            self.una = ack;
            self.next = self.next.later(ack);
            (self.duplicates, self.timeouts, self.due) = (0, 0, None);
            self.watch(owned, now);
            match self.recover {
                Some(recover) if ack.is_before(recover) && ack.is_before(owned) => return Then::Repeat(until),
                _ => self.recover = None,
            }
        } else if ack == self.una && is_bare && !opened && self.una.is_before(self.next.earlier(owned)) {
            self.duplicates += 1;
            if self.duplicates == DUPLICATES && self.recover.is_none() {
                self.lose(2);
                return Then::Repeat(until);
            }
        }
        Then::GoOn
    }

    fn lose(&mut self, segments: usize) {
        self.recover = Some(self.next);
        self.congestion = (self.next.since(self.una) / 2).max(segments * self.mss);
    }

    /// The segment to repeat first, of bytes that end before `end`.
    pub fn first_segment(&self, end: Seq) -> (Seq, Seq) {
        (self.una, self.una + end.since(self.una).min(self.mss) as u32)
    }

    /// When the server is to have answered.
    pub fn due(&self) -> Option<u64> {
        self.due
    }

    /// What to repeat now; an error when the server has not answered for too long.
    ///
    /// # Errors
    /// The server is given up.
    pub fn timeout(&mut self, owned: Seq, now: u64) -> Result<Option<(Seq, Seq)>, ()> {
        if self.due.is_none_or(|due| due > now) || !self.una.is_before(owned) {
            return Ok(None);
        }
        if self.timeouts == TIMEOUTS {
            return Err(());
        }
        self.timeouts += 1;
        self.due = Some(now + (TIMEOUT << self.timeouts).min(LONGEST));
        self.duplicates = 0;
        if self.una == self.next {
            // RFC 9293, section 3.8.6.1: a closed window is probed with a byte.
            self.next += 1;
            self.is_probing = true;
            return Ok(Some((self.una, self.next)));
        }
        self.lose(1);
        Ok(Some(self.first_segment(self.next.earlier(owned))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn sent(segments: u32) -> (Handover, Seq) {
        let (first, owned) = (Seq(1000), Seq(1000 + 100 * segments));
        let mut handover = Handover::new(first, 100, Some(60_000));
        while let Some((_, end)) = handover.next_segment(owned, owned) {
            handover.sent(end, owned, 0);
        }
        (handover, owned)
    }

    #[test]
    fn server_segment_2_of_5_lost() {
        let (mut handover, owned) = sent(5);
        assert_eq!(handover.next, owned);
        let mut ack = |ack: u32| handover.acknowledge(Seq(ack), 60_000, owned, true, None, MS);
        assert_eq!(ack(1100), Then::GoOn);
        assert_eq!([ack(1100), ack(1100)], [Then::GoOn, Then::GoOn]);
        assert_eq!(ack(1100), Then::Repeat(owned));
        assert_eq!(ack(1500), Then::GoOn);
        assert_eq!(handover.first_segment(owned), (owned, owned));
        assert_eq!(handover.due(), None);
    }

    #[test]
    fn after_a_timeout_one_segment_is_repeated_at_a_time() {
        let (mut handover, owned) = sent(5);
        assert_eq!(handover.timeout(owned, 199 * MS), Ok(None));
        assert_eq!(handover.timeout(owned, 200 * MS), Ok(Some((Seq(1000), Seq(1100)))));
        let then = handover.acknowledge(Seq(1100), 60_000, owned, true, Some(Seq(1300)), 201 * MS);
        assert_eq!(then, Then::Repeat(Seq(1300)));
        assert_eq!(handover.acknowledge(Seq(1500), 60_000, owned, true, None, 202 * MS), Then::GoOn);
    }

    #[test]
    fn the_window_is_obeyed_and_probed() {
        let (first, owned) = (Seq(1000), Seq(2000));
        let mut handover = Handover::new(first, 100, Some(150));
        assert_eq!(handover.next_segment(owned, owned), Some((first, Seq(1100))));
        handover.sent(Seq(1100), owned, 0);
        assert_eq!(handover.next_segment(owned, owned), Some((Seq(1100), Seq(1150))));
        handover.sent(Seq(1150), owned, 0);
        assert_eq!(handover.next_segment(owned, owned), None);
        assert_eq!(handover.acknowledge(Seq(1150), 0, owned, true, None, MS), Then::GoOn);
        assert_eq!(handover.timeout(owned, 201 * MS), Ok(Some((Seq(1150), Seq(1151)))));
        handover.acknowledge(Seq(1151), 400, owned, true, None, 202 * MS);
        assert_eq!(handover.next_segment(owned, owned), Some((Seq(1151), Seq(1251))));
    }

    #[test]
    fn a_probe_that_the_server_does_not_take_is_sent_again_with_the_rest() {
        let (first, owned) = (Seq(1000), Seq(2000));
        let mut handover = Handover::new(first, 100, Some(0));
        assert!(handover.is_closed());
        handover.watch(owned, 0);
        assert_eq!(handover.timeout(owned, 200 * MS), Ok(Some((first, Seq(1001)))));
        assert_eq!(handover.acknowledge(first, 0, owned, true, None, 201 * MS), Then::GoOn);
        // Still closed: the same byte.
        assert_eq!(handover.timeout(owned, 600 * MS), Ok(Some((first, Seq(1001)))));
        assert_eq!(handover.acknowledge(first, 5000, owned, true, None, 601 * MS), Then::GoOn);
        assert_eq!(handover.next_segment(owned, owned), Some((first, Seq(1100))));
    }

    #[test]
    fn a_window_that_only_the_client_knows_limits_nothing_until_the_server_tells_it() {
        let first = Seq(1000);
        let mut handover = Handover::new(first, 100, None);
        handover.sent(Seq(1000 + 70_000), first, 0);
        assert_eq!(handover.next_segment(first, Seq(81_000)), Some((Seq(71_000), Seq(71_100))));
        handover.acknowledge(Seq(71_000), 50, first, true, None, MS);
        assert_eq!(handover.next_segment(first, Seq(81_000)), Some((Seq(71_000), Seq(71_050))));
    }

    #[test]
    fn a_silent_server_is_given_up() {
        let (mut handover, owned) = sent(2);
        let mut times = 0;
        while let Some(due) = handover.due() {
            match handover.timeout(owned, due) {
                Ok(_) => times += 1,
                Err(()) => break,
            }
        }
        assert_eq!(times, TIMEOUTS);
    }

    #[test]
    fn what_the_client_repeats_is_not_repeated() {
        let first = Seq(1000);
        let mut handover = Handover::new(first, 100, Some(60_000));
        handover.sent(Seq(1300), first, 0);
        assert_eq!(handover.due(), None);
        let ack = |handover: &mut Handover| handover.acknowledge(first, 60_000, first, true, None, MS);
        assert!((0..5).all(|_| ack(&mut handover) == Then::GoOn));
    }
}
