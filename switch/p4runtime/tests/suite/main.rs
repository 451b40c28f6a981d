//! The P4Runtime server as its clients meet it.

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
