//! The program `sluice-switch` as its users meet it.

mod administration;
mod binary;
mod captures;
mod command_line;
mod common;
mod files;
mod observe;
mod queues;
mod signals;
