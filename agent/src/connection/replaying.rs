//! Replays a dialogue to a server, where the agent has greeted the client: the client's earlier commands are sent to
//! the server line by line.
//!
//! In sequence space, the lines take the place of the client's answered bytes, and end where its unanswered bytes
//! begin. Commands that the agent does not repeat make the lines shorter than the answered bytes. So the agent's
//! SYN to the server has a number that is greater than the client's by this difference, and the client's own numbers
//! are valid on both sides. The server's greeting and answers are discarded: the delta accounts for the bytes that the
//! agent has sent in their place.

use super::client::{Client, ClientUpdate};
use super::context::Context;
use super::exchange::Exchange;
use super::next::Next;
use super::refusing;
use super::server::{Server, is_bare};
use crate::assembler::Assembler;
use crate::policy::{DialogueReplay, Framing, Reason, Rejection, ReplayProgress, Sticky};
use crate::seq::Seq;
use crate::wire::Segment;
use crate::wire::flags::FIN;

/// Nanoseconds that the replay may take. Clients of SMTP wait for five minutes (RFC 5321, section 4.5.3.2).
const REPLAY_TIMEOUT_NS: u64 = 60_000_000_000;
/// Bytes that a server may send during the replay.
const ROOM: usize = 64 << 10;

/// A server to which a dialogue is replayed.
pub struct Replaying {
    server: Server,
    sticky: Sticky,
    framing: Option<Box<dyn Framing>>,
    dialogue_replay: DialogueReplay,
    /// The lines before this number may be sent to the server.
    limit: Seq,
    /// The bytes received from the server.
    received: Assembler,
    /// The number of the server's FIN.
    fin: Option<Seq>,
    /// The time at which the agent gives the server up.
    until: u64,
}

impl Replaying {
    /// Begins the replay, before any line is sent.
    pub fn begin(
        server: Server,
        (sticky, framing): (Sticky, Option<Box<dyn Framing>>),
        dialogue_replay: DialogueReplay,
        client: &mut Client,
        ctx: &mut Context<'_>,
    ) -> Box<Replaying> {
        let (limit, received) = (server.sender.una, Assembler::new(server.next, ROOM));
        server.acknowledge(client, ctx);
        let until = ctx.now + REPLAY_TIMEOUT_NS;
        Box::new(Replaying { server, sticky, framing, dialogue_replay, limit, received, fin: None, until })
    }

    /// The server.
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// Returns the bytes of memory in use.
    pub fn memory(&self) -> usize {
        let framing = self.framing.as_ref().map_or(0, |framing| framing.memory());
        size_of::<Self>() + self.dialogue_replay.memory() + self.received.memory() + framing
    }

    /// The time of the next timer.
    pub fn due(&self) -> u64 {
        self.server.sender.due().map_or(self.until, |due| due.min(self.until))
    }

    /// Whether the server has closed its side, or has sent more than the buffer holds.
    fn has_failed(&self) -> bool {
        self.fin == Some(self.received.end()) || self.received.room() == 0
    }

    /// Processes an acceptable segment of the client. Its new bytes wait; repeated bytes are acknowledged.
    pub fn on_client(
        self: Box<Self>,
        client: &mut Client,
        ctx: &mut Context<'_>,
        segment: &Segment<'_>,
        update: &ClientUpdate,
    ) -> Next<Box<Replaying>> {
        let repeats = !segment.payload().is_empty() || segment.seq().is_before(client.acknowledged());
        if !update.has_new_data && repeats {
            client.acknowledge_received(ctx);
        }
        Next::Stay(self)
    }

    /// Answers a segment of the server that is not acceptable.
    pub fn challenge_server(&mut self, client: &Client, ctx: &mut Context<'_>, segment: &Segment<'_>) {
        self.server.challenge(client, ctx, segment);
    }

    /// Processes an acceptable segment of the server.
    pub fn on_server(
        mut self: Box<Self>,
        client: &mut Client,
        ctx: &mut Context<'_>,
        segment: &Segment<'_>,
    ) -> Next<Box<Replaying>> {
        let limit = self.limit;
        if !self.server.take_acknowledgement(client, ctx, segment, limit) {
            self.server.forward(client, ctx, limit);
        }
        self.received.insert(segment.seq(), segment.payload());
        if segment.has(FIN) {
            self.fin = Some(segment.end() - 1);
        }
        self.advance(client, ctx, segment)
    }

    /// Continues the replay by the server's answers.
    fn advance(
        mut self: Box<Self>,
        client: &mut Client,
        ctx: &mut Context<'_>,
        segment: &Segment<'_>,
    ) -> Next<Box<Replaying>> {
        let used = loop {
            match self.dialogue_replay.driver.feed_server(self.received.ready()) {
                ReplayProgress::Send(bytes) => self.limit += bytes as u32,
                ReplayProgress::Wait if self.has_failed() => {
                    return self.fail(client, Reason::ServerRefused, Vec::new());
                }
                ReplayProgress::Wait => break None,
                ReplayProgress::Ready { used } => break Some(used),
                ReplayProgress::Failed { reply } => return self.fail(client, Reason::ServerRefused, reply),
            }
        };
        let next = self.received.end();
        let is_new = !is_bare(segment) || segment.seq() != next;
        let Some(used) = used else {
            self.server.discard_before(next, client.next);
            if !self.server.forward(client, ctx, self.limit) && is_new {
                self.server.acknowledge(client, ctx);
            }
            return Next::Stay(self);
        };
        let rest = &self.received.ready()[used..];
        if !rest.is_empty() {
            client.send_own(ctx, rest.to_vec(), false);
        }
        self.server.discard_before(next, client.next);
        let exchange = self.framing.map(|mut framing| {
            // Unsolicited lines of the server answer no command.
            let _ = framing.response(rest);
            Exchange::new(framing, self.limit, self.server.next)
        });
        Next::Resume { server: self.server, sticky: self.sticky, exchange, acknowledges: is_new }
    }

    /// Handles a reset of the server.
    pub fn on_reset(self: Box<Self>, client: &mut Client) -> Next<Box<Replaying>> {
        self.fail(client, Reason::ServerRefused, Vec::new())
    }

    /// Runs expired timers.
    pub fn on_time(mut self: Box<Self>, client: &mut Client, ctx: &mut Context<'_>) -> Next<Box<Replaying>> {
        if self.until <= ctx.now || !self.server.on_time(client, ctx, self.limit) {
            return self.fail(client, Reason::NoServer, Vec::new());
        }
        Next::Stay(self)
    }

    /// Gives up a server that refuses a command that the agent has accepted. The client is sent the server's answer,
    /// or the reason.
    fn fail(self: Box<Self>, client: &mut Client, reason: Reason, reply: Vec<u8>) -> Next<Box<Replaying>> {
        client.terms.service.groups[self.server.group].failed.add(1);
        let rejection = if reply.is_empty() {
            refusing::rejection(client, reason)
        } else {
            Rejection { why: reason.name(), rule: None, reply }
        };
        Next::Refuse(Some(self.server.as_reset()), rejection)
    }

    /// Asserts the invariants of a replay.
    pub fn check(&self, client: &Client) {
        self.server.check(client);
        assert!(client.guess.is_none(), "no connection is guessed where the agent greets");
        assert!(!self.limit.is_before(self.server.sender.next), "a line is sent before its turn");
    }
}
