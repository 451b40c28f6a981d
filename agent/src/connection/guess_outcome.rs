//! Decides whether a connection uses its guessed server or leaves it, once the rules have selected a group.

use super::client::Client;
use super::context::Context;
use super::next::Next;
use super::server::{Server, SynAck};
use super::server_reset::ServerReset;
use crate::policy::Assignment;

/// The assumed window, in bytes, of a server that has not announced a window to the agent. A server's window usually is
/// at least the 4,380 bytes that a client with an MSS of 1,460 bytes may send before the first ACK (RFC 3390).
const INITIAL_WINDOW: u32 = 4096;

/// Resets client and server of a guessed connection, because the client may have received data of the guessed server
/// and no other server can continue.
pub fn give_up(client: &mut Client, ctx: &mut Context<'_>, server: Option<ServerReset>) {
    client.terms.service.counters.guesses_reset.add(1);
    client.leave(ctx, server);
    client.reset(ctx);
}

/// Continues with the guessed server if it is in the group that the rules select; otherwise resets it and connects to
/// the group. Resets client and server if the server has already sent data, and either it is not in the group or the
/// agent would have to parse its response.
pub fn apply_assignment<S>(client: &mut Client, ctx: &mut Context<'_>, assignment: Assignment) -> Next<S> {
    let Some(guess) = client.guess.as_ref().filter(|guess| !guess.is_released()) else {
        return Next::Connect { assignment, has_former_server: true };
    };
    let (facts, server) = (guess.facts, client.guessed_server());
    let counters = &client.terms.service.counters;
    if !client.terms.service.groups[assignment.group].servers.contains(&facts.server) {
        counters.guesses_wrong.add(1);
        if facts.server_has_sent {
            give_up(client, ctx, server);
            return Next::Over;
        }
        client.leave(ctx, server);
        return Next::Connect { assignment, has_former_server: true };
    }
    counters.guesses_right.add(1);
    if assignment.framing.is_some() {
        if facts.server_has_sent {
            // The agent has not received the start of the response, so it could not find the end of the response, after
            // which the rules decide about the next request.
            give_up(client, ctx, server);
            return Next::Over;
        }
        client.take_connection(ctx);
    }
    keep_server(client, assignment)
}

/// Continues the connection with the guessed server as if it had just accepted the connection.
fn keep_server<S>(client: &Client, assignment: Assignment) -> Next<S> {
    let Some(guess) = &client.guess else { return Next::Over };
    let syn_ack = SynAck {
        first: guess.next,
        scale: guess.facts.server_scale,
        // The client has learned the server's MSS in the handshake, so the server accepts segments of the size that the
        // client sent.
        mss: Some(guess.largest),
        // None (no limit) if the agent has acknowledged no byte: then all bytes of the client are within the window
        // that the server announced to the client.
        window: (client.owned != client.request.base()).then_some(INITIAL_WINDOW),
    };
    let server = Server::new(client, assignment.group, &syn_ack);
    Next::Serve(server, assignment.sticky, assignment.framing)
}
