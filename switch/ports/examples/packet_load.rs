//! Sends the frames of a file out of an interface, over and over, at a steady rate for a time: the load of `make bench`.
//!
//! `packet_load IFACE FRAMES RATE SECONDS`: FRAMES holds frames one behind the other, each after its length (16 bits, big
//! endian); RATE is in frames per second, 0 for as many as the interface takes. Prints the number of frames sent and the
//! seconds it took.

use std::error::Error;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use sluice_ports::{Interface, TxBatch};

const BATCH: u64 = 32;

fn frames(file: &[u8]) -> Result<Vec<&[u8]>, Box<dyn Error>> {
    let mut frames = Vec::new();
    let mut rest = file;
    while let Some((length, behind)) = rest.split_first_chunk::<2>() {
        let (frame, next) =
            behind.split_at_checked(usize::from(u16::from_be_bytes(*length))).ok_or("the last frame is cut off")?;
        frames.push(frame);
        rest = next;
    }
    if frames.is_empty() {
        return Err("no frames".into());
    }
    Ok(frames)
}

fn run(arguments: &[String; 4]) -> Result<(), Box<dyn Error>> {
    let [interface, file, rate, seconds] = arguments;
    let mut interface = Interface::open(interface)?;
    let file = std::fs::read(file)?;
    let mut frames = frames(&file)?.into_iter().cycle();
    let rate: f64 = rate.parse()?;
    let length = Duration::from_secs_f64(seconds.parse()?);

    let mut batch = TxBatch::default();
    let (start, mut pushed) = (Instant::now(), 0u64);
    loop {
        let elapsed = start.elapsed();
        let over = elapsed >= length;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "rounded to whole frames")]
        let due = (elapsed.min(length).as_secs_f64() * rate).round() as u64;
        let count = match (rate == 0.0, over) {
            (true, true) => 0,
            (true, false) => BATCH,
            // What the rate owes is sent in whole batches, but for the last frames.
            (false, _) => due - pushed,
        };
        if count == 0 && over {
            break;
        }
        if count < BATCH && !over {
            std::thread::sleep(Duration::from_micros(50));
            continue;
        }
        let count = count.min(BATCH);
        for frame in frames.by_ref().take(usize::try_from(count)?) {
            batch.push(frame, &[]);
        }
        interface.send(&mut batch);
        pushed += count;
    }
    println!("{} {}", interface.counters().snapshot().tx_packets, start.elapsed().as_secs_f64());
    Ok(())
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Ok(arguments) = <[String; 4]>::try_from(arguments) else {
        eprintln!("usage: packet_load IFACE FRAMES RATE SECONDS");
        return ExitCode::from(2);
    };
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("packet_load: {error}");
            ExitCode::FAILURE
        }
    }
}
