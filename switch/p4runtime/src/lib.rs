//! P4Runtime for the sluice engine.
//!
//! The engine knows numbers and bytes; controllers speak in terms of P4Info. This crate resolves the one to the other
//! when a program is pushed ([`binding`]), serves the six RPCs of P4Runtime 1.5 ([`service`]), and shares the engine
//! between the server and the data-plane thread ([`device`]). It holds no pipeline state of its own.

// Deprecated fields have to be named where they are refused or passed on.
#![allow(deprecated)]

pub mod arbitration;
pub mod binding;
pub mod bits;
pub mod device;
pub mod digests;
pub mod entity;
pub mod fault;
pub mod pipeline;
pub mod proto;
pub mod read;
pub mod server;
pub mod service;
pub mod statistics;
pub mod streams;
pub mod translation;
pub mod typespec;

mod actions;
mod framing;
mod looks;
mod matches;
mod ports;
mod reconcile;
mod succession;
mod timers;
mod undo;
mod write;

pub use device::{Config, Device, Occupancy};
pub use pipeline::{Pipeline, PipelineError, parse_p4info};
pub use server::{Settings, serve};
