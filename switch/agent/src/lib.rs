//! The agent of a content switch: takes handshakes and requests of content services, asks the rules, opens a server in the client's
//! name, and has the data plane translate from there on.
//!
//! [`Engine`] is pure: frames and the time in, frames out.

pub mod arp;
pub mod assembler;
pub mod checksum;
pub mod config;
mod connection;
pub mod cookie;
pub mod decider;
mod engine;
pub mod frames;
mod handover;
mod opening;
pub mod order;
mod pool;
mod reading;
pub mod seq;
mod serving;
mod speech;
mod strangers;
pub mod wire;

pub use config::{Configuration, Service, Settings};
pub use engine::Engine;
pub use frames::Frames;
