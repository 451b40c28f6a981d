//! Measures the packet loss that table writes cause in a switch under load, through real interfaces.
//!
//! `cargo build --release --workspace --bins --examples`, then, as root, `target/release/examples/write_load [SECONDS
//! [RATE]]`
//!
//! Runs `sluice-switch` on veth pairs in a network namespace of its own. Frames that arrive at port 1 match an entry,
//! which the controller changes back and forth between the ports 2 and 3. Every frame must leave by one of these two
//! ports. The other updates of a batch insert entries and delete them again.
//!
//! RATE is in packets per second. Without RATE, this program first searches its list of rates for the highest one that
//! the switch forwards for a minute without loss while nothing is written. Then, at this rate and at half of it, the
//! program writes for SECONDS (default 5) with each batch size and atomicity. It prints the loss during the writes and,
//! for comparison, the loss in an equally long period without writes just before.

#[path = "../../../../crates/p4runtime/examples/write_rate/batches.rs"]
mod batches;
mod traffic;
mod veths;
mod writes;

use std::error::Error;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use sluice_p4runtime::proto::p4::v1::write_request::Atomicity;

use traffic::{Carried, Traffic};
use writes::Writer;

/// The rates, in packets per second, that the program tries in this order.
const RATES: [u32; 9] = [400_000, 300_000, 200_000, 150_000, 100_000, 70_000, 50_000, 30_000, 15_000];
/// Number of periods without a lost frame after which the program accepts a rate.
const PERIODS: usize = 12;
const PERIOD: Duration = Duration::from_secs(5);
const BATCHES: [usize; 5] = [1, 10, 100, 1_000, 10_000];
const ATOMICITIES: [Atomicity; 3] =
    [Atomicity::ContinueOnError, Atomicity::RollbackOnError, Atomicity::DataplaneAtomic];

/// A running switch, which is killed when this value is dropped.
struct Switch(Child);

impl Switch {
    /// Starts the switch. Returns it with the address on which it serves P4Runtime.
    fn start() -> Result<(Self, String), Box<dyn Error>> {
        let examples = std::env::current_exe()?;
        let binary: PathBuf =
            examples.parent().and_then(|folder| folder.parent()).ok_or("no folder")?.join("sluice-switch");
        let flags = "--no-p4 --device-id 1 -i 1@s1 -i 2@s2 -i 3@s3 --grpc-server-addr 127.0.0.1:0";
        let mut command = Command::new(&binary);
        command.args(flags.split(' ')).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| format!("{}: {error}", binary.display()))?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().ok_or("no output")?).read_line(&mut line)?;
        let address =
            line.split_whitespace().nth(4).ok_or("the switch does not start")?.trim_end_matches(',').to_owned();
        Ok((Self(child), address))
    }

    /// Ends the switch, and returns the statistics that it prints.
    fn stop(mut self) -> Result<serde_json::Value, Box<dyn Error>> {
        // SAFETY: this process has not yet waited for the child, so the id still belongs to the child.
        unsafe { libc::kill(self.0.id().cast_signed(), libc::SIGTERM) };
        let mut text = String::new();
        self.0.stderr.take().ok_or("no statistics")?.read_to_string(&mut text)?;
        Ok(serde_json::from_str(text.lines().last().unwrap_or_default())?)
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        // The calls fail for a child that has already ended; these errors are ignored.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns the highest of the rates that the switch forwards without loss while the controller does not write.
fn carried_rate(traffic: &mut Traffic) -> Result<u32, Box<dyn Error>> {
    'rates: for rate in RATES {
        for period in 0..PERIODS {
            let ((), Carried { lost, .. }) = traffic.during(rate, || std::thread::sleep(PERIOD))?;
            if lost > 0 {
                println!("idle, {rate} packets/s: {lost} lost in period {} of {PERIODS}", period + 1);
                continue 'rates;
            }
        }
        println!("idle, {rate} packets/s: none lost in {PERIODS} periods of {} s", PERIOD.as_secs());
        return Ok(rate);
    }
    Err("no rate is carried without loss".into())
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let seconds = arguments.next().map_or(Ok(5.0), |text| text.parse())?;
    let length = Duration::from_secs_f64(seconds);
    let rate: Option<u32> = arguments.next().map(|text| text.parse()).transpose()?;
    // The process enters the namespace before it starts a thread, because a running thread would stay in the old
    // namespace.
    veths::enter_namespace(&[1, 2, 3])?;
    let (switch, address) = Switch::start()?;
    let mut writer = Writer::connect(&address)?;
    let mut traffic = Traffic::new("h1", &["h2", "h3"])?;
    let rate = rate.map_or_else(|| carried_rate(&mut traffic), Ok)?;
    println!(
        "{:>18} {:>7} {:>10} {:>10} {:>10} {:>8} {:>8}",
        "atomicity", "batch", "updates/s", "packets/s", "packets", "lost", "before"
    );
    for rate in [rate, rate / 2] {
        for atomicity in ATOMICITIES {
            for batch in BATCHES {
                let ((), before) = traffic.during(rate, || std::thread::sleep(length))?;
                let (updates, carried) = traffic.during(rate, || writer.write_for(length, atomicity, batch))?;
                let (name, updates) = (atomicity.as_str_name(), updates?);
                let Carried { sent, lost, seconds } = carried;
                let achieved = sent as f64 / seconds;
                let before = before.lost;
                println!("{name:>18} {batch:>7} {updates:>10.0} {achieved:>10.0} {sent:>10} {lost:>8} {before:>8}");
            }
        }
    }
    println!("{}", switch.stop()?["ports"]);
    Ok(())
}
