//! Replays a mail dialogue to a server: the agent has greeted the client and answered its first commands, and now sends
//! these commands to the server line by line.
//!
//! In sequence space, the lines replace the client's answered bytes, and end where the client's unanswered bytes begin.
//! Commands that the agent does not repeat make the lines shorter than the answered bytes. So the sequence number of
//! the agent's SYN to the server exceeds that of the client's SYN by the difference of the two lengths, and the
//! client's later sequence numbers are valid toward the server without translation. The agent discards the server's
//! greeting and answers, because it has sent its own to the client. The delta, by which the server's later sequence
//! numbers are translated, contains the number of bytes that the agent has sent less those that it has discarded.

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

/// The time limit of a replay, in nanoseconds. Clients of SMTP wait for five minutes (RFC 5321, section 4.5.3.2).
const REPLAY_TIMEOUT_NS: u64 = 60_000_000_000;
/// The maximum number of bytes that a server may send during the replay.
const ROOM: usize = 64 << 10;

/// The state of a connection while the agent replays the dialogue to a server.
pub struct Replaying {
    server: Server,
    sticky: Sticky,
    framing: Option<Box<dyn Framing>>,
    dialogue_replay: DialogueReplay,
    /// The lines before this sequence number may be sent to the server.
    limit: Seq,
    /// The bytes received from the server.
    received: Assembler,
    /// The sequence number of the server's FIN.
    fin: Option<Seq>,
    /// The time at which the replay times out.
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

    pub fn server(&self) -> &Server {
        &self.server
    }

    /// Returns the bytes of memory in use.
    pub fn memory(&self) -> usize {
        let framing = self.framing.as_ref().map_or(0, |framing| framing.memory());
        size_of::<Self>() + self.dialogue_replay.memory() + self.received.memory() + framing
    }

    /// Returns the time of the next timer.
    pub fn due(&self) -> u64 {
        self.server.sender.due().map_or(self.until, |due| due.min(self.until))
    }

    /// Returns whether all bytes up to the server's FIN have arrived, or the buffer is full.
    fn has_failed(&self) -> bool {
        self.fin == Some(self.received.end()) || self.received.room() == 0
    }

    /// Processes an acceptable segment of the client. The agent stores new bytes until the replay ends, and
    /// acknowledges repeated ones.
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

    /// Answers an unacceptable segment of the server by an ACK, at a limited rate.
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

    /// Processes the server's answers: sends the next line, ends the replay, or refuses the client.
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
            // The remaining lines are unsolicited: they answer no command.
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

    /// Returns the rejection of the client after the server has failed: the server has refused a command that the agent
    /// had accepted, has closed or reset the connection, has filled the buffer, or does not answer. `reply` is the
    /// server's answer, which the client is sent; if empty, the client is sent an error text for `reason`.
    fn fail(self: Box<Self>, client: &mut Client, reason: Reason, reply: Vec<u8>) -> Next<Box<Replaying>> {
        client.terms.service.groups[self.server.group].failed.add(1);
        let rejection = if reply.is_empty() {
            refusing::rejection(client, reason)
        } else {
            Rejection { why: reason.name(), rule: None, reply }
        };
        Next::Refuse(Some(self.server.as_reset()), rejection)
    }

    /// Asserts the invariants that hold during a replay.
    pub fn check(&self, client: &Client) {
        self.server.check(client);
        assert!(client.guess.is_none(), "no connection is guessed where the agent greets");
        assert!(!self.limit.is_before(self.server.sender.next), "a line is sent before its turn");
    }
}
