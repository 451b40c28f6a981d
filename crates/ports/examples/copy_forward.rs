//! Copies every frame from one interface to another and back, with plain batched system calls (`recvmmsg`, `sendmmsg`)
//! and no pipeline. The rate that this program reaches is the upper bound for a switch that uses the same calls.
//!
//! `copy_forward IFACE IFACE`; the program runs until SIGINT or SIGTERM ends it by the signal's default action.

use std::process::ExitCode;

use sluice_ports::{Event, Input, Interface, Options, Poller, Received, RxBatch, TxBatch};

fn run(names: &[String; 2]) -> Result<(), Box<dyn std::error::Error>> {
    let plain = Options { input: Input::Calls, ..Options::default() };
    let mut ends = [Interface::open_with(&names[0], plain)?, Interface::open_with(&names[1], plain)?];
    let poller = Poller::new()?;
    for (token, end) in ends.iter().enumerate() {
        poller.add(end.raw_fd().ok_or("interface lost while opening")?, token)?;
    }
    println!("copy_forward: forwarding between {} and {}", names[0], names[1]);
    let (mut rx, mut tx, mut events) = (RxBatch::default(), TxBatch::default(), Vec::new());
    loop {
        poller.wait(&mut events, None)?;
        for event in &events {
            let Event::Ready(token) = *event else { continue };
            if ends[token].receive(&mut rx) == Received::Lost {
                return Err(format!("interface {} is gone", names[token]).into());
            }
            for frame in rx.frames() {
                tx.push(frame, &[]);
            }
            ends[1 - token].send(&mut tx);
        }
    }
}

fn main() -> ExitCode {
    let names: Vec<String> = std::env::args().skip(1).collect();
    let Ok(names) = <[String; 2]>::try_from(names) else {
        eprintln!("usage: copy_forward IFACE IFACE");
        return ExitCode::from(2);
    };
    match run(&names) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("copy_forward: {error}");
            ExitCode::FAILURE
        }
    }
}
