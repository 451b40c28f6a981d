//! Dialogues of mail protocols: the agent greets and answers until rules can decide, and says it again to the server.

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
