//! What the switch and the agent serve alike: addresses to listen on, metrics, signals, and systemd.

pub mod listener;
pub mod metrics;
pub mod signals;
pub mod supervisor;

pub use listener::{Listener, unserved};
pub use signals::Signals;
pub use supervisor::Supervisor;
