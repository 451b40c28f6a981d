//! Opens connections by SYN, SYN-ACK and ACK. The program acts both as the client and as the server.

use std::error::Error;
use std::time::{Duration, Instant};

use sluice_ports::{Interface, RxBatch, TxBatch};

use crate::connections::{ACK, HEADERS, SYN, Template, answer, flags};

/// If no handshake was completed for this time, the pending connections count as given up, and new connections are
/// started: the program does not repeat frames that were lost.
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
    let (mut next, mut pending, mut opened, mut given_up) = (first, 0, 0u64, 0u64);
    let (start, length) = (Instant::now(), Duration::from_secs_f64(seconds));
    let mut last_progress = start;
    while start.elapsed() < length {
        if last_progress.elapsed() > PATIENCE {
            given_up += u64::from(pending);
            pending = 0;
            last_progress = Instant::now();
        }
        // The client acknowledges each SYN-ACK and starts the next connection with another SYN.
        if client.may_have_frames() {
            client.receive(&mut rx);
            for frame in rx.frames().filter(|frame| flags(frame) == Some(SYN | ACK)) {
                answer(frame, ACK, &mut reply);
                tx.push(&reply, &[]);
                pending = u32::saturating_sub(pending, 1);
            }
        }
        while pending < window && tx.len() < sluice_ports::BATCH {
            tx.push(template.fill(next, u64::from(next) << 32), &[]);
            (next, pending) = (next.wrapping_add(1), pending + 1);
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
                        last_progress = Instant::now();
                    }
                    _ => {}
                }
            }
            server.send(&mut tx);
        }
    }
    Ok(format!("{opened} {given_up} {}", start.elapsed().as_secs_f64()))
}
