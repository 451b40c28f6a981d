//! Messages from a commit to the task that receives the driver's notifications. They change the task's connection.

use crate::client::Events;

/// The requested change of the task's connection to the driver.
pub(crate) enum Handover {
    /// Drop the connection, because the driver loads a program; then wait for the next message.
    Hold,
    /// Receive notifications on this connection.
    Take(Box<Events>),
    /// Drop the connection, and connect to the driver again.
    Lost,
}
