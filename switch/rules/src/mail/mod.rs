//! Mail protocols: the agent answers a client in the server's place until the rules decide, and then repeats the
//! commands to the server.

mod act;
mod asker;
mod dialogue;
mod follow;
mod imap;
mod line;
mod pop3;
mod replay;
pub(crate) mod sasl;
mod smtp;
mod speaker;

pub(crate) use dialogue::Dialogue;
pub use follow::{Followed, Follower};
pub use replay::{Replay, Replayed};
