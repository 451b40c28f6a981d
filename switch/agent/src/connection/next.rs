//! What a state of a connection gives when it has worked: itself, or what follows it.

use super::end::End;
use super::exchange::Exchange;
use super::server::Server;
use crate::decider::{Framing, Refusal, Repetition, Route, Sticky};

/// What follows the state `S`.
pub enum Next<S> {
    /// The state goes on.
    Stay(S),
    /// A group is asked for a server. With `has_left` the connection has left one before.
    Ask { route: Route, has_left: bool },
    /// A server has answered, to which the dialogue so far is repeated.
    Repeat(Server, (Sticky, Option<Box<dyn Framing>>), Repetition),
    /// A server has answered, and gets the request.
    Serve(Server, Sticky, Option<Box<dyn Framing>>),
    /// A server has got the dialogue so far. With an exchange the agent reads on; `acknowledges`: the server still waits for an ACK.
    Resume { server: Server, sticky: Sticky, exchange: Option<Exchange>, acknowledges: bool },
    /// The client is sent a refusal; its server, if it has one, is left.
    Refuse(Option<End>, Refusal),
    /// The connection ends towards both sides.
    End(Option<End>),
    /// Nothing is left: the agent forgets the connection.
    Over,
}
