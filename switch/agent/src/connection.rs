//! A connection from its first bytes of a request until the data plane has it.
//!
//! Numbers come in two ways. A client's bytes have the client's own numbers on both sides. What the client hears has the agent's
//! numbers, which begin with the cookie; a server's numbers and `delta` make them.

use std::net::SocketAddrV4;
use std::sync::Arc;

use crate::assembler::Assembler;
use crate::config::Service;
use crate::cookie::Offer;
use crate::decider::Reason;
use crate::frames::Frames;
use crate::guess::Guess;
use crate::opening::Opening;
use crate::pool::Pools;
use crate::reading::Reading;
use crate::repeating::Repeating;
use crate::seq::Seq;
use crate::serving::Serving;
use crate::speech::Speech;
use crate::wire::flags::{ACK, FIN, PSH, RST, SYN};
use crate::wire::{Head, Link, Segment, sack_option, window_field};

/// How long a connection may be silent in the agent's hands.
const IDLE: u64 = 300_000_000_000;
/// How long one that both sides have ended is kept for late segments.
const LINGER: u64 = 5_000_000_000;

/// What a connection works with, for one event.
pub struct Context<'e> {
    /// Nanoseconds of a clock that only goes forward.
    pub now: u64,
    /// Between the agent and the router.
    pub link: Link,
    /// What goes out.
    pub out: &'e mut Frames,
    /// What servers can do.
    pub pools: &'e mut Pools,
    /// Something new was learned about them.
    pub has_learned: bool,
    /// The agent takes no new work.
    pub is_draining: bool,
}

/// What becomes of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Fate {
    /// The agent keeps it.
    Stays,
    /// The agent forgets it.
    Ends,
}

use Fate::{Ends, Stays};

/// Where a connection is on its way to a server.
pub enum Phase {
    /// The request is not complete.
    Reading,
    /// A server is asked.
    Opening(Opening),
    /// A server has answered.
    Serving(Box<Serving>),
    /// The client hears why not; until this time.
    Refusing(u64),
}

/// A connection.
pub struct Connection {
    /// The client.
    pub client: SocketAddrV4,
    /// The agent's address and port, which the client takes for the service's.
    pub own_address: SocketAddrV4,
    /// The content service, with the rules of when the connection began.
    pub service: Arc<Service>,
    /// Of those rules.
    pub generation: u8,
    /// What the client said in its SYN.
    pub offer: Offer,
    /// The window scale that it was told.
    pub told: u8,
    /// The most that it is told of the agent's window.
    pub most: u16,
    /// The client's bytes, from the first that no server has acknowledged.
    pub request: Assembler,
    /// The agent has acknowledged what comes before, and owns it until a server has it.
    pub owned: Seq,
    /// The number of the client's FIN.
    pub fin: Option<Seq>,
    /// The next number that the client is to hear.
    pub toward_client: Seq,
    /// What the client has acknowledged.
    pub client_ack: Seq,
    /// The client's window field, as it was last.
    pub window: u16,
    /// What the agent itself has said.
    pub speech: Option<Speech>,
    /// The request that is being read.
    pub reading: Option<Reading>,
    /// The dialogue that the server is to hear again.
    pub repeating: Option<Box<Repeating>>,
    /// How far the connection is.
    pub phase: Phase,
    /// When a segment came last.
    pub heard: u64,
    /// What is known of the server that the data plane has guessed.
    pub guess: Option<Box<Guess>>,
}

impl Connection {
    /// A connection whose client has answered the cookie `own` with its first byte at `first`.
    pub fn new(
        (client, own_address): (SocketAddrV4, SocketAddrV4),
        service: Arc<Service>,
        generation: u8,
        (offer, told, most): (Offer, u8, u16),
        (first, own): (Seq, Seq),
        now: u64,
    ) -> Connection {
        let reader = service.rules.begin(client, service.address);
        Connection {
            client,
            own_address,
            generation,
            offer,
            told: if offer.scale.is_some() { told } else { 0 },
            most,
            request: Assembler::new(first, service.rules.room()),
            service,
            owned: first,
            fin: None,
            toward_client: own + 1,
            client_ack: own + 1,
            window: 0,
            speech: None,
            repeating: None,
            reading: Some(Reading::new(reader, now)),
            phase: Phase::Reading,
            heard: now,
            guess: None,
        }
    }

    /// Takes a segment of the client.
    pub fn on_client(&mut self, ctx: &mut Context<'_>, segment: &Segment<'_>) -> Fate {
        self.heard = ctx.now;
        if segment.has(RST) {
            return self.on_client_reset(ctx, segment);
        }
        if self.has_heard_guessed(segment) {
            return self.give_guess_up(ctx);
        }
        // RFC 5961, sections 4 and 5: neither a SYN nor an acknowledgement of what was never sent changes anything.
        if segment.has(SYN) || !segment.has(ACK) || self.toward_client.is_before(segment.ack()) {
            self.acknowledge(ctx);
            return Stays;
        }
        self.window = segment.window();
        self.client_ack = self.client_ack.later(segment.ack());
        if self.speech.as_ref().is_some_and(|speech| !self.client_ack.is_before(speech.end())) {
            self.speech = None;
        }
        let before = self.request.end();
        self.request.insert(segment.seq(), segment.payload());
        if segment.has(FIN) && self.fin.is_none() {
            self.fin = Some(segment.end() - 1);
        }
        let has_come = before.is_before(self.request.end()) || (segment.has(FIN) && self.is_finished());
        match &mut self.phase {
            Phase::Reading => self.read_or_acknowledge(ctx, segment, has_come),
            Phase::Opening(_) => {
                if segment.seq().is_before(self.owned) && !segment.payload().is_empty() {
                    self.acknowledge(ctx);
                }
                Stays
            }
            Phase::Serving(_) => self.serve_client(ctx, segment, has_come),
            Phase::Refusing(_) => self.say_farewell(ctx, segment),
        }
    }

    /// Takes a segment of a server.
    pub fn on_server(&mut self, ctx: &mut Context<'_>, segment: &Segment<'_>) -> Fate {
        self.heard = ctx.now;
        match &mut self.phase {
            Phase::Opening(_) => self.on_answer(ctx, segment),
            Phase::Serving(_) => self.serve_server(ctx, segment),
            Phase::Reading | Phase::Refusing(_) => Stays,
        }
    }

    /// Does what is due.
    pub fn on_time(&mut self, ctx: &mut Context<'_>) -> Fate {
        if self.speech.as_mut().is_some_and(|speech| speech.is_due(ctx.now)) {
            self.speak(ctx);
        }
        if let Some(reading) = &self.reading {
            if reading.ends(self.service.rules.wait()).is_some_and(|end| end <= ctx.now) {
                return self.apologize(ctx, Reason::Timeout);
            }
            if reading.acknowledge_at.is_some_and(|due| due <= ctx.now) {
                self.own(ctx);
            }
        }
        if self.take_again(ctx) == Ends {
            return Ends;
        }
        let fate = match &mut self.phase {
            Phase::Reading => Stays,
            Phase::Opening(_) => self.ask_again(ctx),
            Phase::Serving(_) => self.serve_time(ctx),
            Phase::Refusing(until) => {
                if *until <= ctx.now {
                    Ends
                } else {
                    Stays
                }
            }
        };
        if self.idle_end() <= ctx.now { Ends } else { fate }
    }

    fn idle_end(&self) -> u64 {
        if self.waits_since().is_some() {
            // It ends when the client's time is up.
            return u64::MAX;
        }
        let is_over = self.client_ack == self.toward_client
            && matches!(&self.phase, Phase::Serving(serving) if serving.is_over(self.fin));
        self.heard + if is_over { LINGER } else { IDLE }
    }

    /// When [`Self::on_time`] has something to do.
    pub fn due(&self) -> u64 {
        let speech = self.speech.as_ref().and_then(Speech::due);
        let reading = self.reading.as_ref().and_then(|reading| reading.due(self.service.rules.wait()));
        let phase = match &self.phase {
            Phase::Reading => None,
            Phase::Opening(opening) => Some(opening.due),
            Phase::Serving(serving) => serving.due(),
            Phase::Refusing(until) => Some(*until),
        };
        let repeating = self.repeating.as_ref().map(|repeating| repeating.until);
        let guess = self.guess.as_ref().and_then(|guess| guess.due());
        [speech, reading, phase, repeating, guess].into_iter().flatten().fold(self.idle_end(), u64::min)
    }

    /// Since when a request waits for its other bytes, if one does.
    pub fn waits_since(&self) -> Option<u64> {
        self.reading.as_ref()?.since
    }

    /// Since when the connection only waits for its client: it may be given up for others.
    pub fn yields_since(&self) -> Option<u64> {
        match &self.phase {
            Phase::Refusing(_) => Some(self.heard),
            Phase::Serving(serving) if serving.has_ended() => Some(self.heard),
            _ => self.reading.as_ref().map(|reading| reading.begun),
        }
    }

    /// Gives the connection up for others: a request is refused, and one that has not begun finds no connection.
    pub fn give_up(&mut self, ctx: &mut Context<'_>) -> Fate {
        if self.waits_since().is_some() {
            let _ = self.apologize(ctx, Reason::Crowded);
        } else if !matches!(self.phase, Phase::Refusing(_)) {
            self.service.counters.refuse(Reason::Crowded.name());
            self.reset_both(ctx);
        }
        Ends
    }

    /// Memory taken.
    pub fn memory(&self) -> usize {
        let speech = self.speech.as_ref().map_or(0, Speech::memory);
        let serving = if let Phase::Serving(serving) = &self.phase { serving.memory() } else { 0 };
        let repeating = self.repeating.as_ref().map_or(0, |repeating| repeating.memory());
        let reading = self.reading.as_ref().map_or(0, Reading::memory);
        let guess = if self.guess.is_some() { size_of::<Guess>() } else { 0 };
        size_of::<Self>() + self.request.memory() + speech + reading + serving + repeating + guess
    }

    /// Whether the client's FIN is all that is left of its side.
    pub fn is_finished(&self) -> bool {
        self.fin == Some(self.request.end())
    }

    /// What the client may take for acknowledged.
    pub fn acknowledged(&self) -> Seq {
        match &self.phase {
            Phase::Serving(serving) => self.owned.later(serving.handover.una),
            _ => self.owned,
        }
    }

    /// The head of a segment of the agent's own to the client.
    pub fn head_to_client(&self, seq: Seq, flags: u8) -> Head {
        let room = (self.request.end() + self.request.room() as u32).since(self.acknowledged()).min(self.most.into());
        Head {
            source: self.own_address,
            destination: self.client,
            seq,
            ack: self.acknowledged(),
            flags,
            window: window_field(room, self.told),
        }
    }

    /// Tells the client what the agent has, with what lies beyond gaps.
    pub fn acknowledge(&mut self, ctx: &mut Context<'_>) {
        let head = self.head_to_client(self.toward_client, ACK);
        let blocks = self.offer.sack.then(|| self.request.islands()).into_iter().flatten();
        let (option, length) = sack_option(blocks.take(3));
        ctx.out.push_with(|frame| head.write(&ctx.link, &option[..length], [b"", b""], frame));
    }

    /// Takes over what has come, and says so.
    pub fn own(&mut self, ctx: &mut Context<'_>) {
        self.take(ctx);
        self.owned = self.request.end();
        if let Some(reading) = &mut self.reading {
            reading.acknowledge_at = None;
        }
        self.acknowledge(ctx);
    }

    /// Says something to the client, until it has it.
    pub fn say(&mut self, ctx: &mut Context<'_>, bytes: Vec<u8>, ends: bool) {
        self.take(ctx);
        self.owned = self.request.end() + u32::from(ends && self.is_finished());
        if let Some(reading) = &mut self.reading {
            reading.acknowledge_at = None;
        }
        match &mut self.speech {
            Some(speech) => speech.add(&bytes, ends, ctx.now),
            None => self.speech = Some(Speech::new(self.toward_client, bytes, ends, ctx.now)),
        }
        self.speak(ctx);
    }

    /// Sends what the client has not acknowledged of the agent's own words.
    fn speak(&mut self, ctx: &mut Context<'_>) {
        let Some(speech) = &self.speech else { return };
        let (mut seq, mut rest) = speech.rest(self.client_ack);
        loop {
            let (segment, further) = rest.split_at(rest.len().min(usize::from(self.offer.mss)));
            let is_end = speech.ends() && further.is_empty();
            let head = self.head_to_client(seq, ACK | PSH | if is_end { FIN } else { 0 });
            ctx.out.push_with(|frame| head.write(&ctx.link, &[], [segment, b""], frame));
            (seq, rest) = (seq + segment.len() as u32, further);
            if rest.is_empty() {
                break;
            }
        }
        self.toward_client = self.toward_client.later(speech.end());
    }

    /// Resets the client's side (RFC 9293, section 3.5.2): at the next number that it expects, which is one of two.
    pub fn reset_client(&mut self, ctx: &mut Context<'_>) {
        let mut reset = |seq| {
            let head = Head { window: 0, ..self.head_to_client(seq, RST | ACK) };
            ctx.out.push_with(|frame| head.write(&ctx.link, &[], [b"", b""], frame));
        };
        reset(self.toward_client);
        if self.client_ack != self.toward_client {
            reset(self.client_ack);
        }
    }

    /// Resets the server's side, if there is one.
    pub fn reset_server(&mut self, ctx: &mut Context<'_>) {
        let (group, seq) = match &self.phase {
            Phase::Opening(opening) => (opening.group, self.request.base()),
            Phase::Serving(serving) => (serving.group, serving.handover.next),
            Phase::Reading | Phase::Refusing(_) => match self.guessed_group() {
                Some(group) => (group, self.request.base()),
                None => return,
            },
        };
        self.send_reset(ctx, group, seq);
        if let Some(guess) = &mut self.guess {
            guess.leave();
        }
    }

    /// Sends a reset towards a group.
    pub fn send_reset(&self, ctx: &mut Context<'_>, group: usize, seq: Seq) {
        let destination = self.service.groups[group].address;
        let head = Head { source: self.client, destination, seq, ack: Seq(0), flags: RST, window: 0 };
        ctx.out.push_with(|frame| head.write(&ctx.link, &[], [b"", b""], frame));
    }

    /// RFC 5961, section 3: a reset counts at the very number; one nearby is asked about.
    fn on_client_reset(&mut self, ctx: &mut Context<'_>, segment: &Segment<'_>) -> Fate {
        let fin = self.fin.map(|fin| fin + 1);
        let expected = [Some(self.acknowledged()), Some(self.request.end()), fin];
        if expected.contains(&Some(segment.seq())) {
            self.service.counters.resets.add(1);
            self.reset_server(ctx);
            return Ends;
        }
        if segment.seq().since(self.acknowledged()) < 65_536 {
            self.acknowledge(ctx);
        }
        Stays
    }
}
