//! The server that stands in for the driver, with the program of the repository, for tests outside this crate: it prints its URI
//! and serves until it is ended. After SIGUSR1 it prints how many entries its clients have written so far.
//!
//! `cargo run --release -p sluice-tofino --example stand_in_driver`

#[path = "../tests/stand_in/mod.rs"]
mod stand_in;

use std::sync::atomic::Ordering::Relaxed;

use tokio::signal::unix::{SignalKind, signal};

#[tokio::main]
async fn main() {
    let driver = stand_in::Driver::new(stand_in::BFRT);
    let mut asked = signal(SignalKind::user_defined1()).expect("a signal to wait for");
    let (uri, mut served) = driver.serve("127.0.0.1:0").await;
    println!("{uri}");
    loop {
        tokio::select! {
            _ = asked.recv() => println!("written={}", driver.written.load(Relaxed)),
            ended = &mut served => ended.expect("a server that goes on"),
        }
    }
}
