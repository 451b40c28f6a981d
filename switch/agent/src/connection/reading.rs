//! Reads a request until the rules decide.

use std::time::Duration;

use super::client::{Client, News};
use super::context::Context;
use super::next::Next;
use super::{guess_outcome, refusing};
use crate::decider::{Decision, Reader, Reason, Refusal, Repetition, Route};
use crate::wire::Segment;

/// Bytes that may stay unacknowledged: clients may send at least as many at first (RFC 3390).
const UNACKNOWLEDGED: usize = 4096;
/// Nanoseconds for which they may stay unacknowledged. Mostly the whole request arrives within, and needs no ACK of
/// the agent.
const PATIENCE: u64 = 10_000_000;
/// The same once the agent has acknowledged a part of the request. Then waiting saves nothing, and a client may hold
/// back its last bytes until all others are acknowledged (Nagle, RFC 896). An otherwise idle agent waits a full
/// millisecond.
const OWNERS_PATIENCE: u64 = 500_000;

/// A request that is being read.
pub struct Reading {
    reader: Box<dyn Reader>,
    /// The arrival time of its first byte.
    pub since: Option<u64>,
    /// The arrival time of the first byte; before it, the time at which the previous request was answered.
    pub begun: u64,
    /// The time at which to acknowledge the bytes so far.
    acknowledge_at: Option<u64>,
}

/// The rules' decision by the bytes so far.
pub enum Outcome {
    /// None yet.
    More,
    /// The request gets a group.
    Route(Route),
    /// The client is refused.
    Refuse(Refusal),
}

impl Reading {
    /// Begins when the first byte arrives.
    pub fn new(client: &Client, now: u64) -> Reading {
        Reading { since: Some(now), ..Reading::idle(client, now) }
    }

    /// Begins before the first byte.
    pub fn idle(client: &Client, now: u64) -> Reading {
        let terms = &client.terms;
        let reader = terms.service.rules.begin(terms.client, terms.service.address);
        Reading { reader, since: None, begun: now, acknowledge_at: None }
    }

    /// The time at which the request times out.
    fn ends(&self, wait: Duration) -> Option<u64> {
        self.since.map(|since| since.saturating_add(u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX)))
    }

    /// Whether no byte has arrived.
    pub fn is_idle(&self) -> bool {
        self.since.is_none()
    }

    /// Returns the bytes of memory in use.
    pub fn memory(&self) -> usize {
        self.reader.memory()
    }

    /// The time of the next timer.
    pub fn due(&self, client: &Client) -> Option<u64> {
        [self.ends(client.terms.service.rules.wait()), self.acknowledge_at].into_iter().flatten().min()
    }

    /// Runs expired timers. Returns a rejection when the request has timed out.
    pub fn on_time(&mut self, client: &mut Client, ctx: &mut Context<'_>) -> Option<Refusal> {
        if self.ends(client.terms.service.rules.wait()).is_some_and(|end| end <= ctx.now) {
            return Some(refusing::apology(client, Reason::Timeout));
        }
        if self.acknowledge_at.is_some_and(|due| due <= ctx.now) {
            self.own(client, ctx);
        }
        None
    }

    fn own(&mut self, client: &mut Client, ctx: &mut Context<'_>) {
        client.own(ctx);
        self.acknowledge_at = None;
    }

    /// Processes a client's segment: reads new bytes, or acknowledges repeated ones.
    pub fn read_or_acknowledge(
        &mut self,
        client: &mut Client,
        ctx: &mut Context<'_>,
        segment: &Segment<'_>,
        news: &News,
    ) -> Outcome {
        if news.has_come {
            return self.read(client, ctx);
        }
        // Repeated bytes, or bytes beyond a gap: acknowledge at once (RFC 5681, section 4.2).
        if !segment.payload().is_empty() || segment.seq().is_before(client.acknowledged()) {
            self.own(client, ctx);
        }
        Outcome::More
    }

    /// Evaluates the rules on the bytes so far.
    pub fn read(&mut self, client: &mut Client, ctx: &mut Context<'_>) -> Outcome {
        if self.since.is_none() {
            (self.since, self.begun) = (Some(ctx.now), ctx.now);
        }
        match self.reader.read(client.request.ready()) {
            Decision::NeedMore { say } if client.is_finished() => closed(client, say, Reason::CutShort),
            Decision::NeedMore { say } if client.request.room() == 0 => closed(client, say, Reason::TooLarge),
            Decision::NeedMore { say } => {
                self.wait(client, ctx, say);
                Outcome::More
            }
            Decision::Route(mut route) => {
                if let Some(repetition) = &mut route.repetition {
                    prepare(client, ctx, repetition);
                }
                let service = &client.terms.service;
                match route.rule {
                    Some(rule) => service.hits[rule as usize].add(1),
                    None => service.counters.by_default.add(1),
                }
                Outcome::Route(route)
            }
            Decision::Refuse(refusal) => Outcome::Refuse(refusal),
        }
    }

    /// Sends the rules' reply, or acknowledges when that is due, and waits for more bytes.
    fn wait(&mut self, client: &mut Client, ctx: &mut Context<'_>, say: Vec<u8>) {
        if !say.is_empty() {
            if client.terms.service.rules.greets() {
                // Restart the timeout for the next command.
                self.since = Some(ctx.now);
            }
            client.say(ctx, say, false);
            self.acknowledge_at = None;
        } else if client.request.end().since(client.owned) >= UNACKNOWLEDGED
            || client.request.islands().next().is_some()
        {
            self.own(client, ctx);
        } else if client.request.end() != client.owned {
            let is_owner = client.request.base().is_before(client.owned);
            let patience = if is_owner { OWNERS_PATIENCE } else { PATIENCE };
            self.acknowledge_at.get_or_insert(ctx.now + patience);
        }
    }

    /// Processes an acceptable segment of a client that has no server yet.
    pub fn on_client(
        mut self,
        client: &mut Client,
        ctx: &mut Context<'_>,
        segment: &Segment<'_>,
        news: &News,
    ) -> Next<Reading> {
        let outcome = self.read_or_acknowledge(client, ctx, segment, news);
        self.follow(client, ctx, outcome)
    }

    /// Applies the rules' decision about a client that has no server yet.
    pub fn follow(self, client: &mut Client, ctx: &mut Context<'_>, outcome: Outcome) -> Next<Reading> {
        match outcome {
            Outcome::More => Next::Stay(self),
            Outcome::Refuse(refusal) => Next::Refuse(client.guessed_server(), refusal),
            Outcome::Route(route) if client.guess.is_some() => guess_outcome::follow(client, ctx, route),
            Outcome::Route(route) => Next::Ask { route, has_left: false },
        }
    }
}

/// Rejects the client for a reason of the agent, after sending `reply`.
fn closed(client: &Client, mut say: Vec<u8>, reason: Reason) -> Outcome {
    let mut refusal = refusing::apology(client, reason);
    say.append(&mut refusal.say);
    Outcome::Refuse(Refusal { say, ..refusal })
}

/// Replaces the client's answered bytes by the lines that the server is to get.
fn prepare(client: &mut Client, ctx: &mut Context<'_>, repetition: &mut Repetition) {
    let answered = client.request.base() + repetition.answered as u32;
    let say = std::mem::take(&mut repetition.say);
    if !say.is_empty() {
        client.say(ctx, say, false);
    } else if client.owned.is_before(answered) {
        client.own(ctx);
    }
    client.request.replace_before(answered, &repetition.lines);
}
