//! Reads requests, and decides.

use std::time::Duration;

use crate::connection::Fate::{Ends, Stays};
use crate::connection::{Connection, Context, Fate, Phase};
use crate::decider::{Decision, Reader, Reason, Refusal, Route};
use crate::wire::Segment;

/// Bytes that may wait for their acknowledgement: clients may send at least as much at first (RFC 3390).
const UNACKNOWLEDGED: usize = 4096;
/// How long they may wait. Mostly the rest of a request comes within, and nothing needs to be acknowledged.
const PATIENCE: u64 = 10_000_000;
/// The same of a request that the agent owns a part of: nothing is saved any more, and a client may hold back its last bytes until
/// all others are acknowledged (Nagle, RFC 896). An agent with nothing else to do waits a whole millisecond.
const OWNERS_PATIENCE: u64 = 500_000;
/// How long a client that was refused is listened to.
const FAREWELL: u64 = 5_000_000_000;

/// A request that is being read.
pub struct Reading {
    reader: Box<dyn Reader>,
    /// When its first byte came.
    pub since: Option<u64>,
    /// When the first byte came, or, before that, the request before was answered.
    pub begun: u64,
    /// When to acknowledge what has come.
    pub acknowledge_at: Option<u64>,
}

impl Reading {
    /// Begins, at the time of the first byte.
    pub fn new(reader: Box<dyn Reader>, now: u64) -> Reading {
        Reading { reader, since: Some(now), begun: now, acknowledge_at: None }
    }

    /// Begins, with no byte yet.
    pub fn idle(reader: Box<dyn Reader>, now: u64) -> Reading {
        Reading { reader, since: None, begun: now, acknowledge_at: None }
    }

    /// When the client's time is up.
    pub fn ends(&self, wait: Duration) -> Option<u64> {
        self.since.map(|since| since.saturating_add(u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX)))
    }

    /// Whether no byte has come.
    pub fn is_idle(&self) -> bool {
        self.since.is_none()
    }

    /// Memory taken.
    pub fn memory(&self) -> usize {
        self.reader.memory()
    }

    /// When there is something to do.
    pub fn due(&self, wait: Duration) -> Option<u64> {
        [self.ends(wait), self.acknowledge_at].into_iter().flatten().min()
    }
}

impl Connection {
    /// Takes what has come of a request.
    pub fn read_or_acknowledge(&mut self, ctx: &mut Context<'_>, segment: &Segment<'_>, has_come: bool) -> Fate {
        if has_come {
            return self.read(ctx);
        }
        // Repeated, beyond a gap, or a keepalive: the client wants to know what has come (RFC 5681, section 4.2).
        if !segment.payload().is_empty() || segment.seq().is_before(self.acknowledged()) {
            self.own(ctx);
        }
        Stays
    }

    /// Asks the rules about the bytes so far.
    pub fn read(&mut self, ctx: &mut Context<'_>) -> Fate {
        let is_finished = self.is_finished();
        let Some(reading) = &mut self.reading else { return Stays };
        if reading.since.is_none() {
            (reading.since, reading.begun) = (Some(ctx.now), ctx.now);
        }
        match reading.reader.read(self.request.ready()) {
            Decision::NeedMore { say } if is_finished => self.close(ctx, say, Reason::CutShort),
            Decision::NeedMore { say } if self.request.room() == 0 => self.close(ctx, say, Reason::TooLarge),
            Decision::NeedMore { say } => {
                if !say.is_empty() {
                    if self.service.rules.greets() {
                        // The time for the next command begins.
                        reading.since = Some(ctx.now);
                    }
                    self.say(ctx, say, false);
                } else if self.request.end().since(self.owned) >= UNACKNOWLEDGED
                    || self.request.islands().next().is_some()
                {
                    self.own(ctx);
                } else if self.request.end() != self.owned {
                    let is_owner = self.request.base().is_before(self.owned);
                    let patience = if is_owner { OWNERS_PATIENCE } else { PATIENCE };
                    reading.acknowledge_at.get_or_insert(ctx.now + patience);
                }
                Stays
            }
            Decision::Route(route) => self.route(ctx, route),
            Decision::Refuse(refusal) => self.refuse(ctx, refusal),
        }
    }

    fn route(&mut self, ctx: &mut Context<'_>, mut route: Route) -> Fate {
        self.reading = None;
        if let Some(repetition) = route.repetition.take() {
            self.prepare_repetition(ctx, repetition);
        }
        match route.rule {
            Some(rule) => self.service.hits[rule as usize].add(1),
            None => self.service.counters.by_default.add(1),
        }
        match &self.phase {
            Phase::Serving(serving) if serving.group == route.group => self.serve_next(ctx, route),
            Phase::Reading if self.guess.is_some() => self.follow_guess(ctx, route),
            _ => self.open(ctx, route),
        }
    }

    /// Refuses for a reason of the agent's own.
    pub fn apologize(&mut self, ctx: &mut Context<'_>, reason: Reason) -> Fate {
        self.close(ctx, Vec::new(), reason)
    }

    /// The same, after other words.
    fn close(&mut self, ctx: &mut Context<'_>, mut say: Vec<u8>, reason: Reason) -> Fate {
        say.extend(self.service.rules.apology(reason));
        self.refuse(ctx, Refusal { why: reason.name(), rule: None, say })
    }

    /// Says why not, and ends the connection.
    pub fn refuse(&mut self, ctx: &mut Context<'_>, refusal: Refusal) -> Fate {
        self.service.counters.refuse(refusal.why);
        if let Some(rule) = refusal.rule {
            self.service.hits[rule as usize].add(1);
        }
        let is_spoilt = self.is_guess_spoilt();
        let is_silent = refusal.say.is_empty() || is_spoilt;
        if is_spoilt {
            self.service.counters.guesses_reset.add(1);
        } else if !is_silent {
            // What the client answers is for the agent.
            self.take(ctx);
        }
        if is_silent {
            self.reset_server(ctx);
            (self.reading, self.repeating) = (None, None);
            self.heard = ctx.now;
            self.phase = Phase::Reading;
            self.owned = self.request.end();
            self.reset_client(ctx);
            return Ends;
        }
        self.say_last(ctx, refusal.say)
    }

    /// Ends the connection towards both sides.
    pub fn end(&mut self, ctx: &mut Context<'_>) -> Fate {
        self.say_last(ctx, Vec::new())
    }

    /// Says the last words, and hears the client out.
    fn say_last(&mut self, ctx: &mut Context<'_>, words: Vec<u8>) -> Fate {
        self.reset_server(ctx);
        (self.reading, self.repeating) = (None, None);
        self.heard = ctx.now;
        self.phase = Phase::Refusing(ctx.now + FAREWELL);
        self.say(ctx, words, true);
        Stays
    }

    /// Hears out a client that was refused: what it still sends is acknowledged, not kept.
    pub fn say_farewell(&mut self, ctx: &mut Context<'_>, segment: &Segment<'_>) -> Fate {
        let is_next = !self.owned.is_before(segment.seq());
        if is_next && self.owned.is_before(segment.end()) {
            self.owned = segment.end();
        }
        let is_over = self.speech.is_none() && self.fin.is_some_and(|fin| fin.is_before(self.owned));
        if !segment.payload().is_empty() || segment.end() != segment.seq() {
            self.acknowledge(ctx);
        }
        if is_over { Ends } else { Stays }
    }
}
