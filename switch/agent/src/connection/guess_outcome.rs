//! Keeps or leaves a guessed server, once the rules have decided.

use super::client::Client;
use super::context::Context;
use super::end::End;
use super::next::Next;
use super::server::{Answer, Server};
use crate::decider::Route;

/// Window in bytes of a server that has not announced one to the agent: as much as clients may send at first (RFC
/// 3390).
const WINDOW: u32 = 4096;

/// Ends a connection whose client has received data of the wrong server.
pub fn give_up(client: &mut Client, ctx: &mut Context<'_>, server: Option<End>) {
    client.terms.service.counters.guesses_reset.add(1);
    client.leave(ctx, server);
    client.reset(ctx);
}

/// Keeps the guessed server if the rules select one of its groups; otherwise leaves it.
pub fn follow<S>(client: &mut Client, ctx: &mut Context<'_>, route: Route) -> Next<S> {
    let Some(guess) = client.guess.as_ref().filter(|guess| !guess.is_left()) else {
        return Next::Ask { route, has_left: true };
    };
    let (facts, server) = (guess.facts, client.guessed_server());
    let counters = &client.terms.service.counters;
    if !client.terms.service.groups[route.group].servers.contains(&facts.server) {
        counters.guesses_wrong.add(1);
        if facts.has_spoken {
            give_up(client, ctx, server);
            return Next::Over;
        }
        client.leave(ctx, server);
        return Next::Ask { route, has_left: true };
    }
    counters.guesses_right.add(1);
    if route.framing.is_some() {
        if facts.has_spoken {
            // The end of the server's response cannot be found, and with it the start of the next request.
            give_up(client, ctx, server);
            return Next::Over;
        }
        client.take_turn(ctx);
    }
    keep(client, route)
}

/// Continues with the guessed server as if it had just accepted the connection.
fn keep<S>(client: &Client, route: Route) -> Next<S> {
    let Some(guess) = &client.guess else { return Next::Over };
    let answer = Answer {
        first: guess.next,
        scale: guess.facts.server_scale,
        // The server has allowed segments of the size that the client sent.
        mss: Some(guess.largest),
        // The server's window has allowed all bytes that the client sent without the agent's ACKs.
        window: (client.owned != client.request.base()).then_some(WINDOW),
    };
    let server = Server::new(client, route.group, &answer);
    Next::Serve(server, route.sticky, route.framing)
}
