//! Sends frames at a steady rate, or as fast as the interface accepts them. The receiver of the frames counts them.

use std::error::Error;
use std::ops::Range;
use std::time::{Duration, Instant};

use sluice_ports::{Input, Interface, Options, TxBatch};

use crate::connections::Template;

const BATCH: u64 = 32;

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "rounded to whole frames")]
pub fn run(
    out: &str,
    template: &Template,
    connections: Range<u32>,
    rate: f64,
    seconds: f64,
) -> Result<String, Box<dyn Error>> {
    let mut out = Interface::open_with(out, Options { input: Input::Calls, ..Options::default() })?;
    let mut template = template.clone();
    let mut numbers = connections.cycle();
    let mut batch = TxBatch::default();
    let (start, length, mut pushed) = (Instant::now(), Duration::from_secs_f64(seconds), 0u64);
    loop {
        let elapsed = start.elapsed();
        let over = elapsed >= length;
        let due = (elapsed.min(length).as_secs_f64() * rate).round() as u64;
        let count = match (rate == 0.0, over) {
            (true, true) => 0,
            (true, false) => BATCH,
            // With a rate, the program sends as soon as `BATCH` frames are due. The last batch of the run may be
            // smaller.
            (false, _) => due - pushed,
        };
        if count == 0 && over {
            break;
        }
        if count < BATCH && !over {
            std::hint::spin_loop();
            continue;
        }
        let count = count.min(BATCH);
        for number in numbers.by_ref().take(count as usize) {
            batch.push(template.fill(number, 0), &[]);
        }
        out.send(&mut batch);
        pushed += count;
    }
    Ok(format!("{} {}", out.counters().snapshot().tx_packets, start.elapsed().as_secs_f64()))
}
