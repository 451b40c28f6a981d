//! The agent ends a connection: says why, and hears the client out.

use super::client::Client;
use super::server::End;
use super::{Context, State};
use crate::decider::{Reason, Refusal};
use crate::wire::Segment;

/// How long a client that was refused is listened to.
const FAREWELL: u64 = 5_000_000_000;

/// A client that was refused is listened to.
pub struct Refusing {
    /// Until this time.
    pub until: u64,
}

/// A refusal for a reason of the agent's own.
pub fn apology(client: &Client, reason: Reason) -> Refusal {
    Refusal { why: reason.name(), rule: None, say: client.terms.service.rules.apology(reason, client.request.ready()) }
}

/// Says why not, and ends the connection; its server, if it has one, is left.
pub fn refuse(client: &mut Client, ctx: &mut Context<'_>, server: Option<End>, refusal: Refusal) -> State {
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
        return State::Over;
    }
    // What the client answers is for the agent.
    client.take_turn(ctx);
    say_last(client, ctx, server, refusal.say)
}

/// Ends the connection towards both sides.
pub fn end(client: &mut Client, ctx: &mut Context<'_>, server: Option<End>) -> State {
    say_last(client, ctx, server, Vec::new())
}

fn say_last(client: &mut Client, ctx: &mut Context<'_>, server: Option<End>, words: Vec<u8>) -> State {
    client.leave(ctx, server);
    client.last_segment = ctx.now;
    client.say(ctx, words, true);
    State::Refusing(Refusing { until: ctx.now + FAREWELL })
}

impl Refusing {
    /// Takes an acceptable segment: what the client still sends is acknowledged.
    pub fn on_client(self, client: &mut Client, ctx: &mut Context<'_>, segment: &Segment<'_>) -> State {
        let is_next = !client.owned.is_before(segment.seq());
        if is_next && client.owned.is_before(segment.end()) {
            client.owned = segment.end();
        }
        let is_over = client.speech.is_none() && client.fin.is_some_and(|fin| fin.is_before(client.owned));
        if segment.end() != segment.seq() {
            client.acknowledge(ctx);
        }
        if is_over { State::Over } else { State::Refusing(self) }
    }
}
