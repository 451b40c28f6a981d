//! What the switch and the agent serve alike: addresses to listen on, metrics, and systemd.

pub mod listener;
pub mod metrics;
pub mod supervisor;

pub use listener::{Listener, unserved};
pub use supervisor::Supervisor;
