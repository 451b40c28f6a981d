//! A group is asked for a server in the client's name, with the client's own sequence number.

use super::client::Client;
use super::exchange::RESPONSE_ROOM;
use super::repeating::Repeating;
use super::server::{Answer, End, Server};
use super::serving::Serving;
use super::{Context, State, refusing};
use crate::acceptance::{Reply, judge_reply};
use crate::decider::{Framing, Reason, Repetition, Route, Sticky};
use crate::seq::Seq;
use crate::wire::flags::{RST, SYN};
use crate::wire::{Head, RawOffer, Segment, reset};

/// Time until the SYN is repeated; each further one takes twice as long.
const REPEAT: u64 = 250_000_000;
/// How often it is sent in all, in 3.75 s: a hundredth lost takes one server in 10^8 for silent.
const SYNS: u32 = 4;
/// How many servers of the group are asked at most, when they refuse. The same one may be asked twice.
const ATTEMPTS: u16 = 4;

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
    left: Option<Left>,
}

/// A server that the connection has left. Its reset may be lost, and the SYN would go there.
#[derive(Clone, Copy)]
pub struct Left {
    pub group: usize,
    /// The next number that was to come of it.
    pub next: Seq,
}

impl Left {
    /// Whether a segment is of this server, which did not know yet that it is left.
    fn has_sent(&self, segment: &Segment<'_>) -> bool {
        !segment.has(SYN) && !segment.has(RST) && (segment.seq() - self.next).unsigned_abs() as usize <= RESPONSE_ROOM
    }
}

/// Asks a group for a server; the one before is left.
pub fn begin(client: &Client, ctx: &mut Context<'_>, route: Route, left: Option<Left>) -> State {
    let Route { group, sticky, framing, repetition, .. } = route;
    let opening = Opening { group, due: ctx.now + REPEAT, sticky, framing, repetition, asked: 1, attempt: 0, left };
    opening.ask(client, ctx);
    State::Opening(opening)
}

fn offered(client: &Client) -> RawOffer {
    let offer = client.terms.offer;
    RawOffer { mss: Some(offer.mss), scale: offer.scale, sack: offer.sack }
}

impl Opening {
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
    pub fn on_client(self, client: &Client, ctx: &mut Context<'_>, segment: &Segment<'_>) -> State {
        if segment.seq().is_before(client.owned) && !segment.payload().is_empty() {
            client.acknowledge(ctx);
        }
        State::Opening(self)
    }

    /// Repeats the SYN, or gives up.
    pub fn on_time(mut self, client: &mut Client, ctx: &mut Context<'_>) -> State {
        if ctx.now < self.due {
            return State::Opening(self);
        }
        if self.asked == SYNS {
            return self.give_up(client, ctx, Reason::NoServer);
        }
        self.due = ctx.now + (REPEAT << self.asked);
        self.asked += 1;
        if let Some(left) = self.left {
            client.send_reset(ctx, End { group: left.group, seq: client.request.base() });
        }
        self.ask(client, ctx);
        State::Opening(self)
    }

    fn give_up(self, client: &mut Client, ctx: &mut Context<'_>, reason: Reason) -> State {
        client.terms.service.groups[self.group].failed.add(1);
        let asked = (reason == Reason::NoServer).then(|| self.end(client));
        let refusal = refusing::apology(client, reason);
        refusing::refuse(client, ctx, asked, refusal)
    }

    /// Takes what a server answers to the SYN.
    pub fn on_server(self, client: &mut Client, ctx: &mut Context<'_>, segment: &Segment<'_>) -> State {
        if self.left.is_some_and(|left| left.has_sent(segment)) {
            return State::Opening(self);
        }
        match judge_reply(client.request.base(), segment) {
            Reply::Nothing => State::Opening(self),
            Reply::Stale => {
                let head = reset(segment, client.terms.client, client.terms.service.groups[self.group].address);
                ctx.out.push_with(|frame| head.write(&ctx.link, &[], [b"", b""], frame));
                self.ask(client, ctx);
                State::Opening(self)
            }
            Reply::Refuses if self.attempt + 1 == ATTEMPTS => self.give_up(client, ctx, Reason::ServerRefused),
            Reply::Refuses => self.ask_another(client, ctx),
            Reply::Opens => self.open(client, ctx, segment),
        }
    }

    /// A server has refused, and none has seen the request: another one is asked.
    fn ask_another(mut self, client: &mut Client, ctx: &mut Context<'_>) -> State {
        client.terms.service.groups[self.group].failed.add(1);
        client.leave(ctx, Some(self.end(client)));
        self.attempt += 1;
        (self.asked, self.due) = (1, ctx.now + REPEAT);
        self.ask(client, ctx);
        State::Opening(self)
    }

    fn open(self, client: &mut Client, ctx: &mut Context<'_>, segment: &Segment<'_>) -> State {
        client.last_segment = ctx.now;
        let group = &client.terms.service.groups[self.group];
        ctx.has_learned |= ctx.pools.learn(ctx.now, group.address, &offered(client), segment);
        group.opened.add(1);
        let offer = segment.offer();
        let window = Some(u32::from(segment.window()));
        let answer = Answer { first: segment.seq() + 1, scale: offer.scale, mss: offer.mss, window };
        let server = Server::new(client, self.group, &answer);
        match self.repetition {
            Some(repetition) => Repeating::begin(server, (self.sticky, self.framing), repetition, client, ctx),
            None => Serving::begin(server, self.sticky, self.framing, client, ctx),
        }
    }
}
