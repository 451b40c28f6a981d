//! Guessed connections (pre-allocation; Chow, Wang & Prakash, section 3). For a remembered client, the data plane has
//! forwarded the SYN directly to the server of the client's previous connection. The client's segments with data go to
//! an agent, with a header that reports the options of the handshake.
//!
//! ```text
//!                 the rules select a group that
//!     direct ---- contains the server ---------------> spliced with delta 0; the request is forwarded
//!        |    \-- does not --> reset, then a SYN to the group, as for any connection
//!        | the agent has to acknowledge, or to send bytes of its own
//!     taken: the packets of client and server go to the agent ---> the same two cases
//! ```
//!
//! Until an agent takes a connection, any other agent can continue it. Toward the client, the agent uses the server's
//! sequence numbers.

use super::client::Client;
use super::context::Context;
use super::server_reset::ServerReset;
use crate::facts::{Facts, MIN_MSS};
use crate::order::{ORDERS, Order, REPEAT, Status};
use crate::seq::Seq;
use crate::wire::Segment;

/// The assumed upper limit, exclusive, of the bytes that a guessed server sends to the client before the agent learns
/// of them by the client's acknowledgements. An acknowledgement further ahead belongs to another connection.
const NEAR: u32 = 1 << 16;

/// What the agent records about a guess: a server that the data plane has selected before the request was read.
#[derive(Debug)]
pub struct Guess {
    pub facts: Facts,
    /// The next sequence number that the agent expects of the server.
    pub next: Seq,
    /// The largest payload of a client's segment so far, in bytes, and at least `MIN_MSS`. The server accepts segments
    /// of this size.
    pub largest: u16,
    ownership: Ownership,
}

/// Which component forwards a guessed connection.
#[derive(Debug, PartialEq, Eq)]
enum Ownership {
    /// The data plane forwards the server's packets directly to the client.
    Direct,
    /// The agent has requested the connection from the data plane. `due` is the time at which the agent repeats the
    /// request, `sent` the number of requests.
    Requested { due: u64, sent: u32 },
    /// The agent forwards the connection.
    Taken,
    /// No component: the agent has reset the guessed server.
    Released,
}

impl Guess {
    /// Creates a guess. `next` is the acknowledgement number of the client's first segment.
    pub fn new(facts: Facts, next: Seq) -> Guess {
        Guess { facts, next, largest: MIN_MSS, ownership: Ownership::Direct }
    }

    /// Returns the time at which the agent repeats its request for the connection, if it has sent a request.
    pub fn due(&self) -> Option<u64> {
        if let Ownership::Requested { due, .. } = self.ownership { Some(due) } else { None }
    }

    /// Returns whether the data plane forwards the connection, without any agent.
    pub fn is_direct(&self) -> bool {
        self.ownership == Ownership::Direct
    }

    /// Returns whether the agent has reset the guessed server.
    pub fn is_released(&self) -> bool {
        self.ownership == Ownership::Released
    }

    /// Records that the guessed server was reset.
    pub fn leave(&mut self) {
        self.ownership = Ownership::Released;
    }

    /// Returns an upper bound for the number of bytes, from the sequence number `next` on, that the server may have
    /// sent to the client without the agent receiving them. The bound is 0 once the agent has taken the connection, or
    /// has sent or forwarded bytes to the client.
    pub fn unseen(&self, next: Seq) -> u32 {
        if self.next == next && self.ownership != Ownership::Taken { NEAR - 1 } else { 0 }
    }

    /// Returns whether these facts about a guess belong to this connection. Otherwise they belong to a later connection
    /// of the same client port.
    pub fn is_of(&self, facts: &Facts) -> bool {
        self.facts.isn == facts.isn
    }

    /// Updates `server_has_sent`, the only fact that changes during a connection.
    pub fn update(&mut self, facts: &Facts) {
        self.facts.server_has_sent |= facts.server_has_sent;
    }
}

impl Client {
    /// Updates the guess after an acceptable segment of the client. Returns whether the segment acknowledges data of a
    /// guessed server whose connection the agent has reset.
    pub fn follow_guess(&mut self, segment: &Segment<'_>) -> bool {
        let Some(guess) = &mut self.guess else { return false };
        guess.largest = guess.largest.max(segment.payload().len() as u16);
        if guess.unseen(self.next) == 0 || !self.next.is_before(segment.ack()) {
            return false;
        }
        (guess.next, self.next, guess.facts.server_has_sent) = (segment.ack(), segment.ack(), true);
        guess.is_released()
    }

    /// Returns the data of a reset to the guessed server, unless the agent has reset it. The switch forwards the reset
    /// to this server, regardless of the group to which the reset is addressed.
    pub fn guessed_server(&self) -> Option<ServerReset> {
        let guess = self.guess.as_ref().filter(|guess| !guess.is_released())?;
        let groups = &self.terms.service.groups;
        let group = groups.iter().position(|group| group.servers.contains(&guess.facts.server)).unwrap_or(0);
        Some(ServerReset { group, seq: self.request.base() })
    }

    /// Returns whether the guessed server has sent data that the client may have received. False once the agent has
    /// reset this server.
    pub fn guess_has_sent(&self) -> bool {
        self.guess.as_ref().is_some_and(|guess| !guess.is_released() && guess.facts.server_has_sent)
    }

    /// Requests the connection from the data plane, which then forwards the guessed server's packets to the agent.
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

    /// Repeats the request for the connection when the data plane has not answered in time. Returns false if the last
    /// of the `ORDERS` requests has remained unanswered; the agent then gives up the connection.
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

    /// Processes the data plane's answer to the order by which the agent takes the connection. Returns false if the
    /// agent cannot take it.
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

    /// Counts a failed order: the switch has no entry of the connection, another agent handles it, or all orders remain
    /// unanswered. Resets the client if this agent has acknowledged bytes of the request, because the client does not
    /// retransmit these bytes.
    fn lose_guess(&mut self, ctx: &mut Context<'_>) {
        self.terms.service.counters.orders_failed.add(1);
        if self.request.base().is_before(self.owned) {
            self.terms.service.counters.lost.add(1);
            self.reset(ctx);
        }
    }
}
