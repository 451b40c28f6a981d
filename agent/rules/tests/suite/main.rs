//! Tests of the rules: the decisions about requests of all protocols.

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
