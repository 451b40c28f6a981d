//! Serves the stand-in for the driver, with the repository's program, for tests outside this crate. Prints the
//! stand-in's URI, and serves until it is killed. On SIGUSR1, prints the number of entries that clients have written.
//!
//! `cargo run --release -p sluice-tofino --example stand_in_driver`

#[path = "../tests/stand_in/mod.rs"]
mod stand_in;

use std::sync::atomic::Ordering::Relaxed;

use tokio::signal::unix::{SignalKind, signal};

#[tokio::main]
async fn main() {
    let driver = stand_in::Driver::new(stand_in::BFRT);
    let mut print_requests = signal(SignalKind::user_defined1()).expect("a signal to wait for");
    let (uri, mut served) = driver.serve("127.0.0.1:0").await;
    println!("{uri}");
    loop {
        tokio::select! {
            _ = print_requests.recv() => println!("written={}", driver.written.load(Relaxed)),
            result = &mut served => result.expect("a server that goes on"),
        }
    }
}
