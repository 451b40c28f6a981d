//! The packet generator of `make bench`. It sends frames of many TCP connections, which it builds from one frame.
//!
//! `packet_load flood OUT FRAME FIRST COUNT RATE SECONDS`: sends frames of the connections FIRST to FIRST + COUNT - 1,
//! repeatedly, at RATE frames/s, or as many as the interface accepts if RATE is 0. Prints the number of frames sent and
//! the seconds that sending took.
//!
//! `packet_load latency OUT IN FRAME FIRST COUNT RATE SECONDS`: sends the frames of `flood`, one frame at a time, each
//! with its send time. Prints the number of frames sent, the number of frames received at IN, and the latencies of the
//! received frames in microseconds: p50, p99, maximum.
//!
//! `packet_load handshakes CLIENT SERVER FRAME FIRST WINDOW SECONDS`: opens connections from interface CLIENT, WINDOW
//! at a time, and answers them as the server at interface SERVER. Prints the number of connections opened, the number
//! of connections given up, and the duration of the run in seconds.
//!
//! FRAME is a file with an untagged Ethernet frame of IPv4 and TCP without options. The program replaces the frame's
//! source address and port by the connection's address and port. It polls without sleeping, so it occupies a core while
//! it runs.

mod connections;
mod flood;
mod handshakes;
mod latency;

use std::error::Error;
use std::process::ExitCode;

use connections::Template;

const USAGE: &str = "usage: packet_load flood OUT FRAME FIRST COUNT RATE SECONDS
       packet_load latency OUT IN FRAME FIRST COUNT RATE SECONDS
       packet_load handshakes CLIENT SERVER FRAME FIRST WINDOW SECONDS";

fn run(words: &[&str]) -> Result<String, Box<dyn Error>> {
    let template = |path: &str| Template::new(std::fs::read(path)?);
    match *words {
        ["flood", out, frame, first, count, rate, seconds] => {
            let connections = first.parse()?..first.parse::<u32>()? + count.parse::<u32>()?;
            flood::run(out, &template(frame)?, connections, rate.parse()?, seconds.parse()?)
        }
        ["latency", out, into, frame, first, count, rate, seconds] => {
            let connections = first.parse()?..first.parse::<u32>()? + count.parse::<u32>()?;
            latency::run([out, into], &template(frame)?, connections, rate.parse()?, seconds.parse()?)
        }
        ["handshakes", client, server, frame, first, window, seconds] => {
            handshakes::run([client, server], &template(frame)?, first.parse()?, window.parse()?, seconds.parse()?)
        }
        _ => Err(USAGE.into()),
    }
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match run(&words.iter().map(String::as_str).collect::<Vec<_>>()) {
        Ok(result) => {
            println!("{result}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("packet_load: {error}");
            ExitCode::FAILURE
        }
    }
}
