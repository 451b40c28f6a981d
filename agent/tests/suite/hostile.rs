//! Tests with random segments of client and server: nothing fails, and no byte reaches a server of another group.

use crate::support::guess::{FACTS, OF_A, OF_B, OF_BOTH, guessing};
use crate::support::harness::{Harness, ISN, Output, RULES, SERVER_ISN, group};
use crate::support::play::{self, Play, pick_range};
use crate::support::world::Rng;
use sluice_agent::facts::Facts;
use sluice_agent::order::{Order, Status, Turn};
use sluice_agent::seq::Seq;
use sluice_agent::wire::flags::{ACK, PSH, RST, SYN};
use sluice_agent::wire::{SegmentHeader, sack_option};

/// Returns six random requests. The digits of a body show the group that the request is for.
fn stream(rng: &mut Rng) -> Vec<u8> {
    let mut stream = Vec::new();
    for _ in 0..6 {
        let (path, mark) = if rng.percent(50) { ("/b", b'2') } else { ("/b/../b", b'2') };
        let (path, mark) = if rng.percent(30) { ("/x", b'1') } else { (path, mark) };
        let body = vec![mark; [0, 5, 40, 3000][rng.below(4) as usize]];
        stream.extend(format!("POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n", body.len()).bytes());
        stream.extend(body);
    }
    stream
}

const WITHOUT_END: &[u8] = b"HTTP/1.1 200 OK\r\n\r\n";

struct Http {
    harness: Harness,
    rng: Rng,
    stream: Vec<u8>,
    /// The number of bytes that the client has sent in order, and the number of bytes of answers that it has received.
    sent: usize,
    received: u32,
    /// The number of requests that each of the two groups has received; the second number is that of `group(2)`.
    requests_received: [usize; 2],
    /// The number of bytes that the server has sent.
    server_sent: u32,
    /// The next sequence number that the server expects, and the server's own initial number.
    server: (Seq, Seq),
    order: Option<Order>,
    /// Whether the rules have decided for the complete connection, so that later requests go to the same group.
    is_stuck: bool,
    /// The header that the data plane adds to the client's segments, until an agent takes the connection.
    guess: Option<Facts>,
}

impl Play for Http {
    fn split(&mut self) -> (&mut Harness, &mut Rng) {
        (&mut self.harness, &mut self.rng)
    }

    fn record(&mut self, outputs: &[Output]) {
        for output in outputs {
            match output {
                Output::Server { to, seq, data, flags, .. } => {
                    let foreign = if *to == group(2) { b'1' } else { b'2' };
                    let body = data.split(|byte| !byte.is_ascii_digit()).filter(|run| run.len() > 4).flatten();
                    // A segment to another group than group 2 shows that the rules have decided for the complete
                    // connection. A reset does not show this, because a former server may be reset at the address of
                    // any group.
                    self.is_stuck |= *to != group(2) && flags & RST == 0;
                    // After a decision for the connection, all later bytes go to the same server.
                    assert!(self.is_stuck || !body.clone().any(|byte| *byte == foreign), "{to}: {outputs:?}");
                    self.requests_received[usize::from(*to == group(2))] += usize::from(data.starts_with(b"POST"));
                    if flags & SYN != 0 {
                        self.guess = None;
                        self.server = (*seq + 1, Seq(self.rng.next() as u32));
                        self.server_sent = 0;
                    } else {
                        self.server.0 = self.server.0.later(*seq + data.len() as u32);
                    }
                }
                Output::Order(order) => {
                    self.order = Some(*order);
                    self.is_stuck |= order.turn == Turn::Spliced;
                    self.guess = None;
                }
                Output::Client { seq, data, .. } => {
                    // A response without a known end lasts until the connection ends.
                    self.is_stuck |= data == WITHOUT_END;
                    let received = (*seq + data.len() as u32) - (self.harness.cookie + 1);
                    self.received = self.received.max(u32::try_from(received.max(0)).unwrap());
                }
            }
        }
    }

    fn client_sends(&mut self) {
        let range = pick_range(&mut self.rng, &mut self.sent, self.stream.len(), 1460, 75);
        let (start, data) = (range.start, self.stream[range].to_vec());
        let flags = play::flags(&mut self.rng, ACK | PSH, 2);
        let received = if self.rng.percent(90) { self.received } else { self.rng.below(200) as u32 };
        let outputs = if self.rng.percent(20) {
            let blocks = [(Seq(self.rng.next() as u32), Seq(self.rng.next() as u32)); 2];
            let (options, length) = sack_option(blocks.into_iter());
            let (source, destination) = (self.harness.client, self.harness.own());
            let (seq, ack) = (ISN + 1 + start as u32, self.harness.cookie + 1 + received);
            self.harness.sends(
                SegmentHeader { source, destination, seq, ack, flags: ACK, window: 9 },
                &options[..length],
                b"",
            )
        } else if let Some(facts) = self.guess {
            let server_has_sent = facts.server_has_sent || self.rng.percent(2);
            self.harness.guessed_with(Facts { server_has_sent, ..facts }, start as u32, received, flags, &data)
        } else {
            self.harness.client(start as u32, received, flags, &data)
        };
        self.record(&outputs);
    }

    fn server_sends(&mut self) {
        let (next, isn) = self.server;
        let answers: [&[u8]; 4] = [
            b"",
            b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n12",
            WITHOUT_END,
        ];
        let data = answers[[0, 1, 1, 1, 1, 1, 2, 3][self.rng.below(8) as usize]];
        let is_syn = self.server_sent == 0 && self.rng.percent(60);
        let flags = play::flags(&mut self.rng, if is_syn { SYN | ACK } else { ACK }, 2);
        let seq = if is_syn { isn } else { isn + 1 + self.server_sent };
        let seq = if self.rng.percent(5) { seq + 38 } else { seq };
        if !is_syn && self.rng.percent(90) {
            self.server_sent += data.len() as u32;
        }
        let ack = if self.rng.percent(90) { next } else { next - self.rng.below(3000) as u32 };
        let (source, destination) = (self.harness.service.address, self.harness.client);
        let head = SegmentHeader { source, destination, seq, ack, flags, window: self.rng.below(3) as u16 * 3000 };
        let outputs = self.harness.sends(head, &[2, 4, 2, 0], if is_syn { b"" } else { data });
        self.record(&outputs);
    }

    fn confirmation(&mut self) -> Option<(Order, Status)> {
        let all = [Status::Applied, Status::NoConnection, Status::Foreign, Status::Order];
        let status = all[self.rng.below(4) as usize];
        self.order.filter(|_| self.rng.percent(10)).map(|order| (order, status))
    }
}

fn play(seed: u64, is_guessed: bool) -> [usize; 2] {
    let mut rng = Rng(seed);
    let stream = stream(&mut rng);
    let mut harness = if is_guessed { guessing(RULES) } else { Harness::new(RULES) };
    if !is_guessed {
        harness.handshake();
    }
    let server = [OF_A, OF_B, OF_BOTH][rng.below(3) as usize];
    let guess = is_guessed.then_some(Facts { server, ..FACTS });
    let mut play = Http {
        harness,
        rng,
        stream,
        sent: 0,
        received: 0,
        requests_received: [0; 2],
        server_sent: 0,
        server: if is_guessed { (ISN + 1, SERVER_ISN) } else { (ISN, Seq(0)) },
        order: None,
        is_stuck: false,
        guess,
    };
    for _ in 0..60 {
        play.step();
    }
    play::assert_ends(&mut play.harness, seed);
    play.requests_received
}

#[test]
fn no_byte_reaches_a_server_that_was_not_meant_for_it() {
    for is_guessed in [false, true] {
        let plays = (0..3000).map(|seed| play(seed, is_guessed));
        let requests_received =
            plays.fold([0; 2], |sum, requests_received| [sum[0] + requests_received[0], sum[1] + requests_received[1]]);
        assert!(
            requests_received.iter().all(|requests| *requests > 500),
            "both groups have requests: {requests_received:?}"
        );
    }
}
