//! The connection to a server that has accepted it: forwards the client's bytes, and translates both directions.
//!
//! Data of the client is sent to the server from the reassembly buffer, up to the number that is meant for this
//! server. Segments without data are passed on, translated. Segments of the server are passed on unchanged, except
//! for the translation.

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

/// The largest distance of the server's first numbers behind its next number.
const MAX_DISTANCE: u32 = 1 << 30;

/// The contents of a server's SYN-ACK.
pub struct SynAck {
    /// The number of the server's first byte.
    pub first: Seq,
    /// The server's window scale; none where it does not scale.
    pub scale: Option<u8>,
    /// The server's MSS in bytes, if it announces one.
    pub mss: Option<u16>,
    /// The server's window in bytes; none if only the client has received it.
    pub window: Option<u32>,
}

/// A server that has accepted the connection.
pub struct Server {
    /// Index of its group, and the group's address.
    pub group: usize,
    address: SocketAddrV4,
    /// The sender of the client's bytes to this server.
    pub sender: Sender,
    /// What is added to a number of the server to get the client's.
    delta: u32,
    /// Bits by which the server's window field is shifted left for the client; negative: right.
    shift: i8,
    /// Bits by which the client's window field is shifted left for the server. A server that does not scale reads it
    /// unscaled, while the client scales it (RFC 7323, section 2.2).
    client_shift: u8,
    /// Bits by which the server's window field is shifted left to get bytes.
    scale: u8,
    /// The first number of the request for which the server was opened. A segment that acknowledges no more than this
    /// may be a late one of a former server.
    request_start: Seq,
    /// The server's first number.
    pub opened: Seq,
    /// The server's first number that is for the client.
    first: Seq,
    /// The next number that the server is expected to send.
    pub next: Seq,
    /// Whether the client's FIN was forwarded.
    fin_sent: bool,
    /// Whether the server's FIN was forwarded.
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

    /// How to reset this server.
    pub fn as_reset(&self) -> ServerReset {
        ServerReset { group: self.group, seq: self.sender.next }
    }

    /// Whether both sides have closed; `fin` is the number of the client's FIN.
    pub fn is_over(&self, fin: Option<Seq>) -> bool {
        self.fin_forwarded && fin.is_some_and(|fin| fin.is_before(self.sender.una))
    }

    /// Whether the agent has acknowledged bytes that the server has not.
    pub fn owes(&self, client: &Client) -> bool {
        self.sender.una.is_before(client.owned)
    }

    /// Resets both sides.
    pub fn abort(&self, client: &mut Client, ctx: &mut Context<'_>) {
        client.terms.service.counters.lost.add(u64::from(self.owes(client)));
        client.leave(ctx, Some(self.as_reset()));
        client.reset(ctx);
    }

    /// Translates a number of the server to the client's.
    pub fn to_client(&self, seq: Seq) -> Seq {
        seq + self.delta
    }

    /// Translates a number of the client to the server's. Acknowledgements of former servers and of the agent's bytes
    /// map to the first number.
    fn to_server(&self, ack: Seq) -> Seq {
        (ack - self.delta).later(self.first)
    }

    /// Checks a segment of the server; changes nothing. Only the bytes that the client has acknowledged count as
    /// acknowledged to the server, because the client may need the later bytes again.
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

    /// Whether a segment may be a late one of a former server, which may be the same host. It counts as late if
    /// its number is among that server's, and it acknowledges nothing of the request. If this server has sent it after
    /// all, the server will send it again, and then acknowledge the request.
    fn is_late(&self, client: &Client, now: u64, segment: &Segment<'_>) -> bool {
        let is_significant = !is_bare(segment) || self.next.is_before(segment.seq());
        is_significant
            && !self.request_start.is_before(segment.ack())
            && client.belongs_to_former_server(now, segment.seq())
    }

    /// The number of the server up to which the client has acknowledged its bytes.
    pub fn acknowledged(&self, client: &Client) -> Seq {
        self.to_server(client.ack)
    }

    /// Sets the next expected number. Sequence numbers compare correctly within 2 GiB only, so the server's first
    /// numbers are moved along.
    pub fn set_next(&mut self, next: Seq) {
        self.next = next;
        let oldest = next - MAX_DISTANCE;
        (self.opened, self.first) = (self.opened.later(oldest), self.first.later(oldest));
    }

    /// Answers a segment that is not acceptable.
    pub fn challenge(&mut self, client: &Client, ctx: &mut Context<'_>, segment: &Segment<'_>) {
        if self.challenges.may_answer(ctx.now, segment) {
            self.acknowledge(client, ctx);
        }
    }

    /// Whether a bare segment repeats an acknowledged number: a keepalive, which the client itself has to answer.
    /// Bytes that the agent has discarded are not the client's.
    pub fn is_keepalive(&self, client: &Client, segment: &Segment<'_>) -> bool {
        let next = self.to_server(client.ack);
        is_bare(segment) && segment.seq().is_before(next) && !segment.has(SYN) && !segment.has(RST)
    }

    /// The end of the bytes that the agent has to retransmit in the client's place.
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

    /// Sends the bytes from `start` to `end`, with the client's FIN if it follows directly.
    fn send(&mut self, client: &Client, ctx: &mut Context<'_>, (start, end): (Seq, Seq)) {
        let bytes = client.request.between(start, end);
        let ends = client.fin == Some(end);
        self.fin_sent |= ends;
        let flags = ACK | if bytes.is_empty() { 0 } else { PSH } | if ends { FIN } else { 0 };
        let head = self.head(client, start, flags);
        ctx.out.push_with(|frame| head.write(&ctx.link, &[], [bytes, b""], frame));
    }

    /// Sends the server what its window allows of the bytes before `limit`. Returns whether anything was sent.
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

    /// Sends again the bytes that the client retransmits, except those that the agent has acknowledged. Returns
    /// whether anything was sent.
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

    /// Retransmits when the server does not answer. Returns false when the server is given up.
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

    /// Passes a client's segment on, translated, with its data.
    pub fn pass(&self, client: &Client, ctx: &mut Context<'_>, segment: &Segment<'_>, seq: Seq) {
        let rewrite = HeaderRewrite { head: self.head(client, seq, 0), sacks: Some((self.delta, self.first)) };
        ctx.out.push_with(|frame| write_rewritten(segment, &ctx.link, &rewrite, frame));
    }

    /// Passes on what the client has acknowledged.
    pub fn acknowledge(&self, client: &Client, ctx: &mut Context<'_>) {
        let head = self.head(client, self.sender.next, ACK);
        ctx.out.push_with(|frame| head.write(&ctx.link, &[], [b"", b""], frame));
    }

    /// Processes the server's ACK of bytes before `limit`. Returns false when the segment must not reach the client:
    /// the client has the agent's ACK of these bytes, and takes no part in their retransmission.
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

    /// Updates the next expected number by a segment that is passed on at once.
    pub fn take_data(&mut self, segment: &Segment<'_>) {
        if !self.next.is_before(segment.seq()) {
            self.set_next(self.next.later(segment.seq() + segment.payload().len() as u32));
        }
    }

    /// Whether a segment repeats bytes that were for the agent.
    pub fn is_discarded(&self, segment: &Segment<'_>) -> bool {
        segment.seq().is_before(self.first) && !segment.payload().is_empty()
    }

    /// Discards the server's bytes before `next`, which were for the agent. The client gets the later ones from its
    /// number `toward_client` on.
    pub fn discard_before(&mut self, next: Seq, toward_client: Seq) {
        (self.first, self.next) = (next, next);
        self.delta = order::delta(toward_client, next);
    }

    /// Passes a server's segment on to the client.
    pub fn pass_to_client(&self, client: &mut Client, ctx: &mut Context<'_>, segment: &Segment<'_>) {
        self.write_to_client(client, ctx, segment);
        client.next = client.next.later(self.to_client(segment.end()));
    }

    /// Writes a server's segment to the client, translated; changes no state.
    pub fn write_to_client(&self, client: &Client, ctx: &mut Context<'_>, segment: &Segment<'_>) {
        let announced_scale = client.terms.announced_scale;
        let ack = segment.ack().later(client.owned);
        let window = if ack == segment.ack() {
            shifted(segment.window(), self.shift)
        } else {
            // The announced window ends at the same number as the server's.
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

    /// Asserts the invariants of a server.
    pub fn check(&self, client: &Client) {
        assert!(!self.sender.next.is_before(self.sender.una), "a server acknowledges only what it was sent");
        assert!(!client.acknowledged().is_before(self.sender.una), "the client may know what the server has");
        assert!(!self.first.is_before(self.opened) && !self.next.is_before(self.first));
        assert!(!self.fin_sent || client.fin.is_some(), "only a client's FIN is handed on");
        assert!(self.client_shift == 0 || self.scale == 0, "windows are scaled in one way");
    }
}

/// Whether a segment carries only an acknowledgement.
pub fn is_bare(segment: &Segment<'_>) -> bool {
    segment.payload().is_empty() && !segment.has(FIN)
}
