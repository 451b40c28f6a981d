//! The agent of a content switch. It accepts the connections of content services, and applies their rules to the
//! requests. Then it connects to a server with the client's source address, and orders the data plane to translate the
//! rest of the connection.
//!
//! [`Engine`] performs no input or output itself: it maps received frames and the time to frames to send. [`runner`]
//! connects it to an interface, [`control`] to the controller.

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
mod engine;
pub mod facts;
pub mod frames;
mod handshakes;
mod mail;
pub mod metrics;
pub mod offline;
pub mod order;
pub mod policy;
pub mod pool;
pub mod rules;
pub mod runner;
mod send_buffer;
mod sender;
pub mod seq;
mod strays;
pub mod wire;

/// The messages of `proto/agent.proto`.
pub mod proto {
    #![allow(missing_docs, clippy::too_many_lines, reason = "generated; the file has the words")]
    tonic::include_proto!("sluice.agent.v1");
}

pub use config::{Configuration, Service, Settings};
pub use engine::Engine;
pub use frames::Frames;
