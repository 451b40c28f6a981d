//! How a commit has the task that follows the driver change its connection.

use crate::client::Events;

/// What becomes of the connection that is followed.
pub(crate) enum Handover {
    /// It is given up; another one comes.
    Hold,
    /// This one is followed.
    Take(Box<Events>),
    /// There is none; the driver is called again.
    Lost,
}
