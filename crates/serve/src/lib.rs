//! Code for serving that the switch, the agent and the gateway share: listeners, metrics, signals and systemd
//! notifications.

pub mod listener;
pub mod metrics;
pub mod signals;
pub mod supervisor;

pub use listener::{Listener, unserved};
pub use signals::Signals;
pub use supervisor::Supervisor;
