//! The next state of a connection, which the current state returns after each event.

use super::exchange::Exchange;
use super::server::Server;
use super::server_reset::ServerReset;
use crate::policy::{Assignment, DialogueReplay, Framing, Rejection, Sticky};

/// The transition that follows the state `S`.
pub enum Next<S> {
    /// The current state continues.
    Stay(S),
    /// The agent sends a SYN to a group. `has_former_server` is true if the connection has left another server before.
    Connect { assignment: Assignment, has_former_server: bool },
    /// A server has accepted the connection, and the agent sends it the mail dialogue so far.
    Replay(Server, (Sticky, Option<Box<dyn Framing>>), DialogueReplay),
    /// A server has accepted the connection, and the agent forwards the request to it.
    Serve(Server, Sticky, Option<Box<dyn Framing>>),
    /// A server has received the mail dialogue so far. If there is an exchange, the agent reads all further requests.
    /// `acknowledges` is true if the server still waits for an ACK.
    Resume { server: Server, sticky: Sticky, exchange: Option<Exchange>, acknowledges: bool },
    /// The agent sends the client an error, and resets the server, if there is one.
    Refuse(Option<ServerReset>, Rejection),
    /// The agent sends the client a FIN, and resets the server, if there is one.
    Close(Option<ServerReset>),
    /// The connection is over, and the agent removes it.
    Over,
}
