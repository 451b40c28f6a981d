//! The client's side of a connection: the addresses of client and agent, the bytes received from the client, and the
//! bytes sent to the client. This side is the same in every state of the connection.

use std::collections::VecDeque;
use std::net::SocketAddrV4;
use std::sync::Arc;

use super::context::Context;
use super::guess::Guess;
use super::server_reset::ServerReset;
use crate::acceptance::{Challenges, Expected, Verdict};
use crate::assembler::Assembler;
use crate::config::Service;
use crate::cookie::ClientOptions;
use crate::send_buffer::SendBuffer;
use crate::seq::Seq;
use crate::wire::flags::{ACK, FIN, PSH, RST};
use crate::wire::{Segment, SegmentHeader, sack_option, window_field};

/// The maximum number of former servers (servers that the connection has left) that are recorded.
const MAX_FORMER_SERVERS: usize = 8;
/// Nanoseconds for which late segments of a former server may arrive; the same time as TIME-WAIT of Linux.
const FORMER_SERVER_NS: u64 = 60_000_000_000;
/// The assumed maximum number of bytes that a former server has sent after the last byte that the agent received in
/// order. Late segments with these bytes still count as the former server's.
const UNSEEN_BYTES: u32 = 64 << 10;

/// The sequence numbers of a former server, which is a server that the connection has left.
struct FormerServer {
    /// The server's initial sequence number.
    opened: Seq,
    /// The sequence number after the last byte that the server may have sent.
    end: Seq,
    /// The time in nanoseconds at which the connection left the server.
    at: u64,
}

/// Properties of a connection that stay fixed.
pub struct Terms {
    /// The client's address and port.
    pub client: SocketAddrV4,
    /// The agent's address and port for the service.
    pub own_address: SocketAddrV4,
    /// The content service, with the rules in force when the connection began.
    pub service: Arc<Service>,
    /// The generation of the rules in force when the connection began, modulo 256.
    pub generation: u8,
    /// The TCP options of the client's SYN.
    pub syn_options: ClientOptions,
    /// The window scale that the agent announced to the client; 0 without scaling.
    pub announced_scale: u8,
    /// The largest receive window, in bytes, that the agent announces to the client.
    pub window_limit: u16,
}

/// The client's side of a connection.
///
/// Sequence numbers of the client's bytes are always those that the client uses. Bytes sent to the client have the
/// agent's sequence numbers, which begin with the cookie; after a guess, they have the guessed server's.
pub struct Client {
    pub terms: Terms,
    /// The client's bytes, from the first byte that no server has acknowledged.
    pub request: Assembler,
    /// The agent has acknowledged the client's bytes before this sequence number, and stores these bytes until a server
    /// acknowledges them.
    pub owned: Seq,
    /// A server has acknowledged the client's bytes before this sequence number.
    confirmed: Seq,
    /// The sequence number of the client's FIN.
    pub fin: Option<Seq>,
    /// The sequence number of the next byte to be sent to the client.
    pub next: Seq,
    /// The highest acknowledgement number that the client has sent.
    pub ack: Seq,
    /// The client's last window field, unscaled.
    pub window: u16,
    /// The sequence number at which the client's window ends; this number never decreases (RFC 9293, section 3.8.6).
    edge: Seq,
    /// Bytes that the agent itself sent to the client, until the client acknowledges them.
    pub own_bytes: Option<SendBuffer>,
    /// The servers that the connection has left, the most recent last.
    former_servers: VecDeque<FormerServer>,
    /// The state of the guess, if the data plane has guessed the server.
    pub guess: Option<Box<Guess>>,
    /// The time of the last acceptable segment of client or server, in nanoseconds.
    pub last_segment: u64,
    challenges: Challenges,
}

/// The changes by an acceptable segment of a client.
pub struct ClientUpdate {
    /// The segment has added bytes that are in order, or contains the FIN (new or repeated) and no byte before the FIN
    /// is missing.
    pub has_new_data: bool,
    /// The segment acknowledges bytes of a guessed server that the connection has left.
    pub acks_released_guess: bool,
}

impl Client {
    /// Creates the client's side. The client has acknowledged the cookie `own`, the agent's initial sequence number;
    /// the client's first byte has the sequence number `first`.
    pub fn new(terms: Terms, (first, own): (Seq, Seq), now: u64) -> Client {
        let request = Assembler::new(first, terms.service.rules.room());
        Client {
            terms,
            request,
            owned: first,
            confirmed: first,
            fin: None,
            next: own + 1,
            ack: own + 1,
            window: 0,
            edge: own + 1,
            own_bytes: None,
            former_servers: VecDeque::new(),
            guess: None,
            last_segment: now,
            challenges: Challenges::default(),
        }
    }

    /// Returns the client's window scale: the number of bits by which its window field is shifted left to get bytes.
    pub fn scale(&self) -> u8 {
        self.terms.syn_options.scale.unwrap_or(0)
    }

    /// Returns the client's window in bytes.
    pub fn window_bytes(&self) -> u32 {
        u32::from(self.window) << self.scale()
    }

    /// Returns the sequence number at which the client's window ends.
    pub fn edge(&self) -> Seq {
        self.edge
    }

    /// Decides whether a segment of the client is acceptable, without changing any state.
    pub fn judge(&self, segment: &Segment<'_>) -> Verdict {
        let received = if self.is_finished() { self.request.end() + 1 } else { self.request.end() };
        let expected = Expected {
            next: self.acknowledged(),
            received,
            edge: self.request.edge(),
            una: self.ack,
            sent: self.next + self.guess.as_ref().map_or(0, |guess| guess.unseen(self.next)),
            max_window: u32::from(u16::MAX) << self.scale(),
        };
        match expected.judge(segment) {
            // The data plane forwards this connection to the guessed server. The server itself answers the segment,
            // because the agent has not acknowledged any byte.
            Verdict::Challenge if self.guess.as_ref().is_some_and(|guess| guess.is_direct()) => Verdict::Drop,
            verdict => verdict,
        }
    }

    /// Processes an acceptable segment of the client.
    pub fn take(&mut self, now: u64, segment: &Segment<'_>) -> ClientUpdate {
        self.last_segment = now;
        let acks_released_guess = self.follow_guess(segment);
        self.window = segment.window();
        self.ack = self.ack.later(segment.ack());
        self.edge = self.edge.later(segment.ack() + self.window_bytes());
        if self.own_bytes.as_ref().is_some_and(|own_bytes| !self.ack.is_before(own_bytes.end())) {
            self.own_bytes = None;
        }
        let before = self.request.end();
        let data_end = segment.seq() + segment.payload().len() as u32;
        if segment.has(FIN) && self.fin.is_none() && !data_end.is_before(self.request.last()) {
            self.fin = Some(data_end);
        }
        // RFC 9293, section 3.10.7.4: bytes behind a FIN are ignored.
        let length = self.fin.map_or(usize::MAX, |fin| fin.since(segment.seq())).min(segment.payload().len());
        self.request.insert(segment.seq(), &segment.payload()[..length]);
        let has_new_data = before.is_before(self.request.end()) || (segment.has(FIN) && self.is_finished());
        ClientUpdate { has_new_data, acks_released_guess }
    }

    /// Records that a server has acknowledged the client's bytes before `una`; the agent no longer needs them.
    pub fn confirm(&mut self, una: Seq) {
        self.confirmed = self.confirmed.later(una);
        self.request.forget_before(una);
    }

    /// Returns whether all bytes before the client's FIN have arrived.
    pub fn is_finished(&self) -> bool {
        self.fin == Some(self.request.end())
    }

    /// Returns the sequence number up to which the agent has acknowledged the client's bytes, or may acknowledge them
    /// because a server has acknowledged them.
    pub fn acknowledged(&self) -> Seq {
        self.owned.later(self.confirmed)
    }

    /// Returns whether the client has acknowledged all bytes that were sent to it.
    pub fn has_all(&self) -> bool {
        self.ack == self.next
    }

    /// Returns the header of a segment that the agent itself sends to the client.
    fn head(&self, seq: Seq, flags: u8) -> SegmentHeader {
        let room = self.request.edge().since(self.acknowledged()).min(self.terms.window_limit.into());
        SegmentHeader {
            source: self.terms.own_address,
            destination: self.terms.client,
            seq,
            ack: self.acknowledged(),
            flags,
            window: window_field(room, self.terms.announced_scale),
        }
    }

    /// Answers an unacceptable segment by an ACK. The rate is limited for answers to segments that are bare ACKs.
    pub fn challenge(&mut self, ctx: &mut Context<'_>, segment: &Segment<'_>) {
        if self.challenges.may_answer(ctx.now, segment) {
            self.acknowledge(ctx);
        }
    }

    /// Sends the client an ACK; if the client supports SACK, with blocks of the first three ranges beyond gaps.
    pub fn acknowledge(&self, ctx: &mut Context<'_>) {
        let head = self.head(self.next, ACK);
        let blocks = self.terms.syn_options.sack.then(|| self.request.ranges()).into_iter().flatten();
        let (option, length) = sack_option(blocks.take(3));
        ctx.out.push_with(|frame| head.write(&ctx.link, &option[..length], [b"", b""], frame));
    }

    /// Acknowledges all bytes that were received in order. The agent stores them until a server acknowledges them. So
    /// if the data plane still forwards a guessed connection, the agent first requests this connection.
    pub fn acknowledge_received(&mut self, ctx: &mut Context<'_>) {
        self.take_connection(ctx);
        self.owned = self.request.end();
        self.acknowledge(ctx);
    }

    /// Sends bytes of the agent itself (an answer or a greeting) to the client, and retransmits them until the client
    /// acknowledges them. If `ends` is true, a FIN follows the bytes. The segments also acknowledge all bytes received
    /// in order, so the agent first requests a guessed connection that the data plane still forwards.
    pub fn send_own(&mut self, ctx: &mut Context<'_>, bytes: Vec<u8>, ends: bool) {
        self.take_connection(ctx);
        self.owned = self.request.end() + u32::from(ends && self.is_finished());
        match &mut self.own_bytes {
            Some(own_bytes) => own_bytes.append(&bytes, ends, ctx.now),
            None => self.own_bytes = Some(SendBuffer::new(self.next, bytes, ends, ctx.now)),
        }
        self.transmit_own_bytes(ctx);
    }

    /// Retransmits the agent's own bytes when their timer has expired.
    pub fn on_time(&mut self, ctx: &mut Context<'_>) {
        if self.own_bytes.as_mut().is_some_and(|own_bytes| own_bytes.is_due(ctx.now)) {
            self.transmit_own_bytes(ctx);
        }
    }

    /// Sends the agent's own bytes that the client has not acknowledged.
    fn transmit_own_bytes(&mut self, ctx: &mut Context<'_>) {
        let Some(own_bytes) = &self.own_bytes else { return };
        let (mut seq, mut rest) = own_bytes.bytes_from(self.ack);
        loop {
            let (segment, further) = rest.split_at(rest.len().min(usize::from(self.terms.syn_options.mss)));
            let is_end = own_bytes.ends() && further.is_empty();
            let head = self.head(seq, ACK | PSH | if is_end { FIN } else { 0 });
            ctx.out.push_with(|frame| head.write(&ctx.link, &[], [segment, b""], frame));
            (seq, rest) = (seq + segment.len() as u32, further);
            if rest.is_empty() {
                break;
            }
        }
        self.next = self.next.later(own_bytes.end());
    }

    /// Resets the client's side (RFC 9293, section 3.5.2). Sent bytes that the client has not acknowledged may or may
    /// not have arrived. So if there are such bytes, the agent sends two resets, one for each of these cases.
    pub fn reset(&self, ctx: &mut Context<'_>) {
        let mut reset = |seq| {
            let head = SegmentHeader { window: 0, ..self.head(seq, RST | ACK) };
            ctx.out.push_with(|frame| head.write(&ctx.link, &[], [b"", b""], frame));
        };
        reset(self.next);
        if !self.has_all() {
            reset(self.ack);
        }
    }

    /// Records that the connection leaves a server that has used the sequence numbers from `opened` to `next`.
    pub fn record_former_server(&mut self, now: u64, opened: Seq, next: Seq) {
        if self.former_servers.len() == MAX_FORMER_SERVERS {
            self.former_servers.pop_front();
        }
        self.former_servers.push_back(FormerServer { opened, end: next + UNSEEN_BYTES, at: now });
    }

    /// Returns whether a server's sequence number may belong to a former server, which may be the same host. For each
    /// new connection with the same addresses and ports, a host increases its initial sequence number, but by less than
    /// 16 million per second (Linux: `secure_tcp_seq`). So the sequence numbers of the new connection may overlap those
    /// of the former one. Only TIME-WAIT would keep the two connections apart, and a reset skips TIME-WAIT.
    pub fn belongs_to_former_server(&self, now: u64, seq: Seq) -> bool {
        let matches_server = |former_servers: &FormerServer| {
            now < former_servers.at + FORMER_SERVER_NS
                && !seq.is_before(former_servers.opened)
                && seq.is_before(former_servers.end)
        };
        self.former_servers.iter().any(matches_server)
    }

    /// Returns the time in nanoseconds until which late segments of former servers may arrive; `None` if no former
    /// server is recorded.
    pub fn late_until(&self) -> Option<u64> {
        self.former_servers.back().map(|former_servers| former_servers.at + FORMER_SERVER_NS)
    }

    /// Removes the former servers whose late segments can no longer arrive.
    pub fn expire_former_servers(&mut self, now: u64) {
        while self.former_servers.front().is_some_and(|former_servers| former_servers.at + FORMER_SERVER_NS <= now) {
            self.former_servers.pop_front();
        }
    }

    /// Resets the given server, if there is one. If the connection has a guess, the guess is then released.
    pub fn leave(&mut self, ctx: &mut Context<'_>, server: Option<ServerReset>) {
        let Some(server) = server else { return };
        self.send_reset(ctx, server);
        if let Some(guess) = &mut self.guess {
            guess.leave();
        }
    }

    /// Sends a server a reset whose source address is the client's address.
    pub fn send_reset(&self, ctx: &mut Context<'_>, ServerReset { group, seq }: ServerReset) {
        let destination = self.terms.service.groups[group].address;
        let head = SegmentHeader { source: self.terms.client, destination, seq, ack: Seq(0), flags: RST, window: 0 };
        ctx.out.push_with(|frame| head.write(&ctx.link, &[], [b"", b""], frame));
    }

    /// Returns the bytes of memory in use besides the structure itself.
    pub fn memory(&self) -> usize {
        let own_bytes = self.own_bytes.as_ref().map_or(0, SendBuffer::memory);
        let guess = if self.guess.is_some() { size_of::<Guess>() } else { 0 };
        self.request.memory() + self.former_servers.capacity() * size_of::<FormerServer>() + own_bytes + guess
    }

    /// Asserts the invariants that hold in every state of the connection.
    pub fn check(&self) {
        assert!(!self.acknowledged().is_before(self.request.base()), "what is kept is not forgotten elsewhere");
        assert!(!self.next.is_before(self.ack), "the client acknowledges only what it was sent");
        assert!(self.fin.is_none_or(|fin| !fin.is_before(self.request.last())), "nothing follows a FIN");
    }
}
