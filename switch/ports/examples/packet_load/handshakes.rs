//! Connections, one after the other: SYN, SYN-ACK and ACK, with both ends played here.

use std::error::Error;
use std::time::{Duration, Instant};

use sluice_ports::{Interface, RxBatch, TxBatch};

use crate::connections::{ACK, HEADERS, SYN, Template, answer, flags};

/// A window that has not moved for so long has lost its frames: others are sent.
const PATIENCE: Duration = Duration::from_millis(20);

pub fn run(
    names: [&str; 2],
    template: &Template,
    first: u32,
    window: u32,
    seconds: f64,
) -> Result<String, Box<dyn Error>> {
    let [mut client, mut server] = [Interface::open(names[0])?, Interface::open(names[1])?];
    let mut template = template.clone();
    let (mut tx, mut rx, mut reply) = (TxBatch::default(), RxBatch::default(), [0; HEADERS]);
    let (mut next, mut under_way, mut opened, mut given_up) = (first, 0, 0u64, 0u64);
    let (start, length) = (Instant::now(), Duration::from_secs_f64(seconds));
    let mut moved = start;
    while start.elapsed() < length {
        if moved.elapsed() > PATIENCE {
            given_up += u64::from(under_way);
            under_way = 0;
            moved = Instant::now();
        }
        // SYN-ACKs that came are completed, and as many SYNs follow them.
        if client.may_have_frames() {
            client.receive(&mut rx);
            for frame in rx.frames().filter(|frame| flags(frame) == Some(SYN | ACK)) {
                answer(frame, ACK, &mut reply);
                tx.push(&reply, &[]);
                under_way = u32::saturating_sub(under_way, 1);
            }
        }
        while under_way < window && tx.len() < sluice_ports::BATCH {
            tx.push(template.fill(next, u64::from(next) << 32), &[]);
            (next, under_way) = (next.wrapping_add(1), under_way + 1);
        }
        client.send(&mut tx);
        if server.may_have_frames() {
            server.receive(&mut rx);
            for frame in rx.frames() {
                match flags(frame) {
                    Some(SYN) => {
                        answer(frame, SYN | ACK, &mut reply);
                        tx.push(&reply, &[]);
                    }
                    Some(ACK) => {
                        opened += 1;
                        moved = Instant::now();
                    }
                    _ => {}
                }
            }
            server.send(&mut tx);
        }
    }
    Ok(format!("{opened} {given_up} {}", start.elapsed().as_secs_f64()))
}
