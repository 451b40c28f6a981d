//! A P4Runtime server in front of Tofino's driver.
//!
//! Controllers speak P4Runtime; the driver speaks BF Runtime. [`program`] maps the names of P4Info to the driver's ids,
//! [`plan`] turns a batch of updates into one request, [`shadow`] keeps what clients wrote, and [`gateway`] is the P4Runtime
//! server's backend that joins them.

// Deprecated fields have to be named where they are passed on.
#![allow(deprecated)]

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
mod keeper;
mod keeping;
mod link;
pub mod load;
pub mod loading;
pub mod mark;
pub mod metrics;
pub mod plan;
pub mod prefetch;
pub mod program;
pub mod read;
pub mod replication;
pub mod shadow;
pub mod statistics;
pub mod turns;

/// Messages of BF Runtime, generated from `proto/`.
#[allow(missing_docs, clippy::all, clippy::pedantic)]
pub mod proto {
    tonic::include_proto!("bfrt_proto");
}

pub use gateway::{Gateway, Settings};
