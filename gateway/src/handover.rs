//! Messages by which a commit changes the connection that the task follows.

use crate::client::Events;

/// What the task must do with its connection.
pub(crate) enum Handover {
    /// Drop the connection and wait for another one.
    Hold,
    /// Follow this connection.
    Take(Box<Events>),
    /// Drop the connection and call the driver again.
    Lost,
}
