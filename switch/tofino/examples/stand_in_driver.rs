//! The server that stands in for the driver, with the program of the repository, for tests outside this crate: it prints its URI
//! and serves until it is ended.
//!
//! `cargo run --release -p sluice-tofino --example stand_in_driver`

#[path = "../tests/stand_in/mod.rs"]
mod stand_in;

#[tokio::main]
async fn main() {
    let (uri, served) = stand_in::Driver::new(stand_in::BFRT).serve("127.0.0.1:0").await;
    println!("{uri}");
    served.await.expect("a server that goes on");
}
