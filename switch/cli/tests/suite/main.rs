//! Tests the program `sluice-switch` from outside.

mod administration;
mod binary;
mod captures;
mod command_line;
mod common;
mod files;
mod observe;
mod queues;
mod signals;
