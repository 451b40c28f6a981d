//! Reads a client's request until the rules can decide.

use std::time::Duration;

use super::client::{Client, ClientUpdate};
use super::context::Context;
use super::next::Next;
use super::{guess_outcome, refusing};
use crate::policy::{Assignment, DialogueReplay, Disposition, Reason, Rejection, RequestReader};
use crate::wire::Segment;

/// The number of unacknowledged bytes of a request from which the agent sends an ACK at once. A client with an MSS of
/// 1,024 bytes or more may send as many before it needs an ACK (RFC 3390).
const UNACKNOWLEDGED: usize = 4096;
/// Nanoseconds for which the agent may leave bytes of a request unacknowledged. The complete request usually arrives in
/// this time, and then no ACK of the agent is needed.
const ACK_DELAY_NS: u64 = 10_000_000;
/// Nanoseconds for which the agent may leave bytes unacknowledged once it has acknowledged a part of the request. Then
/// waiting saves nothing, and a client may delay its last bytes until all earlier bytes are acknowledged (Nagle, RFC
/// 896). An otherwise idle agent sleeps for a whole number of milliseconds, so it waits a full millisecond.
const OWNED_ACK_DELAY_NS: u64 = 500_000;

/// The state of a connection whose request is being read.
pub struct Reading {
    reader: Box<dyn RequestReader>,
    /// The time from which the timeout of the request counts. For the first request this is the start of the
    /// connection, for a later one the arrival of its first byte, and in a mail dialogue the agent's last answer. None
    /// before the first byte of a later request.
    pub since: Option<u64>,
    /// The start of the connection (first request), or the arrival time of the request's first byte (later requests).
    /// Before that byte, the time at which the client had the complete previous response.
    pub started: u64,
    /// The time at which the agent acknowledges the bytes received so far.
    acknowledge_at: Option<u64>,
}

/// What the rules decide by the bytes received so far.
pub enum ReadOutcome {
    /// The rules need more bytes to decide.
    More,
    /// The rules assign the request to a group.
    Assignment(Assignment),
    /// The rules refuse the request.
    Refuse(Rejection),
}

impl Reading {
    /// Creates the state for a connection's first request. Its timeout counts from `now`.
    pub fn new(client: &Client, now: u64) -> Reading {
        Reading { since: Some(now), ..Reading::idle(client, now) }
    }

    /// Creates the state for a later request. Its timeout does not count before its first byte.
    pub fn idle(client: &Client, now: u64) -> Reading {
        let terms = &client.terms;
        let reader = terms.service.rules.begin(terms.client, terms.service.address);
        Reading { reader, since: None, started: now, acknowledge_at: None }
    }

    /// Returns the time at which the request times out.
    fn timeout_at(&self, wait: Duration) -> Option<u64> {
        self.since.map(|since| since.saturating_add(u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX)))
    }

    /// Returns whether no byte of the request has arrived.
    pub fn is_idle(&self) -> bool {
        self.since.is_none()
    }

    /// Returns the bytes of memory in use.
    pub fn memory(&self) -> usize {
        self.reader.memory()
    }

    /// Returns the time of the next timer, if there is one.
    pub fn due(&self, client: &Client) -> Option<u64> {
        [self.timeout_at(client.terms.service.rules.wait()), self.acknowledge_at].into_iter().flatten().min()
    }

    /// Runs expired timers. Returns a rejection if the request has timed out.
    pub fn on_time(&mut self, client: &mut Client, ctx: &mut Context<'_>) -> Option<Rejection> {
        if self.timeout_at(client.terms.service.rules.wait()).is_some_and(|end| end <= ctx.now) {
            return Some(refusing::rejection(client, Reason::Timeout));
        }
        if self.acknowledge_at.is_some_and(|due| due <= ctx.now) {
            self.acknowledge_received(client, ctx);
        }
        None
    }

    fn acknowledge_received(&mut self, client: &mut Client, ctx: &mut Context<'_>) {
        client.acknowledge_received(ctx);
        self.acknowledge_at = None;
    }

    /// Processes a client's segment: reads new bytes, or acknowledges repeated bytes and bytes beyond a gap.
    pub fn read_or_acknowledge(
        &mut self,
        client: &mut Client,
        ctx: &mut Context<'_>,
        segment: &Segment<'_>,
        update: &ClientUpdate,
    ) -> ReadOutcome {
        if update.has_new_data {
            return self.read(client, ctx);
        }
        // Repeated bytes and bytes beyond a gap are acknowledged at once (RFC 5681, section 4.2).
        if !segment.payload().is_empty() || segment.seq().is_before(client.acknowledged()) {
            self.acknowledge_received(client, ctx);
        }
        ReadOutcome::More
    }

    /// Evaluates the rules on the bytes received so far.
    pub fn read(&mut self, client: &mut Client, ctx: &mut Context<'_>) -> ReadOutcome {
        if self.since.is_none() {
            (self.since, self.started) = (Some(ctx.now), ctx.now);
        }
        match self.reader.read(client.request.ready()) {
            Disposition::NeedMore { reply } if client.is_finished() => reject(client, reply, Reason::CutShort),
            Disposition::NeedMore { reply } if client.request.room() == 0 => reject(client, reply, Reason::TooLarge),
            Disposition::NeedMore { reply } => {
                self.wait(client, ctx, reply);
                ReadOutcome::More
            }
            Disposition::Assignment(mut assignment) => {
                if let Some(dialogue_replay) = &mut assignment.dialogue_replay {
                    substitute_lines(client, ctx, dialogue_replay);
                }
                let service = &client.terms.service;
                match assignment.rule {
                    Some(rule) => service.hits[rule as usize].add(1),
                    None => service.counters.by_default.add(1),
                }
                ReadOutcome::Assignment(assignment)
            }
            Disposition::Refuse(rejection) => ReadOutcome::Refuse(rejection),
        }
    }

    /// Sends the rules' reply to the client. Without a reply, acknowledges the request's bytes at once if there is a
    /// gap or `UNACKNOWLEDGED` is reached, and otherwise sets the timer of the ACK.
    fn wait(&mut self, client: &mut Client, ctx: &mut Context<'_>, reply: Vec<u8>) {
        if !reply.is_empty() {
            if client.terms.service.rules.greets() {
                // Each command of a mail dialogue has its own timeout.
                self.since = Some(ctx.now);
            }
            client.send_own(ctx, reply, false);
            self.acknowledge_at = None;
        } else if client.request.end().since(client.owned) >= UNACKNOWLEDGED || client.request.ranges().next().is_some()
        {
            self.acknowledge_received(client, ctx);
        } else if client.request.end() != client.owned {
            let is_owner = client.request.base().is_before(client.owned);
            let delay = if is_owner { OWNED_ACK_DELAY_NS } else { ACK_DELAY_NS };
            self.acknowledge_at.get_or_insert(ctx.now + delay);
        }
    }

    /// Processes an acceptable segment of a client that has no server yet.
    pub fn on_client(
        mut self,
        client: &mut Client,
        ctx: &mut Context<'_>,
        segment: &Segment<'_>,
        update: &ClientUpdate,
    ) -> Next<Reading> {
        let outcome = self.read_or_acknowledge(client, ctx, segment, update);
        self.apply(client, ctx, outcome)
    }

    /// Applies the rules' decision about a client that has no server yet.
    pub fn apply(self, client: &mut Client, ctx: &mut Context<'_>, outcome: ReadOutcome) -> Next<Reading> {
        match outcome {
            ReadOutcome::More => Next::Stay(self),
            ReadOutcome::Refuse(rejection) => Next::Refuse(client.guessed_server(), rejection),
            ReadOutcome::Assignment(assignment) if client.guess.is_some() => {
                guess_outcome::apply_assignment(client, ctx, assignment)
            }
            ReadOutcome::Assignment(assignment) => Next::Connect { assignment, has_former_server: false },
        }
    }
}

/// Returns the outcome that rejects the client for a reason of the agent itself. `reply` is sent before the error.
fn reject(client: &Client, mut reply: Vec<u8>, reason: Reason) -> ReadOutcome {
    let mut rejection = refusing::rejection(client, reason);
    reply.append(&mut rejection.reply);
    ReadOutcome::Refuse(Rejection { reply, ..rejection })
}

/// Sends the client the rules' reply, or an ACK. Then replaces the bytes that the agent has answered, in the buffer of
/// the client's bytes, by the lines that it replays to the server.
fn substitute_lines(client: &mut Client, ctx: &mut Context<'_>, dialogue_replay: &mut DialogueReplay) {
    let answered = client.request.base() + dialogue_replay.answered as u32;
    let reply = std::mem::take(&mut dialogue_replay.reply);
    if !reply.is_empty() {
        client.send_own(ctx, reply, false);
    } else if client.owned.is_before(answered) {
        client.acknowledge_received(ctx);
    }
    client.request.replace_before(answered, &dialogue_replay.lines);
}
