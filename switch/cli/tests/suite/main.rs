//! The program `sluice-switch` as its users meet it.

mod administration;
mod binary;
mod common;
mod files;
mod observe;
