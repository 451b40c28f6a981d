//! Tests the engine through its public interface: the tests load programs, send packets and check the resulting
//! packets.

mod allocations;
mod arrays;
mod common;
mod deparser;
mod handles;
mod keys;
mod meters;
mod native;
mod older;
mod parser;
mod paths;
mod prefixes;
mod queues;
mod refusals;
mod robust;
mod selector;
mod stacks;
mod statements;
mod tables;
mod unions;
mod variants;
mod wide;
