//! Ends a connection: sends the client an error, and acknowledges its further bytes.

use super::client::Client;
use super::context::Context;
use super::next::Next;
use super::server_reset::ServerReset;
use crate::policy::{Reason, Rejection};
use crate::wire::Segment;

/// Nanoseconds for which the agent acknowledges bytes of a client after rejecting it.
const LINGER_NS: u64 = 5_000_000_000;

/// The state of a connection whose client was sent an error or a FIN, and whose further bytes are acknowledged.
pub struct Refusing {
    /// The time at which the agent removes the connection.
    pub until: u64,
}

/// Builds the rejection for a reason that the agent itself determines, such as a timeout.
pub fn rejection(client: &Client, reason: Reason) -> Rejection {
    Rejection {
        why: reason.name(),
        rule: None,
        reply: client.terms.service.rules.error_reply(reason, client.request.ready()),
    }
}

/// Sends the client an error and a FIN, and resets the server, if there is one. If the rejection has no error text, or
/// the client may have received data of a guessed server, resets the client instead and returns `None`.
pub fn refuse(
    client: &mut Client,
    ctx: &mut Context<'_>,
    server: Option<ServerReset>,
    rejection: Rejection,
) -> Option<Refusing> {
    let service = &client.terms.service;
    service.counters.refuse(rejection.why);
    if let Some(rule) = rejection.rule {
        service.hits[rule as usize].add(1);
    }
    let guess_has_sent = client.guess_has_sent();
    if guess_has_sent {
        service.counters.guesses_reset.add(1);
    }
    if guess_has_sent || rejection.reply.is_empty() {
        client.leave(ctx, server);
        client.owned = client.request.end();
        client.reset(ctx);
        return None;
    }
    // The agent must receive the client's ACK of the error, so it takes a guessed connection from the data plane.
    client.take_connection(ctx);
    Some(send_last(client, ctx, server, rejection.reply))
}

/// Sends the client a FIN, and resets the server, if there is one.
pub fn end(client: &mut Client, ctx: &mut Context<'_>, server: Option<ServerReset>) -> Refusing {
    send_last(client, ctx, server, Vec::new())
}

fn send_last(client: &mut Client, ctx: &mut Context<'_>, server: Option<ServerReset>, reply: Vec<u8>) -> Refusing {
    client.leave(ctx, server);
    client.last_segment = ctx.now;
    client.send_own(ctx, reply, true);
    Refusing { until: ctx.now + LINGER_NS }
}

impl Refusing {
    /// Processes an acceptable segment: acknowledges the client's further bytes. The connection is over when the client
    /// has sent its FIN and acknowledged the agent's bytes.
    pub fn on_client(self, client: &mut Client, ctx: &mut Context<'_>, segment: &Segment<'_>) -> Next<Refusing> {
        let is_next = !client.owned.is_before(segment.seq());
        if is_next && client.owned.is_before(segment.end()) {
            client.owned = segment.end();
        }
        let is_over = client.own_bytes.is_none() && client.fin.is_some_and(|fin| fin.is_before(client.owned));
        if segment.end() != segment.seq() {
            client.acknowledge(ctx);
        }
        if is_over { Next::Over } else { Next::Stay(self) }
    }
}
