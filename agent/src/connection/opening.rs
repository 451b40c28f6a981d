//! Opens a connection to a server of a group, with the client's source address and sequence numbers.

use super::client::Client;
use super::context::Context;
use super::next::Next;
use super::refusing;
use super::server::{Server, SynAck};
use super::server_reset::ServerReset;
use crate::acceptance::{SynReply, classify_syn_reply};
use crate::policy::{Assignment, DialogueReplay, Framing, Reason, Sticky};
use crate::seq::Seq;
use crate::wire::flags::SYN;
use crate::wire::{Segment, SegmentHeader, SynOptions};

/// Nanoseconds until the agent repeats the SYN for the first time; the interval doubles with each repetition.
const SYN_INTERVAL_NS: u64 = 250_000_000;
/// The maximum number of times that the same SYN is sent. The attempt fails 3.75 s after the first SYN. If 1% of SYNs
/// are lost, the agent mistakes one server in 10^8 for a server that does not answer.
const MAX_SYNS: u32 = 4;
/// The maximum number of attempts to open a connection. When a server refuses, the agent sends a SYN with the next
/// attempt number. Two attempts may reach the same server.
const MAX_ATTEMPTS: u16 = 4;

/// The assumed maximum number of bytes that a server has sent on a connection that another agent opened. After the
/// reset of that connection, segments with these sequence numbers count as late.
const EARLIER_BYTES: u32 = 16 << 20;

/// A connection attempt to a server.
pub struct Opening {
    /// Index of the group.
    group: usize,
    /// The time at which the SYN is sent again.
    pub due: u64,
    sticky: Sticky,
    framing: Option<Box<dyn Framing>>,
    dialogue_replay: Option<DialogueReplay>,
    syns_sent: u32,
    /// The number of refused attempts. It is the IPv4 identification of the SYN, by which the data plane selects
    /// another server.
    attempt: u16,
    earlier: EarlierConnection,
}

/// An earlier connection, with the same addresses and ports, that a server may still have.
enum EarlierConnection {
    /// This agent has opened no earlier connection; another agent may have opened one.
    Unknown,
    /// The agent has reset the earlier connection.
    Reset,
    /// Before each further SYN, the agent sends the server a reset with this sequence number, because its first reset
    /// may have been lost.
    ResetPending(Seq),
}

fn offered(client: &Client) -> SynOptions {
    let syn_options = client.terms.syn_options;
    SynOptions { mss: Some(syn_options.mss), scale: syn_options.scale, sack: syn_options.sack }
}

impl Opening {
    /// Sends a SYN to a group. `has_former_server` is true if the connection has left another server before.
    pub fn begin(client: &Client, ctx: &mut Context<'_>, assignment: Assignment, has_former_server: bool) -> Opening {
        let Assignment { group, sticky, framing, dialogue_replay, .. } = assignment;
        let earlier = if has_former_server {
            EarlierConnection::ResetPending(client.request.base())
        } else {
            EarlierConnection::Unknown
        };
        let opening = Opening {
            group,
            due: ctx.now + SYN_INTERVAL_NS,
            sticky,
            framing,
            dialogue_replay,
            syns_sent: 1,
            attempt: 0,
            earlier,
        };
        opening.send_syn(client, ctx);
        opening
    }

    /// Returns the data of a reset to the server.
    pub fn as_reset(&self, client: &Client) -> ServerReset {
        ServerReset { group: self.group, seq: client.request.base() }
    }

    /// Returns the bytes of memory in use besides the structure itself.
    pub fn memory(&self) -> usize {
        let framing = self.framing.as_ref().map_or(0, |framing| framing.memory());
        framing + self.dialogue_replay.as_ref().map_or(0, DialogueReplay::memory)
    }

    fn send_syn(&self, client: &Client, ctx: &mut Context<'_>) {
        let (options, length) = offered(client).write();
        let head = SegmentHeader {
            source: client.terms.client,
            destination: client.terms.service.groups[self.group].address,
            seq: client.request.base() - 1,
            ack: Seq(0),
            flags: SYN,
            // RFC 7323, section 2.2: the window of a SYN is not scaled.
            window: u16::try_from(client.window_bytes()).unwrap_or(u16::MAX),
        };
        let options = &options[..length];
        ctx.out.push_with(|frame| head.write_identified(&ctx.link, self.attempt, options, [b"", b""], frame));
    }

    /// Processes an acceptable segment of the client: acknowledges bytes that the client repeats. Its new bytes are
    /// stored already; the agent forwards them after a server has accepted the connection.
    pub fn on_client(self, client: &Client, ctx: &mut Context<'_>, segment: &Segment<'_>) -> Next<Opening> {
        if segment.seq().is_before(client.owned) && !segment.payload().is_empty() {
            client.acknowledge(ctx);
        }
        Next::Stay(self)
    }

    /// Repeats the SYN when its timer has expired. If the last SYN remains unanswered, refuses the client.
    pub fn on_time(mut self, client: &mut Client, ctx: &mut Context<'_>) -> Next<Opening> {
        if ctx.now < self.due {
            return Next::Stay(self);
        }
        if self.syns_sent == MAX_SYNS {
            return self.give_up(client, Reason::NoServer);
        }
        self.due = ctx.now + (SYN_INTERVAL_NS << self.syns_sent);
        self.syns_sent += 1;
        if let EarlierConnection::ResetPending(seq) = self.earlier {
            client.send_reset(ctx, ServerReset { seq, ..self.as_reset(client) });
        }
        self.send_syn(client, ctx);
        Next::Stay(self)
    }

    fn give_up(self, client: &Client, reason: Reason) -> Next<Opening> {
        client.terms.service.groups[self.group].failed.add(1);
        let reset = (reason == Reason::NoServer).then(|| self.as_reset(client));
        let rejection = refusing::rejection(client, reason);
        Next::Refuse(reset, rejection)
    }

    /// Processes a server's segment that may be the answer to the SYN.
    pub fn on_server(self, client: &mut Client, ctx: &mut Context<'_>, segment: &Segment<'_>) -> Next<Opening> {
        match classify_syn_reply(client.request.base(), segment) {
            SynReply::Unrelated => Next::Stay(self),
            SynReply::Stale => self.on_earlier_connection(client, ctx, segment),
            SynReply::Refuses if self.attempt + 1 == MAX_ATTEMPTS => self.give_up(client, Reason::ServerRefused),
            SynReply::Refuses => self.try_next_server(client, ctx),
            SynReply::Accepts => self.open(client, ctx, segment),
        }
    }

    /// Handles a segment of an earlier connection. If another agent may have opened this connection, the agent resets
    /// it and sends the SYN again, once. Otherwise the segment is late, or the agent's reset was lost. Then the agent
    /// sends a reset with the next SYN, not at once: a reset removes the connection's entry in the data plane, so the
    /// SYN after it may reach another server while the first server's answer to the previous SYN is still in transit.
    /// The agent would mistake the first server's sequence numbers for those of the second server.
    fn on_earlier_connection(
        mut self,
        client: &mut Client,
        ctx: &mut Context<'_>,
        segment: &Segment<'_>,
    ) -> Next<Opening> {
        let seq = segment.ack();
        self.earlier = match self.earlier {
            EarlierConnection::Unknown => {
                client.record_former_server(ctx.now, segment.seq() - EARLIER_BYTES, segment.end());
                client.send_reset(ctx, ServerReset { seq, ..self.as_reset(client) });
                self.send_syn(client, ctx);
                EarlierConnection::Reset
            }
            // The most recent sequence number counts: a server that receives a reset with a wrong sequence number
            // answers by an ACK with the correct one.
            EarlierConnection::Reset | EarlierConnection::ResetPending(_) => EarlierConnection::ResetPending(seq),
        };
        Next::Stay(self)
    }

    /// Sends a SYN with the next attempt number after a refusal. This is safe because no server has received the
    /// request.
    fn try_next_server(mut self, client: &mut Client, ctx: &mut Context<'_>) -> Next<Opening> {
        client.terms.service.groups[self.group].failed.add(1);
        client.leave(ctx, Some(self.as_reset(client)));
        self.attempt += 1;
        (self.syns_sent, self.due) = (1, ctx.now + SYN_INTERVAL_NS);
        self.send_syn(client, ctx);
        Next::Stay(self)
    }

    fn open(self, client: &mut Client, ctx: &mut Context<'_>, segment: &Segment<'_>) -> Next<Opening> {
        client.last_segment = ctx.now;
        let group = &client.terms.service.groups[self.group];
        ctx.has_learned |= ctx.pools.learn(ctx.now, group.address, &offered(client), segment);
        group.opened.add(1);
        let syn_options = segment.syn_options();
        let window = Some(u32::from(segment.window()));
        let syn_ack = SynAck { first: segment.seq() + 1, scale: syn_options.scale, mss: syn_options.mss, window };
        let server = Server::new(client, self.group, &syn_ack);
        match self.dialogue_replay {
            Some(dialogue_replay) => Next::Replay(server, (self.sticky, self.framing), dialogue_replay),
            None => Next::Serve(server, self.sticky, self.framing),
        }
    }
}
