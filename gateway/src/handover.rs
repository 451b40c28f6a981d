//! Messages with which a commit changes the connection of the task that follows the driver.

use crate::client::Events;

/// The requested change of the task's connection to the driver.
pub(crate) enum Handover {
    /// Drop the connection, and wait for a message that contains another connection.
    Hold,
    /// Follow this connection.
    Take(Box<Events>),
    /// Drop the connection, and connect to the driver again.
    Lost,
}
