//! What the switch and the agent serve alike: addresses to listen on, and metrics.

pub mod listener;
pub mod metrics;

pub use listener::{Listener, unserved};
