//! Tests the gateway as a P4Runtime server, in front of a stand-in for Tofino's driver.
#![allow(missing_docs, deprecated, clippy::cast_possible_truncation, clippy::result_large_err)]

#[path = "../stand_in/mod.rs"]
mod stand_in;

mod answers;
mod batches;
mod campus;
mod cells;
mod common;
mod direct;
mod drivers;
mod groups;
mod idle;
mod keys;
mod loading;
mod metrics;
mod pipelines;
mod ports;
mod replication;
mod restarts;
mod streams;
mod tables;
