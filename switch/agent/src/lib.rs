//! The agent of a content switch: takes handshakes and requests of content services, asks the rules, opens a server in the client's
//! name, and has the data plane translate from there on.
//!
//! [`Engine`] is pure: frames and the time in, frames out. [`runner`] joins it to an interface, [`control`] to the controller.

pub mod acceptance;
pub mod args;
pub mod arp;
pub mod assembler;
pub mod checksum;
pub mod clock;
pub mod config;
mod connection;
pub mod control;
pub mod cookie;
pub mod decider;
mod engine;
pub mod facts;
pub mod frames;
mod handover;
mod handshakes;
mod mail;
pub mod metrics;
pub mod offline;
pub mod order;
pub mod pool;
pub mod rules;
pub mod runner;
pub mod seq;
mod speech;
mod strangers;
pub mod wire;

/// The messages of `proto/agent.proto`.
pub mod proto {
    #![allow(missing_docs, clippy::too_many_lines, reason = "generated; the file has the words")]
    tonic::include_proto!("sluice.agent.v1");
}

pub use config::{Configuration, Service, Settings};
pub use engine::Engine;
pub use frames::Frames;
