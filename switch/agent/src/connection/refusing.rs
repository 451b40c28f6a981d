//! Ends a connection: sends the client an error, and acknowledges its further bytes.

use super::client::Client;
use super::context::Context;
use super::end::End;
use super::next::Next;
use crate::decider::{Reason, Refusal};
use crate::wire::Segment;

/// Nanoseconds for which the agent still acknowledges bytes of a rejected client.
const FAREWELL: u64 = 5_000_000_000;

/// A rejected client, whose further bytes are acknowledged.
pub struct Refusing {
    /// The time at which the agent forgets the client.
    pub until: u64,
}

/// Builds the rejection for a reason of the agent.
pub fn apology(client: &Client, reason: Reason) -> Refusal {
    Refusal { why: reason.name(), rule: None, say: client.terms.service.rules.apology(reason, client.request.ready()) }
}

/// Sends the client an error and a FIN; resets the server, if there is one. Returns none when the client was reset
/// instead.
pub fn refuse(client: &mut Client, ctx: &mut Context<'_>, server: Option<End>, refusal: Refusal) -> Option<Refusing> {
    let service = &client.terms.service;
    service.counters.refuse(refusal.why);
    if let Some(rule) = refusal.rule {
        service.hits[rule as usize].add(1);
    }
    let is_spoilt = client.is_guess_spoilt();
    if is_spoilt {
        service.counters.guesses_reset.add(1);
    }
    if is_spoilt || refusal.say.is_empty() {
        client.leave(ctx, server);
        client.owned = client.request.end();
        client.reset(ctx);
        return None;
    }
    // The client's answer has to reach the agent.
    client.take_turn(ctx);
    Some(say_last(client, ctx, server, refusal.say))
}

/// Closes the connection toward both sides.
pub fn end(client: &mut Client, ctx: &mut Context<'_>, server: Option<End>) -> Refusing {
    say_last(client, ctx, server, Vec::new())
}

fn say_last(client: &mut Client, ctx: &mut Context<'_>, server: Option<End>, words: Vec<u8>) -> Refusing {
    client.leave(ctx, server);
    client.last_segment = ctx.now;
    client.say(ctx, words, true);
    Refusing { until: ctx.now + FAREWELL }
}

impl Refusing {
    /// Processes an acceptable segment: acknowledges the client's further bytes.
    pub fn on_client(self, client: &mut Client, ctx: &mut Context<'_>, segment: &Segment<'_>) -> Next<Refusing> {
        let is_next = !client.owned.is_before(segment.seq());
        if is_next && client.owned.is_before(segment.end()) {
            client.owned = segment.end();
        }
        let is_over = client.speech.is_none() && client.fin.is_some_and(|fin| fin.is_before(client.owned));
        if segment.end() != segment.seq() {
            client.acknowledge(ctx);
        }
        if is_over { Next::Over } else { Next::Stay(self) }
    }
}
