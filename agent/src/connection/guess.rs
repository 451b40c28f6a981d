//! Guessed connections (pre-allocation; Chow, Wang & Prakash, section 3). The data plane has connected a remembered
//! client end to end to the server of its previous connection. The client's segments go to an agent, with a header
//! that reports the options of the handshake.
//!
//! ```text
//!                 the rules select a group that
//!     direct ---- contains the server ---------------> spliced with delta 0; the request is forwarded
//!        |    \-- does not --> reset, then a SYN to the group, as for any connection
//!        | the agent has to acknowledge, or to send bytes of its own
//!     taken: both sides' packets go to the agent ---> the same two cases
//! ```
//!
//! Until an agent takes a connection, any other agent can continue it. The agent's numbers toward the client are the
//! server's own.

use super::client::Client;
use super::context::Context;
use super::server_reset::ServerReset;
use crate::facts::{Facts, MIN_MSS};
use crate::order::{ORDERS, Order, REPEAT, Status};
use crate::seq::Seq;
use crate::wire::Segment;

/// Sequence numbers farther apart than this belong to different connections.
const NEAR: u32 = 1 << 16;

/// The state of a guess.
#[derive(Debug)]
pub struct Guess {
    pub facts: Facts,
    /// The next number of the server.
    pub next: Seq,
    /// Payload of the largest segment that the client has sent, in bytes. The server accepts that much.
    pub largest: u16,
    ownership: Ownership,
}

/// Which side forwards a guessed connection.
#[derive(Debug, PartialEq, Eq)]
enum Ownership {
    /// The data plane: it forwards the server's packets directly to the client.
    Direct,
    /// The agent has requested the connection from the data plane; `due` is when it repeats the request, `sent` the
    /// number of requests.
    Requested { due: u64, sent: u32 },
    /// The agent.
    Taken,
    /// None: the agent has reset the guessed server.
    Released,
}

impl Guess {
    /// Creates the guess of a client whose first segment has this acknowledgement number.
    pub fn new(facts: Facts, next: Seq) -> Guess {
        Guess { facts, next, largest: MIN_MSS, ownership: Ownership::Direct }
    }

    /// The time at which to ask again for the connection.
    pub fn due(&self) -> Option<u64> {
        if let Ownership::Requested { due, .. } = self.ownership { Some(due) } else { None }
    }

    /// Whether the data plane forwards the connection, without any agent.
    pub fn is_direct(&self) -> bool {
        self.ownership == Ownership::Direct
    }

    /// Whether the agent has reset the guessed server.
    pub fn is_released(&self) -> bool {
        self.ownership == Ownership::Released
    }

    /// Records that the guessed server was reset.
    pub fn leave(&mut self) {
        self.ownership = Ownership::Released;
    }

    /// The largest number of bytes behind `next` that the server may have sent to the client without the agent
    /// receiving them. It is 0 when the agent has taken the connection, or has itself sent or forwarded bytes.
    pub fn unseen(&self, next: Seq) -> u32 {
        if self.next == next && self.ownership != Ownership::Taken { NEAR - 1 } else { 0 }
    }

    /// Whether these facts belong to this connection, and not of a later one from the same client port.
    pub fn is_of(&self, facts: &Facts) -> bool {
        self.facts.isn == facts.isn
    }

    /// Updates the facts that may change.
    pub fn update(&mut self, facts: &Facts) {
        self.facts.server_has_sent |= facts.server_has_sent;
    }
}

impl Client {
    /// Updates the guess by an acceptable segment. Returns whether the client has received data of a guessed server
    /// that the agent has reset.
    pub fn follow_guess(&mut self, segment: &Segment<'_>) -> bool {
        let Some(guess) = &mut self.guess else { return false };
        guess.largest = guess.largest.max(segment.payload().len() as u16);
        if guess.unseen(self.next) == 0 || !self.next.is_before(segment.ack()) {
            return false;
        }
        (guess.next, self.next, guess.facts.server_has_sent) = (segment.ack(), segment.ack(), true);
        guess.is_released()
    }

    /// How to reset the guessed server, unless that was done; any group of the service leads to it.
    pub fn guessed_server(&self) -> Option<ServerReset> {
        let guess = self.guess.as_ref().filter(|guess| !guess.is_released())?;
        let groups = &self.terms.service.groups;
        let group = groups.iter().position(|group| group.servers.contains(&guess.facts.server)).unwrap_or(0);
        Some(ServerReset { group, seq: self.request.base() })
    }

    /// Whether the guessed server has sent data that the client may have received.
    pub fn guess_has_sent(&self) -> bool {
        self.guess.as_ref().is_some_and(|guess| !guess.is_released() && guess.facts.server_has_sent)
    }

    /// Takes the connection from the data plane, which then forwards the guessed server's packets to the agent.
    pub fn take_connection(&mut self, ctx: &mut Context<'_>) {
        if self.guess.as_ref().is_some_and(|guess| guess.is_direct()) {
            self.request_connection(ctx, 1);
        }
    }

    fn request_connection(&mut self, ctx: &mut Context<'_>, sent: u32) {
        let Some(guess) = &mut self.guess else { return };
        guess.ownership = Ownership::Requested { due: ctx.now + (REPEAT << (sent - 1)), sent };
        let order = Order::take(self.terms.client, self.terms.service.address, guess.facts.isn);
        ctx.out.push_with(|frame| order.write(&ctx.link, frame));
    }

    /// Asks again for the connection when its timer has expired. Returns false when the connection is lost.
    #[must_use]
    pub fn repeat_take(&mut self, ctx: &mut Context<'_>) -> bool {
        let Some(guess) = &self.guess else { return true };
        let Ownership::Requested { due, sent } = guess.ownership else { return true };
        if ctx.now < due {
            return true;
        }
        self.terms.service.counters.orders_repeated.add(1);
        if sent == ORDERS {
            self.lose_guess(ctx);
            return false;
        }
        self.request_connection(ctx, sent + 1);
        true
    }

    /// Processes the data plane's answer to the order that takes the connection. Returns false when the agent cannot
    /// have it.
    #[must_use]
    pub fn on_take_answer(&mut self, ctx: &mut Context<'_>, status: Status) -> bool {
        let Some(guess) = &mut self.guess else { return true };
        match (&guess.ownership, status) {
            (Ownership::Requested { .. }, Status::Applied) => guess.ownership = Ownership::Taken,
            (Ownership::Requested { .. }, Status::NoConnection | Status::Foreign) => {
                self.lose_guess(ctx);
                return false;
            }
            _ => {}
        }
        true
    }

    /// Counts a failed order: the switch no longer has the connection, or another agent has it. Resets the client if the
    /// beginning of its request is lost.
    fn lose_guess(&mut self, ctx: &mut Context<'_>) {
        self.terms.service.counters.orders_failed.add(1);
        if self.request.base().is_before(self.owned) {
            self.terms.service.counters.lost.add(1);
            self.reset(ctx);
        }
    }
}
