//! A server that is opened behind a greeting of the agent's own: what the client has sent is repeated to it, line by line.
//!
//! The lines take the place of the client's answered bytes, right before those that are not answered. So the server is opened with
//! a number that lies ahead of the client's first by what the agent kept to itself, and the client's own numbers are right on both
//! sides. The server's greeting and answers are swallowed: what the agent has sent in their place is in the delta.

use super::client::{Client, News};
use super::context::Context;
use super::exchange::Exchange;
use super::next::Next;
use super::refusing;
use super::server::{Server, is_bare};
use crate::assembler::Assembler;
use crate::decider::{Framing, Heard, Reason, Refusal, Repetition, Sticky};
use crate::seq::Seq;
use crate::wire::Segment;
use crate::wire::flags::FIN;

/// How long a server may take in all. Clients of SMTP wait for five minutes (RFC 5321, section 4.5.3.2).
const PATIENCE: u64 = 60_000_000_000;
/// Bytes that a server may say meanwhile.
const ROOM: usize = 64 << 10;

/// A server to which a dialogue is repeated.
pub struct Repeating {
    server: Server,
    sticky: Sticky,
    framing: Option<Box<dyn Framing>>,
    repetition: Repetition,
    /// The lines before this number may be sent.
    limit: Seq,
    /// What the server has sent.
    received: Assembler,
    /// The number of its FIN.
    fin: Option<Seq>,
    /// When it is given up.
    until: u64,
}

impl Repeating {
    /// Begins with nothing sent.
    pub fn begin(
        server: Server,
        (sticky, framing): (Sticky, Option<Box<dyn Framing>>),
        repetition: Repetition,
        client: &mut Client,
        ctx: &mut Context<'_>,
    ) -> Box<Repeating> {
        let (limit, received) = (server.handover.una, Assembler::new(server.next, ROOM));
        server.acknowledge(client, ctx);
        let until = ctx.now + PATIENCE;
        Box::new(Repeating { server, sticky, framing, repetition, limit, received, fin: None, until })
    }

    /// The server.
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// Memory taken.
    pub fn memory(&self) -> usize {
        let framing = self.framing.as_ref().map_or(0, |framing| framing.memory());
        size_of::<Self>() + self.repetition.memory() + self.received.memory() + framing
    }

    /// When there is something to do.
    pub fn due(&self) -> u64 {
        self.server.handover.due().map_or(self.until, |due| due.min(self.until))
    }

    /// The server has ended its side, or talks without end.
    fn is_hopeless(&self) -> bool {
        self.fin == Some(self.received.end()) || self.received.room() == 0
    }

    /// Takes an acceptable segment of the client: it is for later. A client that repeats itself hears that it has come.
    pub fn on_client(
        self: Box<Self>,
        client: &mut Client,
        ctx: &mut Context<'_>,
        segment: &Segment<'_>,
        news: &News,
    ) -> Next<Box<Repeating>> {
        let repeats = !segment.payload().is_empty() || segment.seq().is_before(client.acknowledged());
        if !news.has_come && repeats {
            client.own(ctx);
        }
        Next::Stay(self)
    }

    /// Answers a server's segment that is not acceptable.
    pub fn challenge_server(&mut self, client: &Client, ctx: &mut Context<'_>, segment: &Segment<'_>) {
        self.server.challenge(client, ctx, segment);
    }

    /// Takes an acceptable segment of the server.
    pub fn on_server(
        mut self: Box<Self>,
        client: &mut Client,
        ctx: &mut Context<'_>,
        segment: &Segment<'_>,
    ) -> Next<Box<Repeating>> {
        let limit = self.limit;
        if !self.server.take_acknowledgement(client, ctx, segment, limit) {
            self.server.hand_on(client, ctx, limit);
        }
        self.received.insert(segment.seq(), segment.payload());
        if segment.has(FIN) {
            self.fin = Some(segment.end() - 1);
        }
        self.follow(client, ctx, segment)
    }

    /// Does what the server's answers ask for.
    fn follow(
        mut self: Box<Self>,
        client: &mut Client,
        ctx: &mut Context<'_>,
        segment: &Segment<'_>,
    ) -> Next<Box<Repeating>> {
        let used = loop {
            match self.repetition.answers.hear(self.received.ready()) {
                Heard::GoOn(bytes) => self.limit += bytes as u32,
                Heard::Nothing if self.is_hopeless() => {
                    return self.leave(client, Reason::ServerRefused, Vec::new());
                }
                Heard::Nothing => break None,
                Heard::Ready { used } => break Some(used),
                Heard::Failed { say } => return self.leave(client, Reason::ServerRefused, say),
            }
        };
        let next = self.received.end();
        let is_new = !is_bare(segment) || segment.seq() != next;
        let Some(used) = used else {
            self.server.swallow(next, client.next);
            if !self.server.hand_on(client, ctx, self.limit) && is_new {
                self.server.acknowledge(client, ctx);
            }
            return Next::Stay(self);
        };
        let rest = &self.received.ready()[used..];
        if !rest.is_empty() {
            client.say(ctx, rest.to_vec(), false);
        }
        self.server.swallow(next, client.next);
        let exchange = self.framing.map(|mut framing| {
            // What the server says unasked answers nothing.
            let _ = framing.response(rest);
            Exchange::new(framing, self.limit, self.server.next)
        });
        Next::Resume { server: self.server, sticky: self.sticky, exchange, acknowledges: is_new }
    }

    /// Takes a reset of the server.
    pub fn on_reset(self: Box<Self>, client: &mut Client) -> Next<Box<Repeating>> {
        self.leave(client, Reason::ServerRefused, Vec::new())
    }

    /// Does what is due.
    pub fn on_time(mut self: Box<Self>, client: &mut Client, ctx: &mut Context<'_>) -> Next<Box<Repeating>> {
        if self.until <= ctx.now || !self.server.on_time(client, ctx, self.limit) {
            return self.leave(client, Reason::NoServer, Vec::new());
        }
        Next::Stay(self)
    }

    /// Gives a server up that does not take what the agent has granted: the client hears its words, or why.
    fn leave(self: Box<Self>, client: &mut Client, reason: Reason, say: Vec<u8>) -> Next<Box<Repeating>> {
        client.terms.service.groups[self.server.group].failed.add(1);
        let refusal = if say.is_empty() {
            refusing::apology(client, reason)
        } else {
            Refusal { why: reason.name(), rule: None, say }
        };
        Next::Refuse(Some(self.server.end()), refusal)
    }

    /// Asserts what holds meanwhile.
    pub fn check(&self, client: &Client) {
        self.server.check(client);
        assert!(client.guess.is_none(), "no connection is guessed where the agent greets");
        assert!(!self.limit.is_before(self.server.handover.next), "a line is sent before its turn");
    }
}
