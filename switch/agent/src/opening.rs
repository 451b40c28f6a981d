//! Opens a connection to a group of servers in the client's name, with the client's own sequence number.

use crate::connection::Fate::Stays;
use crate::connection::{Connection, Context, Fate, Phase};
use crate::decider::{Framing, Reason, Route, Sticky};
use crate::seq::Seq;
use crate::serving::{Answer, RESPONSE_ROOM, Serving};
use crate::wire::flags::{ACK, RST, SYN};
use crate::wire::{Head, RawOffer, Segment, reset};

/// Time until the SYN is repeated; each further one takes twice as long.
const REPEAT: u64 = 250_000_000;
/// How often it is sent in all, in 3.75 s: a hundredth lost takes one server in 10^8 for silent.
const SYNS: u32 = 4;

/// A server that is asked.
pub struct Opening {
    /// The group that it is to be of.
    pub group: usize,
    /// When to ask again.
    pub due: u64,
    sticky: Sticky,
    framing: Option<Box<dyn Framing>>,
    asked: u32,
    left: Option<Left>,
}

/// A server that the connection has left. Its reset may be lost, and the SYN would go there.
#[derive(Clone, Copy)]
struct Left {
    group: usize,
    /// The next number that was to come of it.
    next: Seq,
}

impl Left {
    /// Whether a segment is of this server, which did not know yet that it is left.
    fn has_sent(&self, segment: &Segment<'_>) -> bool {
        !segment.has(SYN) && !segment.has(RST) && (segment.seq() - self.next).unsigned_abs() as usize <= RESPONSE_ROOM
    }
}

impl Connection {
    /// Asks a group for a server.
    pub fn open(&mut self, ctx: &mut Context<'_>, route: Route) -> Fate {
        let Route { group, sticky, framing, .. } = route;
        let left = match &self.phase {
            Phase::Serving(serving) => Some(Left { group: serving.group, next: serving.next() }),
            _ => self.guessed_group().map(|group| Left { group, next: self.toward_client }),
        };
        self.reset_server(ctx);
        self.phase = Phase::Opening(Opening { group, due: ctx.now + REPEAT, sticky, framing, asked: 1, left });
        self.ask(ctx, group);
        Stays
    }

    fn offered(&self) -> RawOffer {
        RawOffer { mss: Some(self.offer.mss), scale: self.offer.scale, sack: self.offer.sack }
    }

    fn ask(&self, ctx: &mut Context<'_>, group: usize) {
        let (options, length) = self.offered().write();
        let window = u32::from(self.window) << self.offer.scale.unwrap_or(0);
        let head = Head {
            source: self.client,
            destination: self.service.groups[group].address,
            seq: self.request.base() - 1,
            ack: Seq(0),
            flags: SYN,
            // RFC 7323, section 2.2: a SYN's window is not scaled.
            window: u16::try_from(window).unwrap_or(u16::MAX),
        };
        ctx.out.push_with(|frame| head.write(&ctx.link, &options[..length], [b"", b""], frame));
    }

    /// Repeats the SYN, or gives up.
    pub fn ask_again(&mut self, ctx: &mut Context<'_>) -> Fate {
        let Phase::Opening(opening) = &mut self.phase else { return Stays };
        if ctx.now < opening.due {
            return Stays;
        }
        let group = opening.group;
        if opening.asked == SYNS {
            self.service.groups[group].failed.add(1);
            return self.apologize(ctx, Reason::NoServer);
        }
        opening.due = ctx.now + (REPEAT << opening.asked);
        opening.asked += 1;
        if let Some(left) = opening.left {
            self.send_reset(ctx, left.group, self.request.base());
        }
        self.ask(ctx, group);
        Stays
    }

    /// Takes what a server answers to the SYN (RFC 9293, section 3.10.7.3).
    pub fn on_answer(&mut self, ctx: &mut Context<'_>, segment: &Segment<'_>) -> Fate {
        let Phase::Opening(opening) = &mut self.phase else { return Stays };
        let group = opening.group;
        let address = self.service.groups[group].address;
        if !segment.has(ACK) || opening.left.is_some_and(|left| left.has_sent(segment)) {
            return Stays;
        }
        if segment.ack() != self.request.base() || !segment.has(SYN) && !segment.has(RST) {
            // The server has something else in mind, of an earlier connection perhaps.
            if !segment.has(RST) {
                let head = reset(segment, self.client, address);
                ctx.out.push_with(|frame| head.write(&ctx.link, &[], [b"", b""], frame));
                self.ask(ctx, group);
            }
            return Stays;
        }
        if segment.has(RST) {
            self.service.groups[group].failed.add(1);
            self.phase = Phase::Reading;
            return self.apologize(ctx, Reason::ServerRefused);
        }
        let (offered, said) = (self.offered(), segment.offer());
        ctx.has_learned |= ctx.pools.learn(ctx.now, address, &offered, segment);
        self.service.groups[group].opened.add(1);
        let Phase::Opening(Opening { sticky, framing, .. }) = std::mem::replace(&mut self.phase, Phase::Reading) else {
            return Stays;
        };
        let window = Some(u32::from(segment.window()));
        let answer = Answer { first: segment.seq() + 1, scale: said.scale, mss: said.mss, window };
        let serving = Serving::new(self, (group, sticky, framing), &answer);
        self.phase = Phase::Serving(Box::new(serving));
        self.begin_to_serve(ctx)
    }
}
