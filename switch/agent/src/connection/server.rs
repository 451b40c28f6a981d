//! A server that has answered, as the agent stands between it and the client: hands the client's bytes on, and translates both ways.
//!
//! A client's data goes to the server from the assembler, up to the number that is meant for it. What carries no data is passed on,
//! translated. A server's segments are passed on as they are, translated.

use std::net::SocketAddrV4;

use super::client::Client;
use super::context::Context;
use super::end::End;
use crate::acceptance::{Challenges, Expected, Verdict};
use crate::handover::{Handover, Then};
use crate::order::{self, shifted};
use crate::pool::DEFAULT_MSS;
use crate::seq::Seq;
use crate::wire::flags::{ACK, FIN, PSH, RST, SYN};
use crate::wire::{Head, Passage, Segment, pass_on, window_field};

/// The largest segment on Ethernet.
const LARGEST: u16 = 1460;

/// Bytes by which a server's first numbers lie behind its next one, at most.
const BEHIND: u32 = 1 << 30;

/// What a server's SYN-ACK says.
pub struct Answer {
    /// Its first number.
    pub first: Seq,
    /// How its window field is to be read; none where it does not scale.
    pub scale: Option<u8>,
    /// Largest segment that it takes, if it says so.
    pub mss: Option<u16>,
    /// Its window, in bytes; none if only the client knows it.
    pub window: Option<u32>,
}

/// A server.
pub struct Server {
    /// Its group, and the group's address.
    pub group: usize,
    address: SocketAddrV4,
    /// What it has been sent.
    pub handover: Handover,
    /// The server's number and this make the client's.
    delta: u32,
    /// Bits by which the server's window field is shifted left for the client.
    shift: i8,
    /// Bits by which the client's window field is shifted left for the server (RFC 7323, section 2.2: a server that does not scale
    /// reads it as it stands, and the client scales it).
    client_shift: u8,
    /// How the server's window field is to be read.
    scale: u8,
    /// The first number of the request that the server was opened for. A segment that acknowledges no more may be a late one of a
    /// server that the connection has left.
    asked: Seq,
    /// The server's first number.
    pub opened: Seq,
    /// The server's first number that is for the client.
    first: Seq,
    /// The next number of the server that is to come.
    pub next: Seq,
    /// The client's FIN was handed on.
    fin_sent: bool,
    /// The server's FIN was passed on.
    pub fin_seen: bool,
    challenges: Challenges,
}

impl Server {
    /// A server of this group that has answered.
    pub fn new(client: &Client, group: usize, answer: &Answer) -> Server {
        let client_scale = client.terms.offer.scale;
        let scale = answer.scale.filter(|_| client_scale.is_some());
        let mss = answer.mss.unwrap_or(DEFAULT_MSS).min(LARGEST);
        Server {
            group,
            address: client.terms.service.groups[group].address,
            handover: Handover::new(client.request.base(), mss, answer.window),
            delta: order::delta(client.next, answer.first),
            shift: scale.unwrap_or(0) as i8 - client.terms.announced_scale as i8,
            client_shift: client_scale.filter(|_| scale.is_none()).unwrap_or(0),
            scale: scale.unwrap_or(0),
            asked: client.request.base(),
            opened: answer.first,
            first: answer.first,
            next: answer.first,
            fin_sent: false,
            fin_seen: false,
            challenges: Challenges::default(),
        }
    }

    /// How it is left.
    pub fn end(&self) -> End {
        End { group: self.group, seq: self.handover.next }
    }

    /// Whether both sides have ended, the client's with this FIN.
    pub fn is_over(&self, fin: Option<Seq>) -> bool {
        self.fin_seen && fin.is_some_and(|fin| fin.is_before(self.handover.una))
    }

    /// Whether the agent has acknowledged bytes that the server has not.
    pub fn owes(&self, client: &Client) -> bool {
        self.handover.una.is_before(client.owned)
    }

    /// Resets both sides.
    pub fn abort(&self, client: &mut Client, ctx: &mut Context<'_>) {
        client.terms.service.counters.lost.add(u64::from(self.owes(client)));
        client.leave(ctx, Some(self.end()));
        client.reset(ctx);
    }

    /// The server's number that is this one of the client's.
    pub fn to_client(&self, seq: Seq) -> Seq {
        seq + self.delta
    }

    /// The client's number in the server's. What the client acknowledged of earlier servers or the agent is not this server's.
    fn to_server(&self, ack: Seq) -> Seq {
        (ack - self.delta).later(self.first)
    }

    /// Judges a segment of the server, before anything is changed. What it has been acknowledged is what the client has
    /// acknowledged: the client may need the rest again.
    pub fn judge(&self, client: &Client, now: u64, segment: &Segment<'_>) -> Verdict {
        if segment.seq().is_before(self.opened - 1) || self.is_late(client, now, segment) {
            return Verdict::Drop;
        }
        let fin = client.fin.filter(|_| self.fin_sent);
        let expected = Expected {
            next: self.to_server(client.ack),
            received: self.next + u32::from(self.fin_seen),
            edge: self.to_server(client.edge()),
            una: self.handover.una,
            sent: fin.map_or(self.handover.next, |fin| fin + 1),
            max_window: u32::from(u16::MAX) << self.scale,
        };
        expected.judge(segment)
    }

    /// Whether a segment may be a late one of a server that the connection has left, which may be this same host: its number is among
    /// that server's, and it acknowledges nothing of the request. A segment of this server is sent again, and acknowledges the request
    /// then.
    fn is_late(&self, client: &Client, now: u64, segment: &Segment<'_>) -> bool {
        let brings_something = !is_bare(segment) || self.next.is_before(segment.seq());
        brings_something && !self.asked.is_before(segment.ack()) && client.is_among_left(now, segment.seq())
    }

    /// The server's number up to which the client has all that the server has sent.
    pub fn acknowledged(&self, client: &Client) -> Seq {
        self.to_server(client.ack)
    }

    /// Sets the next number that is to come. Sequence numbers compare within 2 GiB, so the server's first ones are moved along.
    pub fn set_next(&mut self, next: Seq) {
        self.next = next;
        let oldest = next - BEHIND;
        (self.opened, self.first) = (self.opened.later(oldest), self.first.later(oldest));
    }

    /// Answers a segment that is not acceptable.
    pub fn challenge(&mut self, client: &Client, ctx: &mut Context<'_>, segment: &Segment<'_>) {
        if self.challenges.may_answer(ctx.now, segment) {
            self.acknowledge(client, ctx);
        }
    }

    /// Whether a bare segment repeats what was acknowledged: a keepalive, which the client itself is to answer. What the agent has
    /// kept to itself is not the client's.
    pub fn is_keepalive(&self, client: &Client, segment: &Segment<'_>) -> bool {
        let next = self.to_server(client.ack);
        is_bare(segment) && segment.seq().is_before(next) && !segment.has(SYN) && !segment.has(RST)
    }

    /// What the agent is to repeat of the client's bytes, in place of the client, ends here.
    fn owed(&self, client: &Client, limit: Seq) -> Seq {
        client.owned.earlier(limit)
    }

    fn head(&self, client: &Client, seq: Seq, flags: u8) -> Head {
        Head {
            source: client.terms.client,
            destination: self.address,
            seq,
            ack: self.to_server(client.ack),
            flags,
            window: shifted(client.window, self.client_shift as i8),
        }
    }

    /// Sends the bytes from one number to another, with the client's FIN if it comes right behind.
    fn send(&mut self, client: &Client, ctx: &mut Context<'_>, (start, end): (Seq, Seq)) {
        let bytes = client.request.between(start, end);
        let ends = client.fin == Some(end);
        self.fin_sent |= ends;
        let flags = ACK | if bytes.is_empty() { 0 } else { PSH } | if ends { FIN } else { 0 };
        let head = self.head(client, start, flags);
        ctx.out.push_with(|frame| head.write(&ctx.link, &[], [bytes, b""], frame));
    }

    /// Hands on what may be handed on of the bytes before `limit`. True when the server was sent something.
    pub fn hand_on(&mut self, client: &Client, ctx: &mut Context<'_>, limit: Seq) -> bool {
        let (owed, mut has_sent) = (self.owed(client, limit), false);
        while let Some((start, end)) = self.handover.next_segment(owed, limit) {
            self.handover.sent(end, owed, ctx.now);
            self.send(client, ctx, (start, end));
            has_sent = true;
        }
        self.handover.watch(owed, ctx.now);
        let next = self.handover.next;
        if client.fin == Some(next) && next == limit && !self.fin_sent {
            self.send(client, ctx, (next, next));
            has_sent = true;
        }
        has_sent
    }

    /// Sends again what the client repeats and does not know to be acknowledged. True when there was something.
    pub fn repeat(&mut self, client: &Client, ctx: &mut Context<'_>, segment: &Segment<'_>) -> bool {
        let mut start = segment.seq().later(client.owned).later(self.handover.una);
        let end = (segment.seq() + segment.payload().len() as u32).earlier(self.handover.next);
        let mut has_sent = false;
        while start.is_before(end) {
            let part = end.earlier(start + self.handover.mss as u32);
            self.send(client, ctx, (start, part));
            (start, has_sent) = (part, true);
        }
        if let Some(fin) = client.fin.filter(|_| !has_sent && segment.has(FIN) && self.fin_sent) {
            self.send(client, ctx, (fin, fin));
            has_sent = true;
        }
        has_sent
    }

    /// Repeats what the server does not answer. False when it is given up.
    #[must_use]
    pub fn on_time(&mut self, client: &Client, ctx: &mut Context<'_>, limit: Seq) -> bool {
        match self.handover.timeout(self.owed(client, limit), ctx.now) {
            Ok(None) => true,
            Ok(Some(range)) => {
                self.send(client, ctx, range);
                true
            }
            Err(()) => false,
        }
    }

    /// Passes a client's segment on, with what data it has.
    pub fn pass(&self, client: &Client, ctx: &mut Context<'_>, segment: &Segment<'_>, seq: Seq) {
        let passage = Passage { head: self.head(client, seq, 0), sacks: Some((self.delta, self.first)) };
        ctx.out.push_with(|frame| pass_on(segment, &ctx.link, &passage, frame));
    }

    /// Passes on what the client acknowledges.
    pub fn acknowledge(&self, client: &Client, ctx: &mut Context<'_>) {
        let head = self.head(client, self.handover.next, ACK);
        ctx.out.push_with(|frame| head.write(&ctx.link, &[], [b"", b""], frame));
    }

    /// Takes what the server acknowledges, of bytes before `limit`. False when the segment says nothing to the client: it knows
    /// that what the agent owns has come, and takes no part in its repetition.
    #[must_use]
    pub fn take_acknowledgement(
        &mut self,
        client: &mut Client,
        ctx: &mut Context<'_>,
        segment: &Segment<'_>,
        limit: Seq,
    ) -> bool {
        let is_bare = is_bare(segment);
        let window = u32::from(segment.window()) << self.scale;
        let owed = self.owed(client, limit);
        let then = self.handover.acknowledge(segment.ack(), window, owed, is_bare, segment.first_sack(), ctx.now);
        if let Then::Repeat(until) = then {
            let range = self.handover.first_segment(until.earlier(owed));
            self.send(client, ctx, range);
        }
        client.confirm(self.handover.una);
        !(is_bare && segment.ack().is_before(client.owned))
    }

    /// Takes a server's bytes that it cannot bring again in another order: it is passed on as it comes.
    pub fn take_data(&mut self, segment: &Segment<'_>) {
        if !self.next.is_before(segment.seq()) {
            self.set_next(self.next.later(segment.seq() + segment.payload().len() as u32));
        }
    }

    /// Whether a segment brings again what was for the agent.
    pub fn is_swallowed(&self, segment: &Segment<'_>) -> bool {
        segment.seq().is_before(self.first) && !segment.payload().is_empty()
    }

    /// What the server sent before `next` was for the agent. The client gets the rest from `toward_client` on.
    pub fn swallow(&mut self, next: Seq, toward_client: Seq) {
        (self.first, self.next) = (next, next);
        self.delta = order::delta(toward_client, next);
    }

    /// Passes a server's segment on.
    pub fn pass_to_client(&self, client: &mut Client, ctx: &mut Context<'_>, segment: &Segment<'_>) {
        self.write_to_client(client, ctx, segment);
        client.next = client.next.later(self.to_client(segment.end()));
    }

    /// The same of a segment that changes nothing.
    pub fn write_to_client(&self, client: &Client, ctx: &mut Context<'_>, segment: &Segment<'_>) {
        let announced_scale = client.terms.announced_scale;
        let ack = segment.ack().later(client.owned);
        let window = if ack == segment.ack() {
            shifted(segment.window(), self.shift)
        } else {
            // The window ends where it ended.
            let edge = segment.ack() + (u32::from(segment.window()) << self.scale);
            window_field(edge.since(ack), announced_scale)
        };
        let head = Head {
            source: client.terms.own_address,
            destination: client.terms.client,
            seq: self.to_client(segment.seq()),
            ack: if segment.has(ACK) { ack } else { segment.ack() },
            flags: 0,
            window: window.min(window_field(client.request.room(), announced_scale)),
        };
        let passage = Passage { head, sacks: None };
        ctx.out.push_with(|frame| pass_on(segment, &ctx.link, &passage, frame));
    }

    /// What the data plane needs to translate in the agent's place: delta and both shifts.
    pub fn translation(&self) -> (u32, i8, u8) {
        (self.delta, self.shift, self.client_shift)
    }

    /// Asserts what holds for every server.
    pub fn check(&self, client: &Client) {
        assert!(!self.handover.next.is_before(self.handover.una), "a server acknowledges only what it was sent");
        assert!(!client.acknowledged().is_before(self.handover.una), "the client may know what the server has");
        assert!(!self.first.is_before(self.opened) && !self.next.is_before(self.first));
        assert!(!self.fin_sent || client.fin.is_some(), "only a client's FIN is handed on");
        assert!(self.client_shift == 0 || self.scale == 0, "windows are scaled in one way");
    }
}

/// Whether a segment carries nothing but an acknowledgement.
pub fn is_bare(segment: &Segment<'_>) -> bool {
    segment.payload().is_empty() && !segment.has(FIN)
}
