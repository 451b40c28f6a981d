//! Sends a client's bytes to a server within the server's window. Retransmits the bytes that the agent has
//! acknowledged, because the client no longer retransmits them.
//!
//! This is a minimal TCP sender. It combines slow start and congestion avoidance in one mechanism (a simplified RFC
//! 5681, for at most some tens of KB). It retransmits after three duplicate ACKs (section 3.2), and one segment per
//! partial ACK (RFC 6582). Its timeout doubles (RFC 6298), and it probes a closed window.

use crate::seq::Seq;

/// The number of segments sent before the first ACK (RFC 6928).
const FIRST_SEGMENTS: usize = 10;
const DUPLICATES: u32 = 3;
/// Nanoseconds until the first retransmission: the minimum that Linux uses, because the network delay to servers is
/// short.
const FIRST_TIMEOUT_NS: u64 = 200_000_000;
const MAX_TIMEOUT_NS: u64 = 5_000_000_000;
const MAX_TIMEOUTS: u32 = 8;

/// The state of sending to one server. All sequence numbers are those of the client, which are valid for the server as
/// well.
#[derive(Debug)]
pub struct Sender {
    /// The first sequence number that the server has not acknowledged (SND.UNA).
    pub una: Seq,
    /// The first sequence number that was not sent (SND.NXT).
    pub next: Seq,
    /// The server's MSS in bytes.
    pub mss: usize,
    /// The sequence number at which the server's window ends; none as long as the server has announced its window only
    /// to the client.
    edge: Option<Seq>,
    congestion: usize,
    duplicates: u32,
    /// During loss recovery, the value of `next` when the loss was detected.
    recover: Option<Seq>,
    due: Option<u64>,
    timeouts: u32,
    /// Whether a window probe was sent: one byte beyond the closed window.
    is_probing: bool,
}

/// What the agent sends after an ACK.
#[derive(Debug, PartialEq, Eq)]
pub enum AckAction {
    /// Send new bytes, as far as the window allows.
    SendNew,
    /// Retransmit the first unacknowledged segment, at most up to this sequence number.
    Retransmit(Seq),
}

impl Sender {
    /// Creates the sender for a server with this initial window in bytes. If `window` is none, the sender applies no
    /// window: the server has announced its window to the client only, and the client keeps within it.
    pub fn new(first: Seq, mss: u16, window: Option<u32>) -> Sender {
        let mss = usize::from(mss.max(64));
        Sender {
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

    /// Returns the range of the next segment of new bytes before `end`; none if the server's window or congestion
    /// control allows no byte now. Congestion control applies to the bytes before `owned`, which the agent has
    /// acknowledged; the client itself paces later bytes.
    pub fn next_segment(&self, owned: Seq, end: Seq) -> Option<(Seq, Seq)> {
        let paced = self.next.is_before(owned);
        let allowed = self.edge.map_or(end, |edge| edge.earlier(end));
        let limit = if paced { allowed.earlier(self.una + self.congestion as u32) } else { allowed };
        let length = limit.since(self.next).min(self.mss);
        (length > 0).then(|| (self.next, self.next + length as u32))
    }

    /// Returns whether the server's window is closed, and no byte is in flight whose ACK could open it.
    pub fn is_closed(&self) -> bool {
        self.una == self.next && self.edge.is_some_and(|edge| !self.una.is_before(edge))
    }

    /// Records that the bytes before `end` were sent, and sets the retransmission timer.
    pub fn record_sent(&mut self, end: Seq, owned: Seq, now: u64) {
        self.next = self.next.later(end);
        self.set_timer(owned, now);
    }

    /// Starts the retransmission timer, unless it runs already, if the agent has acknowledged bytes to the client that
    /// the server has not acknowledged. Otherwise stops the timer. It covers lost segments and closed windows.
    pub fn set_timer(&mut self, owned: Seq, now: u64) {
        let is_owing = self.una.is_before(owned);
        let timeout = (FIRST_TIMEOUT_NS << self.timeouts).min(MAX_TIMEOUT_NS);
        self.due = match self.due {
            _ if !is_owing => None,
            None => Some(now + timeout),
            due => due,
        };
    }

    /// Processes an ACK that announces a window of `window` bytes. `is_bare` is true if the segment contained only the
    /// ACK; `sacked` is the lowest start of its SACK blocks. The agent has acknowledged the client's bytes before
    /// `owned`.
    pub fn acknowledge(
        &mut self,
        ack: Seq,
        window: u32,
        owned: Seq,
        is_bare: bool,
        sacked: Option<Seq>,
        now: u64,
    ) -> AckAction {
        let edge = ack + window;
        let window_opened = self.edge.is_none_or(|known| known.is_before(edge));
        if window < self.mss as u32 {
            // The server answers, and only its window prevents the agent from sending. So the timeouts do not count.
            self.timeouts = 0;
        }
        self.edge = Some(self.edge.map_or(edge, |known| known.later(edge)));
        if self.is_probing && (window_opened || self.una.is_before(ack)) {
            self.is_probing = false;
            // If the server has not accepted the probe's byte, the agent sends this byte again with the following ones.
            self.next = self.una.later(ack);
        }
        let until = sacked.unwrap_or(self.next);
        if self.una.is_before(ack) {
            self.congestion += self.mss.min(ack.since(self.una));
            self.una = ack;
            self.next = self.next.later(ack);
            (self.duplicates, self.timeouts, self.due) = (0, 0, None);
            self.set_timer(owned, now);
            match self.recover {
                Some(recover) if ack.is_before(recover) && ack.is_before(owned) => return AckAction::Retransmit(until),
                _ => self.recover = None,
            }
        } else if ack == self.una && is_bare && !window_opened && self.una.is_before(self.next.earlier(owned)) {
            self.duplicates += 1;
            if self.duplicates == DUPLICATES && self.recover.is_none() {
                self.enter_recovery(2);
                return AckAction::Retransmit(until);
            }
        }
        AckAction::SendNew
    }

    fn enter_recovery(&mut self, segments: usize) {
        self.recover = Some(self.next);
        self.congestion = (self.next.since(self.una) / 2).max(segments * self.mss);
    }

    /// Returns the range of the first unacknowledged segment. The range ends at `end` or before.
    pub fn first_segment(&self, end: Seq) -> (Seq, Seq) {
        (self.una, self.una + end.since(self.una).min(self.mss) as u32)
    }

    /// Returns the time at which the retransmission timer expires.
    pub fn due(&self) -> Option<u64> {
        self.due
    }

    /// If the timer has expired at the time `now`, returns the range of bytes to retransmit, or the one byte of a
    /// window probe, and restarts the timer.
    ///
    /// # Errors
    /// Fails after `MAX_TIMEOUTS` timeouts in a row without an answer of the server.
    pub fn timeout(&mut self, owned: Seq, now: u64) -> Result<Option<(Seq, Seq)>, ()> {
        if self.due.is_none_or(|due| due > now) || !self.una.is_before(owned) {
            return Ok(None);
        }
        if self.timeouts == MAX_TIMEOUTS {
            return Err(());
        }
        self.timeouts += 1;
        self.due = Some(now + (FIRST_TIMEOUT_NS << self.timeouts).min(MAX_TIMEOUT_NS));
        self.duplicates = 0;
        if self.una == self.next {
            // RFC 9293, section 3.8.6.1: probe a closed window with one byte.
            self.next += 1;
            self.is_probing = true;
            return Ok(Some((self.una, self.next)));
        }
        self.enter_recovery(1);
        Ok(Some(self.first_segment(self.next.earlier(owned))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn record_sent(segments: u32) -> (Sender, Seq) {
        let (first, owned) = (Seq(1000), Seq(1000 + 100 * segments));
        let mut sender = Sender::new(first, 100, Some(60_000));
        while let Some((_, end)) = sender.next_segment(owned, owned) {
            sender.record_sent(end, owned, 0);
        }
        (sender, owned)
    }

    #[test]
    fn server_segment_2_of_5_lost() {
        let (mut sender, owned) = record_sent(5);
        assert_eq!(sender.next, owned);
        let mut ack = |ack: u32| sender.acknowledge(Seq(ack), 60_000, owned, true, None, MS);
        assert_eq!(ack(1100), AckAction::SendNew);
        assert_eq!([ack(1100), ack(1100)], [AckAction::SendNew, AckAction::SendNew]);
        assert_eq!(ack(1100), AckAction::Retransmit(owned));
        assert_eq!(ack(1500), AckAction::SendNew);
        assert_eq!(sender.first_segment(owned), (owned, owned));
        assert_eq!(sender.due(), None);
    }

    #[test]
    fn after_a_timeout_segments_are_retransmitted_singly() {
        let (mut sender, owned) = record_sent(5);
        assert_eq!(sender.timeout(owned, 199 * MS), Ok(None));
        assert_eq!(sender.timeout(owned, 200 * MS), Ok(Some((Seq(1000), Seq(1100)))));
        let action = sender.acknowledge(Seq(1100), 60_000, owned, true, Some(Seq(1300)), 201 * MS);
        assert_eq!(action, AckAction::Retransmit(Seq(1300)));
        assert_eq!(sender.acknowledge(Seq(1500), 60_000, owned, true, None, 202 * MS), AckAction::SendNew);
    }

    #[test]
    fn the_window_is_obeyed_and_probed() {
        let (first, owned) = (Seq(1000), Seq(2000));
        let mut sender = Sender::new(first, 100, Some(150));
        assert_eq!(sender.next_segment(owned, owned), Some((first, Seq(1100))));
        sender.record_sent(Seq(1100), owned, 0);
        assert_eq!(sender.next_segment(owned, owned), Some((Seq(1100), Seq(1150))));
        sender.record_sent(Seq(1150), owned, 0);
        assert_eq!(sender.next_segment(owned, owned), None);
        assert_eq!(sender.acknowledge(Seq(1150), 0, owned, true, None, MS), AckAction::SendNew);
        assert_eq!(sender.timeout(owned, 201 * MS), Ok(Some((Seq(1150), Seq(1151)))));
        sender.acknowledge(Seq(1151), 400, owned, true, None, 202 * MS);
        assert_eq!(sender.next_segment(owned, owned), Some((Seq(1151), Seq(1251))));
    }

    #[test]
    fn a_probe_that_the_server_does_not_take_is_sent_again_with_the_rest() {
        let (first, owned) = (Seq(1000), Seq(2000));
        let mut sender = Sender::new(first, 100, Some(0));
        assert!(sender.is_closed());
        sender.set_timer(owned, 0);
        assert_eq!(sender.timeout(owned, 200 * MS), Ok(Some((first, Seq(1001)))));
        assert_eq!(sender.acknowledge(first, 0, owned, true, None, 201 * MS), AckAction::SendNew);
        // The window is still closed, so the probe's byte is sent again.
        assert_eq!(sender.timeout(owned, 600 * MS), Ok(Some((first, Seq(1001)))));
        assert_eq!(sender.acknowledge(first, 5000, owned, true, None, 601 * MS), AckAction::SendNew);
        assert_eq!(sender.next_segment(owned, owned), Some((first, Seq(1100))));
    }

    #[test]
    fn a_window_unknown_to_the_agent_limits_nothing_until_the_server_announces_it() {
        let first = Seq(1000);
        let mut sender = Sender::new(first, 100, None);
        sender.record_sent(Seq(1000 + 70_000), first, 0);
        assert_eq!(sender.next_segment(first, Seq(81_000)), Some((Seq(71_000), Seq(71_100))));
        sender.acknowledge(Seq(71_000), 50, first, true, None, MS);
        assert_eq!(sender.next_segment(first, Seq(81_000)), Some((Seq(71_000), Seq(71_050))));
    }

    #[test]
    fn a_silent_server_is_given_up() {
        let (mut sender, owned) = record_sent(2);
        let mut timeouts_seen = 0;
        while let Some(due) = sender.due() {
            match sender.timeout(owned, due) {
                Ok(_) => timeouts_seen += 1,
                Err(()) => break,
            }
        }
        assert_eq!(timeouts_seen, MAX_TIMEOUTS);
    }

    #[test]
    fn bytes_that_the_client_retransmits_are_left_to_it() {
        let first = Seq(1000);
        let mut sender = Sender::new(first, 100, Some(60_000));
        sender.record_sent(Seq(1300), first, 0);
        assert_eq!(sender.due(), None);
        let ack = |sender: &mut Sender| sender.acknowledge(first, 60_000, first, true, None, MS);
        assert!((0..5).all(|_| ack(&mut sender) == AckAction::SendNew));
    }
}
