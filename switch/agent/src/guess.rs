//! Guessed connections (Chow, Wang & Prakash, section 3: pre-allocation). The data plane has opened a known client's connection to
//! the server of its last one, end to end. What the client says goes to an agent, behind what the handshake has said.
//!
//! ```text
//!                 the rules name a group that
//!     guessed --- has the server ------------------> spliced, with no delta; the request is handed on
//!        |    \-- has it not -----> reset, and as any connection: a SYN to the group
//!        | the agent is to acknowledge, or to say something
//!     taken: both sides' packets go to the agent ---> the same
//! ```
//!
//! As long as an agent has not taken a connection any other can go on with it. The agent's numbers are the server's own.

use crate::connection::Fate::{Ends, Stays};
use crate::connection::{Connection, Context, Fate, Phase};
use crate::decider::{Route, Sticky};
use crate::facts::{Facts, SMALLEST};
use crate::order::{ORDERS, Order, REPEAT, Status};
use crate::seq::Seq;
use crate::serving::{Answer, Serving};
use crate::wire::Segment;
use crate::wire::flags::ACK;

/// What a server takes that has not told its window: as much as clients may send at first (RFC 3390).
const WINDOW: u32 = 4096;
/// Numbers further off are not the connection's.
const NEAR: usize = 1 << 16;

/// A guess, and what has become of it.
#[derive(Debug)]
pub struct Guess {
    facts: Facts,
    /// The next number of the server's.
    next: Seq,
    /// The largest segment that the client has sent: the server takes that much.
    largest: u16,
    turn: Turn,
}

/// Who has the connection.
#[derive(Debug, PartialEq, Eq)]
enum Turn {
    /// The data plane: the server's packets go straight to the client.
    Direct,
    /// The agent has asked for it.
    Asked { due: u64, sent: u32 },
    /// The agent.
    Taken,
    /// The agent has left the server.
    Left,
}

impl Guess {
    /// A guess of which the first segment has come, with this acknowledgement number.
    pub fn new(facts: Facts, next: Seq) -> Guess {
        Guess { facts, next, largest: SMALLEST, turn: Turn::Direct }
    }

    /// When to ask again for the turn.
    pub fn due(&self) -> Option<u64> {
        if let Turn::Asked { due, .. } = self.turn { Some(due) } else { None }
    }

    /// The server has been reset.
    pub fn leave(&mut self) {
        self.turn = Turn::Left;
    }
}

impl Connection {
    /// Whether the facts are of this connection, and not of a later one of the same client's port.
    pub fn is_guessed(&self, facts: &Facts) -> bool {
        self.guess.as_ref().is_some_and(|guess| guess.facts.isn == facts.isn)
    }

    /// Takes a segment of the client, with what the data plane knows by now.
    pub fn on_guessed(&mut self, ctx: &mut Context<'_>, facts: &Facts, segment: &Segment<'_>) -> Fate {
        if let Some(guess) = &mut self.guess {
            guess.facts.has_spoken |= facts.has_spoken;
        }
        self.on_client(ctx, segment)
    }

    /// The group by whose address the guessed server is reached (any of the service's is), until it is left.
    pub fn guessed_group(&self) -> Option<usize> {
        let guess = self.guess.as_ref().filter(|guess| guess.turn != Turn::Left)?;
        Some(self.service.groups.iter().position(|group| group.servers.contains(&guess.facts.server)).unwrap_or(0))
    }

    /// Whether the guessed server has said something that the client may have.
    pub fn is_guess_spoilt(&self) -> bool {
        self.guess.as_ref().is_some_and(|guess| guess.turn != Turn::Left && guess.facts.has_spoken)
    }

    /// Looks whether the client has heard something of the guessed server. True when it has, and the agent has left that one.
    pub fn has_heard_guessed(&mut self, segment: &Segment<'_>) -> bool {
        let is_near = !segment.seq().is_before(self.acknowledged()) && segment.seq().since(self.acknowledged()) < NEAR;
        let Some(guess) = &mut self.guess else { return false };
        guess.largest = guess.largest.max(segment.payload().len() as u16);
        let ack = segment.ack();
        let new = ack.since(self.toward_client);
        // Else the agent has said something, or passed it on.
        let is_the_servers = guess.next == self.toward_client && guess.turn != Turn::Taken;
        if !is_the_servers || !is_near || !segment.has(ACK) || new == 0 || new >= NEAR {
            return false;
        }
        (guess.next, self.toward_client, guess.facts.has_spoken) = (ack, ack, true);
        guess.turn == Turn::Left
    }

    /// Ends a connection whose client has heard the wrong server.
    pub fn give_guess_up(&mut self, ctx: &mut Context<'_>) -> Fate {
        self.service.counters.guesses_reset.add(1);
        self.reset_server(ctx);
        self.reset_client(ctx);
        Ends
    }

    /// Takes the connection from the guessed server, whose packets come to the agent from then on.
    pub fn take(&mut self, ctx: &mut Context<'_>) {
        if self.guess.as_ref().is_some_and(|guess| guess.turn == Turn::Direct) {
            self.ask_for_turn(ctx, 1);
        }
    }

    fn ask_for_turn(&mut self, ctx: &mut Context<'_>, sent: u32) {
        let Some(guess) = &mut self.guess else { return };
        guess.turn = Turn::Asked { due: ctx.now + (REPEAT << (sent - 1)), sent };
        let order = Order::take(self.client, self.service.address, guess.facts.isn);
        ctx.out.push_with(|frame| order.write(&ctx.link, frame));
    }

    /// Asks again, or gives up.
    pub fn take_again(&mut self, ctx: &mut Context<'_>) -> Fate {
        let Some(guess) = &self.guess else { return Stays };
        let Turn::Asked { due, sent } = guess.turn else { return Stays };
        if ctx.now < due {
            return Stays;
        }
        self.service.counters.orders_repeated.add(1);
        if sent == ORDERS {
            return self.lose_guess(ctx);
        }
        self.ask_for_turn(ctx, sent + 1);
        Stays
    }

    /// Takes the data plane's confirmation that the agent has the connection.
    pub fn on_taken(&mut self, ctx: &mut Context<'_>, status: Status) -> Fate {
        let Some(guess) = &mut self.guess else { return Stays };
        if !matches!(guess.turn, Turn::Asked { .. }) {
            return Stays;
        }
        match status {
            Status::Order => Stays,
            Status::Applied => {
                guess.turn = Turn::Taken;
                Stays
            }
            Status::NoConnection | Status::Foreign => self.lose_guess(ctx),
        }
    }

    /// Ends a connection that has ended, or that another agent has.
    fn lose_guess(&mut self, ctx: &mut Context<'_>) -> Fate {
        self.service.counters.orders_failed.add(1);
        if self.request.base().is_before(self.owned) {
            self.service.counters.lost.add(1);
            self.reset_client(ctx);
        }
        Ends
    }

    /// Keeps the guessed server, or leaves it, now that the rules have decided.
    pub fn follow_guess(&mut self, ctx: &mut Context<'_>, route: Route) -> Fate {
        let Some(guess) = self.guess.as_ref().filter(|guess| guess.turn != Turn::Left) else {
            return self.open(ctx, route);
        };
        let has_spoken = guess.facts.has_spoken;
        if !self.service.groups[route.group].servers.contains(&guess.facts.server) {
            self.service.counters.guesses_wrong.add(1);
            return if has_spoken { self.give_guess_up(ctx) } else { self.open(ctx, route) };
        }
        self.service.counters.guesses_right.add(1);
        if is_for_one_request(&route) {
            if has_spoken {
                // Where its response ends, and the next request is for the rules, nobody can say.
                return self.give_guess_up(ctx);
            }
            self.take(ctx);
        }
        self.keep_guess(ctx, route)
    }

    /// Goes on with the guessed server, as if it had just been opened.
    fn keep_guess(&mut self, ctx: &mut Context<'_>, route: Route) -> Fate {
        let Route { group, sticky, framing, .. } = route;
        let Some(guess) = &self.guess else { return Stays };
        let answer = Answer {
            first: guess.next,
            scale: guess.facts.server_scale,
            // What the client sent was as large as the server had allowed.
            mss: Some(guess.largest),
            // Of what the client sends unasked the server has allowed all.
            window: (self.owned != self.request.base()).then_some(WINDOW),
        };
        let serving = Serving::new(self, (group, sticky, framing), &answer);
        self.phase = Phase::Serving(Box::new(serving));
        self.begin_to_serve(ctx)
    }
}

fn is_for_one_request(route: &Route) -> bool {
    route.sticky == Sticky::None && route.framing.is_some()
}
