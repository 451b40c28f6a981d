//! A P4Runtime server, and the sluice engine behind it.
//!
//! A target knows numbers and bytes; controllers speak in terms of P4Info. This crate resolves the one to the other
//! when a program is pushed ([`binding`]) and serves the six RPCs of P4Runtime 1.5 ([`service`]) for whatever is a [`Backend`].
//! The engine is one: shared between the server and the data-plane thread ([`device`]), with requests as [`entity`] has
//! them. The crate holds no pipeline state of its own.

// Deprecated fields have to be named where they are refused or passed on.
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
mod looks;
mod reconcile;
mod succession;
mod timers;
mod undo;
mod write;

pub use backend::{Backend, Permit};
pub use device::{Config, Device, Occupancy};
pub use pipeline::{Pipeline, PipelineError, parse_p4info};
pub use server::{Settings, serve};
