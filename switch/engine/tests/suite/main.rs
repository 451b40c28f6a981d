//! The engine as its users meet it: programs in, packets in and out.

mod arrays;
mod common;
mod deparser;
mod keys;
mod meters;
mod native;
mod paths;
mod prefixes;
mod refusals;
mod robust;
mod selector;
mod stacks;
mod tables;
mod variants;
