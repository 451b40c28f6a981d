//! Tests of the P4Runtime server, which a client controls over gRPC.

mod atomicity;
mod choice;
mod common;
mod errors;
mod load;
mod malformed;
mod objects;
mod pipelines;
mod ports;
mod reconcile;
mod roles;
mod streams;
mod tables;
mod translation;
