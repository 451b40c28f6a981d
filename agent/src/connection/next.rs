//! The next state of a connection, which the current state returns after each event.

use super::exchange::Exchange;
use super::server::Server;
use super::server_reset::ServerReset;
use crate::policy::{Assignment, DialogueReplay, Framing, Rejection, Sticky};

/// What follows the state `S`.
pub enum Next<S> {
    /// The current state continues.
    Stay(S),
    /// The agent sends a SYN to a group. `has_former_server`: the connection has left another server before.
    Connect { assignment: Assignment, has_former_server: bool },
    /// A server has accepted the connection; the agent replays the dialogue to it.
    Replay(Server, (Sticky, Option<Box<dyn Framing>>), DialogueReplay),
    /// A server has accepted the connection, and gets the request.
    Serve(Server, Sticky, Option<Box<dyn Framing>>),
    /// A server has received the dialogue so far. With an exchange, the agent reads all further requests.
    /// `acknowledges`: the server still waits for an ACK.
    Resume { server: Server, sticky: Sticky, exchange: Option<Exchange>, acknowledges: bool },
    /// The client is sent an error; the server, if there is one, is reset.
    Refuse(Option<ServerReset>, Rejection),
    /// The connection is closed toward both sides.
    Close(Option<ServerReset>),
    /// The connection is over; the agent forgets it.
    Over,
}
