//! A P4Runtime server, and the sluice engine as one of its backends.
//!
//! A target works with its own numbers and bytes; controllers name things by P4Info's ids and types. This crate
//! resolves P4Info's names to the target's when a program is pushed ([`binding`]) and serves the six RPCs of P4Runtime
//! 1.5 ([`service`]) for every [`Backend`].
//!
//! The sluice engine is such a backend: [`device`] shares it between the server and the data-plane thread, and
//! [`entity`] translates requests into its operations. This crate holds no pipeline state of its own.

// Deprecated protobuf fields must be named where this crate refuses them or passes them on.
#![allow(deprecated)]

pub mod actions;
pub mod arbitration;
pub mod backend;
pub mod binding;
pub mod bits;
pub mod controllers;
pub mod device;
pub mod digests;
pub mod entity;
pub mod fault;
pub mod matches;
pub mod pipeline;
pub mod ports;
pub mod proto;
pub mod read;
pub mod server;
pub mod service;
pub mod statistics;
pub mod streams;
pub mod translation;
pub mod typespec;

mod embedded;
mod framing;
mod locking_reader;
mod reconcile;
mod succession;
mod timers;
mod undo;
mod write;

pub use backend::{Backend, Permit};
pub use device::{Config, Device, Occupancy};
pub use pipeline::{Pipeline, PipelineError, parse_p4info};
pub use server::{Settings, serve};
