//! A P4Runtime server in front of the driver of a Tofino switch.
//!
//! Controllers use P4Runtime, whereas the driver serves BF Runtime. [`program`] maps the names of P4Info to ids of the
//! driver. [`plan`] translates a batch of updates to one request to the driver. [`shadow`] stores the entities that
//! clients wrote. [`gateway`] combines these modules into the backend of the P4Runtime server.

// Deprecated protobuf fields must be named where this crate forwards them.
#![allow(deprecated)]

pub mod array_locks;
pub mod bfrt;
pub mod client;
mod commit;
pub mod cpu;
pub mod cpu_port;
pub mod front_panel;
pub mod gateway;
mod handover;
pub mod idle;
pub mod info;
pub mod journal;
mod journal_writer;
mod link;
pub mod load;
pub mod loading;
pub mod mark;
pub mod metrics;
mod persistence;
pub mod plan;
pub mod prefetch;
pub mod program;
pub mod read;
pub mod replication;
pub mod shadow;
pub mod statistics;

/// The messages of BF Runtime, generated from `proto/`.
#[allow(missing_docs, clippy::all, clippy::pedantic)]
pub mod proto {
    tonic::include_proto!("bfrt_proto");
}

pub use gateway::{Gateway, Settings};
