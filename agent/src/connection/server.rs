//! The connection to a server that has accepted it: the agent forwards the client's bytes to the server, and translates
//! the segments of both directions.
//!
//! The agent sends the client's data to the server from the reassembly buffer, up to the sequence number at which the
//! data for this server ends. It forwards segments without data, and all segments of the server, changed only by the
//! translation.

use std::net::SocketAddrV4;

use super::client::Client;
use super::context::Context;
use super::server_reset::ServerReset;
use crate::acceptance::{Challenges, Expected, Verdict};
use crate::order::{self, shifted};
use crate::pool::DEFAULT_MSS;
use crate::sender::{AckAction, Sender};
use crate::seq::Seq;
use crate::wire::flags::{ACK, FIN, PSH, RST, SYN};
use crate::wire::{HeaderRewrite, Segment, SegmentHeader, window_field, write_rewritten};

/// The MSS on Ethernet, in bytes.
const ETHERNET_MSS: u16 = 1460;

/// The largest distance, in bytes, of a server's sequence numbers `opened` and `first` from `next`. On longer
/// connections these two advance with `next`, because sequence numbers compare correctly only within 2 GiB.
const MAX_DISTANCE: u32 = 1 << 30;

/// The contents of a server's SYN-ACK.
pub struct SynAck {
    /// The sequence number of the server's first byte.
    pub first: Seq,
    /// The server's window scale; none if the server does not scale its window.
    pub scale: Option<u8>,
    /// The server's MSS in bytes, if it announces one.
    pub mss: Option<u16>,
    /// The server's window in bytes; none if only the client, not the agent, has received the SYN-ACK.
    pub window: Option<u32>,
}

/// A server that has accepted the connection.
pub struct Server {
    /// Index of the server's group in the service; `address` is the group's address.
    pub group: usize,
    address: SocketAddrV4,
    /// The sender of the client's bytes to this server.
    pub sender: Sender,
    /// The delta: server's sequence number + delta = client's sequence number.
    delta: u32,
    /// Bits by which the server's window field is shifted left for the client; a negative value means a shift to the
    /// right.
    shift: i8,
    /// Bits by which the client's window field is shifted left for the server. A server that does not scale reads the
    /// field unscaled, although the client scales it (RFC 7323, section 2.2).
    client_shift: u8,
    /// Bits by which the server's window field is shifted left to get bytes.
    scale: u8,
    /// The first sequence number of the request for which the server was opened. If a server's
    /// segment acknowledges no byte of this request, it may be a late segment of a former server.
    request_start: Seq,
    /// The sequence number of the first byte that the server sends on this connection.
    pub opened: Seq,
    /// The sequence number of the server's first byte that is forwarded to the client; the agent discards earlier
    /// bytes.
    first: Seq,
    /// The next sequence number that the agent expects of the server.
    pub next: Seq,
    /// Whether the client's FIN was forwarded to the server.
    fin_sent: bool,
    /// Whether the server's FIN was forwarded to the client.
    pub fin_forwarded: bool,
    challenges: Challenges,
}

impl Server {
    /// Creates the state of a server of this group from its SYN-ACK.
    pub fn new(client: &Client, group: usize, syn_ack: &SynAck) -> Server {
        let client_scale = client.terms.syn_options.scale;
        let scale = syn_ack.scale.filter(|_| client_scale.is_some());
        let mss = syn_ack.mss.unwrap_or(DEFAULT_MSS).min(ETHERNET_MSS);
        Server {
            group,
            address: client.terms.service.groups[group].address,
            sender: Sender::new(client.request.base(), mss, syn_ack.window),
            delta: order::delta(client.next, syn_ack.first),
            shift: scale.unwrap_or(0) as i8 - client.terms.announced_scale as i8,
            client_shift: client_scale.filter(|_| scale.is_none()).unwrap_or(0),
            scale: scale.unwrap_or(0),
            request_start: client.request.base(),
            opened: syn_ack.first,
            first: syn_ack.first,
            next: syn_ack.first,
            fin_sent: false,
            fin_forwarded: false,
            challenges: Challenges::default(),
        }
    }

    /// Returns the data of a reset to this server.
    pub fn as_reset(&self) -> ServerReset {
        ServerReset { group: self.group, seq: self.sender.next }
    }

    /// Returns whether client and server have closed the connection; `fin` is the sequence number of the client's FIN.
    pub fn is_over(&self, fin: Option<Seq>) -> bool {
        self.fin_forwarded && fin.is_some_and(|fin| fin.is_before(self.sender.una))
    }

    /// Returns whether the agent has acknowledged bytes of the client that the server has not acknowledged.
    pub fn owes(&self, client: &Client) -> bool {
        self.sender.una.is_before(client.owned)
    }

    /// Resets server and client.
    pub fn abort(&self, client: &mut Client, ctx: &mut Context<'_>) {
        client.terms.service.counters.lost.add(u64::from(self.owes(client)));
        client.leave(ctx, Some(self.as_reset()));
        client.reset(ctx);
    }

    /// Translates a sequence number of the server to the one that the client is sent.
    pub fn to_client(&self, seq: Seq) -> Seq {
        seq + self.delta
    }

    /// Translates an acknowledgement number of the client to the server's sequence numbers. Acknowledgements of bytes
    /// from former servers or from the agent itself are mapped to `first`.
    fn to_server(&self, ack: Seq) -> Seq {
        (ack - self.delta).later(self.first)
    }

    /// Decides whether a segment of the server is acceptable, without changing any state. The agent acknowledges to the
    /// server only bytes that the client has acknowledged, because the server must be able to retransmit the others.
    pub fn judge(&self, client: &Client, now: u64, segment: &Segment<'_>) -> Verdict {
        if segment.seq().is_before(self.opened - 1) || self.is_late(client, now, segment) {
            return Verdict::Drop;
        }
        let fin = client.fin.filter(|_| self.fin_sent);
        let expected = Expected {
            next: self.to_server(client.ack),
            received: self.next + u32::from(self.fin_forwarded),
            edge: self.to_server(client.edge()),
            una: self.sender.una,
            sent: fin.map_or(self.sender.next, |fin| fin + 1),
            max_window: u32::from(u16::MAX) << self.scale,
        };
        expected.judge(segment)
    }

    /// Returns whether a segment may be a late segment of a former server, which may be the same host. A segment counts
    /// as late if its sequence number is in the former server's range and it acknowledges no byte of the request. If
    /// the current server has sent such a segment, it retransmits the segment later, with an acknowledgement of the
    /// request.
    fn is_late(&self, client: &Client, now: u64, segment: &Segment<'_>) -> bool {
        let is_significant = !is_bare(segment) || self.next.is_before(segment.seq());
        is_significant
            && !self.request_start.is_before(segment.ack())
            && client.belongs_to_former_server(now, segment.seq())
    }

    /// Returns the server's sequence number up to which the client has acknowledged the server's bytes.
    pub fn acknowledged(&self, client: &Client) -> Seq {
        self.to_server(client.ack)
    }

    /// Sets the next expected sequence number. Sequence numbers compare correctly only within 2 GiB, so `opened` and
    /// `first` follow it at a distance of at most `MAX_DISTANCE`.
    pub fn set_next(&mut self, next: Seq) {
        self.next = next;
        let oldest = next - MAX_DISTANCE;
        (self.opened, self.first) = (self.opened.later(oldest), self.first.later(oldest));
    }

    /// Answers an unacceptable segment of the server by an ACK, at a limited rate.
    pub fn challenge(&mut self, client: &Client, ctx: &mut Context<'_>, segment: &Segment<'_>) {
        if self.challenges.may_answer(ctx.now, segment) {
            self.acknowledge(client, ctx);
        }
    }

    /// Returns whether a segment of the server is a keepalive (no data, an acknowledged sequence number), which the
    /// client itself has to answer. Bytes that the agent has discarded count as acknowledged.
    pub fn is_keepalive(&self, client: &Client, segment: &Segment<'_>) -> bool {
        let next = self.to_server(client.ack);
        is_bare(segment) && segment.seq().is_before(next) && !segment.has(SYN) && !segment.has(RST)
    }

    /// Returns the end of those bytes before `limit` that the agent has acknowledged to the client. The agent itself
    /// has to retransmit these bytes to the server.
    fn owed(&self, client: &Client, limit: Seq) -> Seq {
        client.owned.earlier(limit)
    }

    fn head(&self, client: &Client, seq: Seq, flags: u8) -> SegmentHeader {
        SegmentHeader {
            source: client.terms.client,
            destination: self.address,
            seq,
            ack: self.to_server(client.ack),
            flags,
            window: shifted(client.window, self.client_shift as i8),
        }
    }

    /// Sends the bytes from `start` to `end`, with the client's FIN if it directly follows these bytes.
    fn send(&mut self, client: &Client, ctx: &mut Context<'_>, (start, end): (Seq, Seq)) {
        let bytes = client.request.between(start, end);
        let ends = client.fin == Some(end);
        self.fin_sent |= ends;
        let flags = ACK | if bytes.is_empty() { 0 } else { PSH } | if ends { FIN } else { 0 };
        let head = self.head(client, start, flags);
        ctx.out.push_with(|frame| head.write(&ctx.link, &[], [bytes, b""], frame));
    }

    /// Sends the server as many of the client's bytes before `limit` as the server's window allows, and the client's
    /// FIN if it follows. Returns whether a segment was sent.
    pub fn forward(&mut self, client: &Client, ctx: &mut Context<'_>, limit: Seq) -> bool {
        let (owed, mut has_sent) = (self.owed(client, limit), false);
        while let Some((start, end)) = self.sender.next_segment(owed, limit) {
            self.sender.record_sent(end, owed, ctx.now);
            self.send(client, ctx, (start, end));
            has_sent = true;
        }
        self.sender.set_timer(owed, ctx.now);
        let next = self.sender.next;
        if client.fin == Some(next) && next == limit && !self.fin_sent {
            self.send(client, ctx, (next, next));
            has_sent = true;
        }
        has_sent
    }

    /// Forwards again the bytes of a segment that the client retransmits, except the bytes that the agent or the server
    /// has acknowledged. Returns whether a segment was sent.
    pub fn retransmit(&mut self, client: &Client, ctx: &mut Context<'_>, segment: &Segment<'_>) -> bool {
        let mut start = segment.seq().later(client.owned).later(self.sender.una);
        let end = (segment.seq() + segment.payload().len() as u32).earlier(self.sender.next);
        let mut has_sent = false;
        while start.is_before(end) {
            let segment_end = end.earlier(start + self.sender.mss as u32);
            self.send(client, ctx, (start, segment_end));
            (start, has_sent) = (segment_end, true);
        }
        if let Some(fin) = client.fin.filter(|_| !has_sent && segment.has(FIN) && self.fin_sent) {
            self.send(client, ctx, (fin, fin));
            has_sent = true;
        }
        has_sent
    }

    /// Retransmits bytes to the server, or probes its window, if the retransmission timer has expired. Returns false if
    /// the server has not answered the last retransmission either.
    #[must_use]
    pub fn on_time(&mut self, client: &Client, ctx: &mut Context<'_>, limit: Seq) -> bool {
        match self.sender.timeout(self.owed(client, limit), ctx.now) {
            Ok(None) => true,
            Ok(Some(range)) => {
                self.send(client, ctx, range);
                true
            }
            Err(()) => false,
        }
    }

    /// Forwards a segment of the client, translated, to the server, with the sequence number `seq`.
    pub fn pass(&self, client: &Client, ctx: &mut Context<'_>, segment: &Segment<'_>, seq: Seq) {
        let rewrite = HeaderRewrite { head: self.head(client, seq, 0), sacks: Some((self.delta, self.first)) };
        ctx.out.push_with(|frame| write_rewritten(segment, &ctx.link, &rewrite, frame));
    }

    /// Sends the server an ACK of the bytes that the client has acknowledged.
    pub fn acknowledge(&self, client: &Client, ctx: &mut Context<'_>) {
        let head = self.head(client, self.sender.next, ACK);
        ctx.out.push_with(|frame| head.write(&ctx.link, &[], [b"", b""], frame));
    }

    /// Processes the server's ACK of bytes before `limit`. Returns false if the segment must not be forwarded to the
    /// client: the client has already received the agent's ACK of these bytes, and only the agent retransmits them.
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
        let action = self.sender.acknowledge(segment.ack(), window, owed, is_bare, segment.first_sack(), ctx.now);
        if let AckAction::Retransmit(until) = action {
            let range = self.sender.first_segment(until.earlier(owed));
            self.send(client, ctx, range);
        }
        client.confirm(self.sender.una);
        !(is_bare && segment.ack().is_before(client.owned))
    }

    /// Updates the next expected sequence number for a segment that is forwarded to the client at once.
    pub fn take_data(&mut self, segment: &Segment<'_>) {
        if !self.next.is_before(segment.seq()) {
            self.set_next(self.next.later(segment.seq() + segment.payload().len() as u32));
        }
    }

    /// Returns whether a segment repeats bytes of the server that the agent has discarded.
    pub fn is_discarded(&self, segment: &Segment<'_>) -> bool {
        segment.seq().is_before(self.first) && !segment.payload().is_empty()
    }

    /// Discards the server's bytes before `next`, which were answers to the agent. The server's byte `next` has the
    /// sequence number `toward_client` at the client.
    pub fn discard_before(&mut self, next: Seq, toward_client: Seq) {
        (self.first, self.next) = (next, next);
        self.delta = order::delta(toward_client, next);
    }

    /// Forwards a server's segment, translated, to the client.
    pub fn pass_to_client(&self, client: &mut Client, ctx: &mut Context<'_>, segment: &Segment<'_>) {
        self.write_to_client(client, ctx, segment);
        client.next = client.next.later(self.to_client(segment.end()));
    }

    /// Sends a server's segment, translated, to the client, without changing any state.
    pub fn write_to_client(&self, client: &Client, ctx: &mut Context<'_>, segment: &Segment<'_>) {
        let announced_scale = client.terms.announced_scale;
        let ack = segment.ack().later(client.owned);
        let window = if ack == segment.ack() {
            shifted(segment.window(), self.shift)
        } else {
            // The window that the client is sent ends at the same sequence number as the server's window.
            let edge = segment.ack() + (u32::from(segment.window()) << self.scale);
            window_field(edge.since(ack), announced_scale)
        };
        let head = SegmentHeader {
            source: client.terms.own_address,
            destination: client.terms.client,
            seq: self.to_client(segment.seq()),
            ack: if segment.has(ACK) { ack } else { segment.ack() },
            flags: 0,
            window: window.min(window_field(client.request.room(), announced_scale)),
        };
        let rewrite = HeaderRewrite { head, sacks: None };
        ctx.out.push_with(|frame| write_rewritten(segment, &ctx.link, &rewrite, frame));
    }

    /// Returns the translation for the data plane: delta, and the shifts of the server's and of the client's windows.
    pub fn translation(&self) -> (u32, i8, u8) {
        (self.delta, self.shift, self.client_shift)
    }

    /// Asserts the invariants of the sequence numbers.
    pub fn check(&self, client: &Client) {
        assert!(!self.sender.next.is_before(self.sender.una), "a server acknowledges only what it was sent");
        assert!(!client.acknowledged().is_before(self.sender.una), "the client may know what the server has");
        assert!(!self.first.is_before(self.opened) && !self.next.is_before(self.first));
        assert!(!self.fin_sent || client.fin.is_some(), "only a client's FIN is handed on");
        assert!(self.client_shift == 0 || self.scale == 0, "windows are scaled in one way");
    }
}

/// Returns whether a segment carries neither data nor a FIN.
pub fn is_bare(segment: &Segment<'_>) -> bool {
    segment.payload().is_empty() && !segment.has(FIN)
}
