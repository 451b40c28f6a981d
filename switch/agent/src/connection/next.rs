//! The next state of a connection, which the current state returns after each event.

use super::end::End;
use super::exchange::Exchange;
use super::server::Server;
use crate::decider::{Framing, Refusal, Repetition, Route, Sticky};

/// What follows the state `S`.
pub enum Next<S> {
    /// The current state continues.
    Stay(S),
    /// The agent sends a SYN to a group. `has_left`: the connection has left another server before.
    Ask { route: Route, has_left: bool },
    /// A server has accepted the connection; the agent replays the dialogue to it.
    Repeat(Server, (Sticky, Option<Box<dyn Framing>>), Repetition),
    /// A server has accepted the connection, and gets the request.
    Serve(Server, Sticky, Option<Box<dyn Framing>>),
    /// A server has received the dialogue so far. With an exchange, the agent reads all further requests.
    /// `acknowledges`: the server still waits for an ACK.
    Resume { server: Server, sticky: Sticky, exchange: Option<Exchange>, acknowledges: bool },
    /// The client is sent an error; the server, if there is one, is reset.
    Refuse(Option<End>, Refusal),
    /// The connection is closed toward both sides.
    End(Option<End>),
    /// The connection is over; the agent forgets it.
    Over,
}
