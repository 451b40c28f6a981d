//! Sends frames one at a time. Each frame contains its send time, so that the receiver can compute the latency.

use std::error::Error;
use std::ops::Range;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use sluice_ports::{Interface, RxBatch, TxBatch};

use crate::connections::{Template, flags, numbers};

/// After the last frame is sent, the program receives for this time, so that delayed frames are counted too.
const PATIENCE: Duration = Duration::from_millis(200);

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "rounded to whole frames")]
pub fn run(
    names: [&str; 2],
    template: &Template,
    connections: Range<u32>,
    rate: f64,
    seconds: f64,
) -> Result<String, Box<dyn Error>> {
    let [mut out, mut into] = [Interface::open(names[0])?, Interface::open(names[1])?];
    let mut template = template.clone();
    let mut ids = connections.cycle();
    let (mut tx, mut rx, mut latencies) = (TxBatch::default(), RxBatch::default(), Vec::new());
    let (start, length, mut pushed) = (Instant::now(), Duration::from_secs_f64(seconds), 0u64);
    let earliest = now_ns();
    loop {
        let elapsed = start.elapsed();
        if elapsed > length + PATIENCE {
            break;
        }
        let due = (elapsed.min(length).as_secs_f64() * rate).round() as u64;
        if pushed < due
            && let Some(number) = ids.next()
        {
            tx.push(template.fill(number, now_ns()), &[]);
            out.send(&mut tx);
            pushed += 1;
        }
        if !into.may_have_frames() {
            continue;
        }
        into.receive(&mut rx);
        for (frame, time) in rx.frames().zip(rx.times_ns()) {
            // The kernel timestamps frames when they arrive at this interface. Frames of other programs on the link
            // contain no send time.
            let sent = if flags(frame).is_some() { numbers(frame) } else { 0 };
            if (earliest..=time).contains(&sent) {
                latencies.push(time - sent);
            }
        }
    }
    latencies.sort_unstable();
    let at = |share: f64| {
        latencies.get(((latencies.len() as f64 * share) as usize).min(latencies.len().max(1) - 1)).copied()
    };
    let us = |share| at(share).map_or(f64::NAN, |ns| ns as f64 / 1e3);
    let sent = out.counters().snapshot().tx_packets;
    Ok(format!("{sent} {} {:.1} {:.1} {:.1}", latencies.len(), us(0.5), us(0.99), us(1.0)))
}

fn now_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
}
