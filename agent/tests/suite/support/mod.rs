//! Models of the agent's surroundings: a switch, a client and servers, with links that lose, repeat and reorder
//! packets.

pub mod dialogue;
pub mod guess;
pub mod harness;
pub mod host;
pub mod play;
pub mod rules;
pub mod switch;
pub mod world;
