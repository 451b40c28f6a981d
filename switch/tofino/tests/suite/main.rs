//! The gateway through P4Runtime, in front of a driver that stands in for Tofino's.
#![allow(missing_docs, deprecated, clippy::result_large_err)]

#[path = "../stand_in/mod.rs"]
mod stand_in;

mod batches;
mod cells;
mod common;
mod drivers;
mod groups;
mod keys;
mod loading;
mod pipelines;
mod streams;
mod tables;
