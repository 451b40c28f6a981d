//! Rules and requests, and the decisions about them.

mod bodies;
mod charsets;
mod common;
mod fuzz;
mod guard;
mod heads;
mod lcs;
mod mail;
mod problems;
mod responses;
mod tls;
