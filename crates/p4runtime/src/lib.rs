//! A P4Runtime server, and the sluice engine as one of its backends.
//!
//! A target has its own numbers and byte formats, whereas controllers refer to objects by the ids and types of P4Info.
//! When a controller pushes a program, this crate maps the ids of P4Info to those of the target ([`binding`]). It
//! serves the six RPCs of P4Runtime 1.5 ([`service`]) for every [`Backend`].
//!
//! The sluice engine is one such backend: [`device`] shares it between the server and the data-plane thread, and
//! [`entity`] translates requests into operations of the engine. The engine, not this crate, contains the pipeline
//! state.

// Deprecated protobuf fields must be named where this crate refuses or forwards them.
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
