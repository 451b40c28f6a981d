//! Requests and rules in, decisions out.

mod bodies;
mod charsets;
mod common;
mod follow;
mod fuzz;
mod heads;
mod lcs;
mod mail;
mod problems;
mod responses;
mod tls;
