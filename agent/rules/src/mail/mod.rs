//! Mail protocols: the agent answers a client instead of the server until the rules decide, and then repeats the
//! client's commands to the server.

mod dialogue;
mod evaluator;
mod guard;
mod imap;
mod line;
mod line_action;
mod pop3;
mod replay;
mod responder;
pub(crate) mod sasl;
mod smtp;

pub(crate) use dialogue::Dialogue;
pub use guard::{DialogueGuard, GuardVerdict};
pub use replay::{Replay, ReplayStatus};
