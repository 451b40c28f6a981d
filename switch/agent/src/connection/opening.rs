//! A group is asked for a server in the client's name, with the client's own sequence number.

use super::client::Client;
use super::context::Context;
use super::end::End;
use super::next::Next;
use super::refusing;
use super::server::{Answer, Server};
use crate::acceptance::{Reply, judge_reply};
use crate::decider::{Framing, Reason, Repetition, Route, Sticky};
use crate::seq::Seq;
use crate::wire::flags::SYN;
use crate::wire::{Head, RawOffer, Segment};

/// Time until the SYN is repeated; each further one takes twice as long.
const REPEAT: u64 = 250_000_000;
/// How often it is sent in all, in 3.75 s: a hundredth lost takes one server in 10^8 for silent.
const SYNS: u32 = 4;
/// How many servers of the group are asked at most, when they refuse. The same one may be asked twice.
const ATTEMPTS: u16 = 4;

/// Bytes that a server is taken to have sent on a connection that another agent has opened.
const SENT: u32 = 16 << 20;

/// A server that is asked.
pub struct Opening {
    /// The group that it is to be of.
    group: usize,
    /// When to ask again.
    pub due: u64,
    sticky: Sticky,
    framing: Option<Box<dyn Framing>>,
    repetition: Option<Repetition>,
    asked: u32,
    /// How many servers have refused. The SYN carries it in its IPv4 identification: the data plane draws another server by it.
    attempt: u16,
    former: Former,
}

/// A connection of this client's that a server may have from before.
enum Former {
    /// None that the agent knows of; another agent may have opened one.
    Unknown,
    /// The agent has reset the server.
    Reset,
    /// The agent resets the server at this number before each repeated SYN: its first reset may be lost.
    Left(Seq),
}

fn offered(client: &Client) -> RawOffer {
    let offer = client.terms.offer;
    RawOffer { mss: Some(offer.mss), scale: offer.scale, sack: offer.sack }
}

impl Opening {
    /// Asks a group for a server. With `has_left` the connection has left one before.
    pub fn begin(client: &Client, ctx: &mut Context<'_>, route: Route, has_left: bool) -> Opening {
        let Route { group, sticky, framing, repetition, .. } = route;
        let former = if has_left { Former::Left(client.request.base()) } else { Former::Unknown };
        let opening =
            Opening { group, due: ctx.now + REPEAT, sticky, framing, repetition, asked: 1, attempt: 0, former };
        opening.ask(client, ctx);
        opening
    }

    /// How the server is left.
    pub fn end(&self, client: &Client) -> End {
        End { group: self.group, seq: client.request.base() }
    }

    /// Memory taken beside the structure itself.
    pub fn memory(&self) -> usize {
        let framing = self.framing.as_ref().map_or(0, |framing| framing.memory());
        framing + self.repetition.as_ref().map_or(0, Repetition::memory)
    }

    fn ask(&self, client: &Client, ctx: &mut Context<'_>) {
        let (options, length) = offered(client).write();
        let head = Head {
            source: client.terms.client,
            destination: client.terms.service.groups[self.group].address,
            seq: client.request.base() - 1,
            ack: Seq(0),
            flags: SYN,
            // RFC 7323, section 2.2: a SYN's window is not scaled.
            window: u16::try_from(client.window_bytes()).unwrap_or(u16::MAX),
        };
        let options = &options[..length];
        ctx.out.push_with(|frame| head.write_identified(&ctx.link, self.attempt, options, [b"", b""], frame));
    }

    /// Takes an acceptable segment of the client: it is for later.
    pub fn on_client(self, client: &Client, ctx: &mut Context<'_>, segment: &Segment<'_>) -> Next<Opening> {
        if segment.seq().is_before(client.owned) && !segment.payload().is_empty() {
            client.acknowledge(ctx);
        }
        Next::Stay(self)
    }

    /// Repeats the SYN, or gives up.
    pub fn on_time(mut self, client: &mut Client, ctx: &mut Context<'_>) -> Next<Opening> {
        if ctx.now < self.due {
            return Next::Stay(self);
        }
        if self.asked == SYNS {
            return self.give_up(client, Reason::NoServer);
        }
        self.due = ctx.now + (REPEAT << self.asked);
        self.asked += 1;
        if let Former::Left(seq) = self.former {
            client.send_reset(ctx, End { seq, ..self.end(client) });
        }
        self.ask(client, ctx);
        Next::Stay(self)
    }

    fn give_up(self, client: &Client, reason: Reason) -> Next<Opening> {
        client.terms.service.groups[self.group].failed.add(1);
        let asked = (reason == Reason::NoServer).then(|| self.end(client));
        let refusal = refusing::apology(client, reason);
        Next::Refuse(asked, refusal)
    }

    /// Takes what a server answers to the SYN.
    pub fn on_server(self, client: &mut Client, ctx: &mut Context<'_>, segment: &Segment<'_>) -> Next<Opening> {
        match judge_reply(client.request.base(), segment) {
            Reply::Nothing => Next::Stay(self),
            Reply::Stale => self.on_former(client, ctx, segment),
            Reply::Refuses if self.attempt + 1 == ATTEMPTS => self.give_up(client, Reason::ServerRefused),
            Reply::Refuses => self.ask_another(client, ctx),
            Reply::Opens => self.open(client, ctx, segment),
        }
    }

    /// Takes a segment of a connection from before. One that another agent has opened is reset, and the server asked again, once.
    /// Any other is late, or its server has missed its reset: the agent sends that with the next SYN. A reset frees the slot, and the SYN
    /// behind it may go to another server while an answer to the SYN before is on its way: the agent would take the first server's
    /// numbers for the second's.
    fn on_former(mut self, client: &mut Client, ctx: &mut Context<'_>, segment: &Segment<'_>) -> Next<Opening> {
        let seq = segment.ack();
        self.former = match self.former {
            Former::Unknown => {
                client.note_left(ctx.now, segment.seq() - SENT, segment.end());
                client.send_reset(ctx, End { seq, ..self.end(client) });
                self.ask(client, ctx);
                Former::Reset
            }
            // The newest number counts: a server answers a reset with a wrong number by an ACK with the right one.
            Former::Reset | Former::Left(_) => Former::Left(seq),
        };
        Next::Stay(self)
    }

    /// A server has refused, and none has seen the request: another one is asked.
    fn ask_another(mut self, client: &mut Client, ctx: &mut Context<'_>) -> Next<Opening> {
        client.terms.service.groups[self.group].failed.add(1);
        client.leave(ctx, Some(self.end(client)));
        self.attempt += 1;
        (self.asked, self.due) = (1, ctx.now + REPEAT);
        self.ask(client, ctx);
        Next::Stay(self)
    }

    fn open(self, client: &mut Client, ctx: &mut Context<'_>, segment: &Segment<'_>) -> Next<Opening> {
        client.last_segment = ctx.now;
        let group = &client.terms.service.groups[self.group];
        ctx.has_learned |= ctx.pools.learn(ctx.now, group.address, &offered(client), segment);
        group.opened.add(1);
        let offer = segment.offer();
        let window = Some(u32::from(segment.window()));
        let answer = Answer { first: segment.seq() + 1, scale: offer.scale, mss: offer.mss, window };
        let server = Server::new(client, self.group, &answer);
        match self.repetition {
            Some(repetition) => Next::Repeat(server, (self.sticky, self.framing), repetition),
            None => Next::Serve(server, self.sticky, self.framing),
        }
    }
}
