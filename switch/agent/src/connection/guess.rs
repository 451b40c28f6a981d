//! Guessed connections (Chow, Wang & Prakash, section 3: pre-allocation). The data plane has opened a known client's connection to
//! the server of its last one, end to end. What the client sends goes to an agent, behind the handshake's facts.
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

use super::client::Client;
use super::context::Context;
use super::end::End;
use crate::facts::{Facts, SMALLEST};
use crate::order::{ORDERS, Order, REPEAT, Status};
use crate::seq::Seq;
use crate::wire::Segment;

/// Numbers further off are not the connection's.
const NEAR: u32 = 1 << 16;

/// A guess, and what has become of it.
#[derive(Debug)]
pub struct Guess {
    pub facts: Facts,
    /// The next number of the server's.
    pub next: Seq,
    /// The largest segment that the client has sent: the server takes that much.
    pub largest: u16,
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

    /// Whether the data plane has the connection, and no agent a part in it.
    pub fn is_direct(&self) -> bool {
        self.turn == Turn::Direct
    }

    /// Whether the agent has left the guessed server.
    pub fn is_left(&self) -> bool {
        self.turn == Turn::Left
    }

    /// The server has been reset.
    pub fn leave(&mut self) {
        self.turn = Turn::Left;
    }

    /// How much the server may have sent the client behind `next` without the agent's knowledge. Nothing when the agent has the
    /// connection, or has sent or passed on something itself.
    pub fn unseen(&self, next: Seq) -> u32 {
        if self.next == next && self.turn != Turn::Taken { NEAR - 1 } else { 0 }
    }

    /// Whether the facts are of this connection, and not of a later one of the same client's port.
    pub fn is_of(&self, facts: &Facts) -> bool {
        self.facts.isn == facts.isn
    }

    /// Takes what the data plane knows by now.
    pub fn update(&mut self, facts: &Facts) {
        self.facts.has_spoken |= facts.has_spoken;
    }
}

impl Client {
    /// Looks what an acceptable segment says of the guessed server. True when the client has got data of one that the agent has left.
    pub fn follow_guess(&mut self, segment: &Segment<'_>) -> bool {
        let Some(guess) = &mut self.guess else { return false };
        guess.largest = guess.largest.max(segment.payload().len() as u16);
        if guess.unseen(self.next) == 0 || !self.next.is_before(segment.ack()) {
            return false;
        }
        (guess.next, self.next, guess.facts.has_spoken) = (segment.ack(), segment.ack(), true);
        guess.is_left()
    }

    /// The guessed server, until it is left; any group of the service reaches it.
    pub fn guessed_server(&self) -> Option<End> {
        let guess = self.guess.as_ref().filter(|guess| !guess.is_left())?;
        let groups = &self.terms.service.groups;
        let group = groups.iter().position(|group| group.servers.contains(&guess.facts.server)).unwrap_or(0);
        Some(End { group, seq: self.request.base() })
    }

    /// Whether the guessed server has sent something that the client may have.
    pub fn is_guess_spoilt(&self) -> bool {
        self.guess.as_ref().is_some_and(|guess| !guess.is_left() && guess.facts.has_spoken)
    }

    /// Takes the connection from the guessed server, whose packets come to the agent from then on.
    pub fn take_turn(&mut self, ctx: &mut Context<'_>) {
        if self.guess.as_ref().is_some_and(|guess| guess.is_direct()) {
            self.ask_for_turn(ctx, 1);
        }
    }

    fn ask_for_turn(&mut self, ctx: &mut Context<'_>, sent: u32) {
        let Some(guess) = &mut self.guess else { return };
        guess.turn = Turn::Asked { due: ctx.now + (REPEAT << (sent - 1)), sent };
        let order = Order::take(self.terms.client, self.terms.service.address, guess.facts.isn);
        ctx.out.push_with(|frame| order.write(&ctx.link, frame));
    }

    /// Asks again for the turn when it is time. False when the connection is lost.
    #[must_use]
    pub fn take_turn_again(&mut self, ctx: &mut Context<'_>) -> bool {
        let Some(guess) = &self.guess else { return true };
        let Turn::Asked { due, sent } = guess.turn else { return true };
        if ctx.now < due {
            return true;
        }
        self.terms.service.counters.orders_repeated.add(1);
        if sent == ORDERS {
            self.lose_guess(ctx);
            return false;
        }
        self.ask_for_turn(ctx, sent + 1);
        true
    }

    /// Takes the data plane's confirmation that the agent has the connection. False when it has not.
    #[must_use]
    pub fn on_turn(&mut self, ctx: &mut Context<'_>, status: Status) -> bool {
        let Some(guess) = &mut self.guess else { return true };
        match (&guess.turn, status) {
            (Turn::Asked { .. }, Status::Applied) => guess.turn = Turn::Taken,
            (Turn::Asked { .. }, Status::NoConnection | Status::Foreign) => {
                self.lose_guess(ctx);
                return false;
            }
            _ => {}
        }
        true
    }

    /// Ends a connection that has ended, or that another agent has.
    fn lose_guess(&mut self, ctx: &mut Context<'_>) {
        self.terms.service.counters.orders_failed.add(1);
        if self.request.base().is_before(self.owned) {
            self.terms.service.counters.lost.add(1);
            self.reset(ctx);
        }
    }
}
