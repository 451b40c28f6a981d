//! A P4Runtime server in front of Tofino's driver.
//!
//! Controllers use P4Runtime; the driver has BF Runtime. [`program`] maps the names of P4Info to the driver's ids, and
//! [`plan`] translates a batch of updates to one request. [`shadow`] stores what clients wrote. [`gateway`] combines
//! these as the P4Runtime server's backend.

// Deprecated protobuf fields must be named where this crate passes them on.
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

/// Messages of BF Runtime, generated from `proto/`.
#[allow(missing_docs, clippy::all, clippy::pedantic)]
pub mod proto {
    tonic::include_proto!("bfrt_proto");
}

pub use gateway::{Gateway, Settings};
