//! Opens a connection to a server of a group, with the client's source address and sequence numbers.

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

/// Nanoseconds until the SYN is sent again; the interval doubles each time.
const REPEAT: u64 = 250_000_000;
/// How often the SYN is sent in all, within 3.75 s. With 1% packet loss, one server in 10^8 is mistaken for silent.
const SYNS: u32 = 4;
/// How many SYNs with a new attempt number are sent when servers refuse. Two attempts may reach the same server.
const ATTEMPTS: u16 = 4;

/// Bytes that a server may have sent on a connection that another agent opened.
const SENT: u32 = 16 << 20;

/// A connection attempt to a server.
pub struct Opening {
    /// Index of the group.
    group: usize,
    /// The time at which the SYN is sent again.
    pub due: u64,
    sticky: Sticky,
    framing: Option<Box<dyn Framing>>,
    repetition: Option<Repetition>,
    asked: u32,
    /// The number of servers that have refused. The SYN carries it as its IPv4 identification, by which the data
    /// plane selects another server.
    attempt: u16,
    former: Former,
}

/// An earlier connection of this client that a server may still have.
enum Former {
    /// The agent has opened none; another agent may have opened one.
    Unknown,
    /// The agent has reset it.
    Reset,
    /// The agent resets the server at this number before each further SYN, because its first reset may have been
    /// lost.
    Left(Seq),
}

fn offered(client: &Client) -> RawOffer {
    let offer = client.terms.offer;
    RawOffer { mss: Some(offer.mss), scale: offer.scale, sack: offer.sack }
}

impl Opening {
    /// Sends a SYN to a group. `has_left`: the connection has left another server before.
    pub fn begin(client: &Client, ctx: &mut Context<'_>, route: Route, has_left: bool) -> Opening {
        let Route { group, sticky, framing, repetition, .. } = route;
        let former = if has_left { Former::Left(client.request.base()) } else { Former::Unknown };
        let opening =
            Opening { group, due: ctx.now + REPEAT, sticky, framing, repetition, asked: 1, attempt: 0, former };
        opening.ask(client, ctx);
        opening
    }

    /// How to reset the server.
    pub fn end(&self, client: &Client) -> End {
        End { group: self.group, seq: client.request.base() }
    }

    /// Returns the bytes of memory in use besides the structure itself.
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
            // RFC 7323, section 2.2: the window of a SYN is not scaled.
            window: u16::try_from(client.window_bytes()).unwrap_or(u16::MAX),
        };
        let options = &options[..length];
        ctx.out.push_with(|frame| head.write_identified(&ctx.link, self.attempt, options, [b"", b""], frame));
    }

    /// Processes an acceptable segment of the client: its bytes wait until the server has accepted the connection.
    pub fn on_client(self, client: &Client, ctx: &mut Context<'_>, segment: &Segment<'_>) -> Next<Opening> {
        if segment.seq().is_before(client.owned) && !segment.payload().is_empty() {
            client.acknowledge(ctx);
        }
        Next::Stay(self)
    }

    /// Sends the SYN again, or gives up.
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

    /// Processes a server's segment, as far as it answers the SYN.
    pub fn on_server(self, client: &mut Client, ctx: &mut Context<'_>, segment: &Segment<'_>) -> Next<Opening> {
        match judge_reply(client.request.base(), segment) {
            Reply::Nothing => Next::Stay(self),
            Reply::Stale => self.on_former(client, ctx, segment),
            Reply::Refuses if self.attempt + 1 == ATTEMPTS => self.give_up(client, Reason::ServerRefused),
            Reply::Refuses => self.ask_another(client, ctx),
            Reply::Opens => self.open(client, ctx, segment),
        }
    }

    /// Handles a segment of an earlier connection. A connection that another agent has opened is reset, and the SYN
    /// sent again, once. Any other segment is late, or the server has missed its reset, which the agent then sends
    /// with the next SYN. The reason for waiting: a reset frees the slot in the data plane, and the SYN behind it may
    /// reach another server while an answer to the previous SYN is still under way. The agent would take the first
    /// server's numbers for the second's.
    fn on_former(mut self, client: &mut Client, ctx: &mut Context<'_>, segment: &Segment<'_>) -> Next<Opening> {
        let seq = segment.ack();
        self.former = match self.former {
            Former::Unknown => {
                client.note_left(ctx.now, segment.seq() - SENT, segment.end());
                client.send_reset(ctx, End { seq, ..self.end(client) });
                self.ask(client, ctx);
                Former::Reset
            }
            // The latest number counts: a server answers a reset with a wrong number by an ACK with the right one.
            Former::Reset | Former::Left(_) => Former::Left(seq),
        };
        Next::Stay(self)
    }

    /// Tries another server after a refusal; no server has received the request so far.
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
