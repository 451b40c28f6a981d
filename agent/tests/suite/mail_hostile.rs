//! Tests with random segments of a client and a server of a mail protocol: the client, which the agent has greeted,
//! receives neither the server's greeting nor the server's answer to EHLO, and all memory is freed.

use crate::support::harness::{Harness, ISN, Output};
use crate::support::play::{self, Play, pick_range};
use crate::support::world::Rng;
use sluice_agent::order::{Order, Status};
use sluice_agent::seq::Seq;
use sluice_agent::wire::SegmentHeader;
use sluice_agent::wire::flags::{ACK, PSH, SYN};

const CONTENT: &str = r#"{"protocol": "smtp", "default": {"to": "a"}, "offer": ["PIPELINING"], "rules": [
    {"name": "b", "match": {"rcpt_to": {"suffix": "@b"}}, "to": "b"}]}"#;
const LINES: [&str; 7] = [
    "EHLO a\r\n",
    "NOOP\r\n",
    "MAIL FROM:<a@a>\r\n",
    "RSET\r\n",
    "MAIL FROM:<b@b>\r\n",
    "RCPT TO:<b@b>\r\n",
    "DATA\r\n",
];
/// The server's greeting and its answers to EHLO, MAIL, RCPT and DATA. The agent discards those with the word
/// `swallowed`, because it has greeted the client and answered these commands itself.
const ANSWERS: &str =
    "220 swallowed\r\n250-swallowed\r\n250 swallowed\r\n250 swallowed\r\n250 recipient\r\n354 data\r\n";

/// A mail dialogue, with the bytes that client and server have sent and received.
struct Mail {
    harness: Harness,
    rng: Rng,
    stream: Vec<u8>,
    sent: usize,
    received: Vec<u8>,
    /// The next sequence number that the server expects.
    server: Seq,
    /// The number of bytes of its answers that the server has sent.
    server_sent: usize,
    order: Option<Order>,
    spliced: usize,
}

impl Play for Mail {
    fn split(&mut self) -> (&mut Harness, &mut Rng) {
        (&mut self.harness, &mut self.rng)
    }

    fn record(&mut self, outputs: &[Output]) {
        for output in outputs {
            match output {
                Output::Client { seq, data, .. } => {
                    let at = (*seq - (self.harness.cookie + 1)) as usize;
                    if at <= self.received.len() && self.received.len() < at + data.len() {
                        self.received.extend(&data[self.received.len() - at..]);
                    }
                }
                Output::Server { seq, flags, .. } if flags & SYN != 0 => {
                    (self.server, self.server_sent) = (*seq + 1, 0)
                }
                Output::Server { seq, data, .. } if *seq == self.server => self.server += data.len() as u32,
                Output::Server { .. } => {}
                Output::Order(order) => self.order = Some(*order),
            }
        }
    }

    fn client_sends(&mut self) {
        let range = pick_range(&mut self.rng, &mut self.sent, self.stream.len(), 40, 75);
        let (start, data, received) = (range.start, self.stream[range].to_vec(), self.received.len() as u32);
        let received = if self.rng.percent(90) { received } else { self.rng.below(1 + u64::from(received)) as u32 };
        let flags = play::flags(&mut self.rng, ACK | PSH, 1);
        let outputs = self.harness.client(start as u32, received, flags, &data);
        self.record(&outputs);
    }

    fn server_sends(&mut self) {
        let isn = Seq(77);
        let (source, destination) = (self.harness.service.address, self.harness.client);
        let is_syn = self.server_sent == 0 && self.rng.percent(60);
        // A SYN-ACK has no payload.
        let mut server_sent = self.server_sent;
        let range = pick_range(&mut self.rng, &mut server_sent, ANSWERS.len(), 30, 80);
        let (seq, data) = match is_syn {
            true => (isn, &b""[..]),
            false => (isn + 1 + range.start as u32, &ANSWERS.as_bytes()[range]),
        };
        if !is_syn {
            self.server_sent = server_sent;
        }
        let flags = play::flags(&mut self.rng, if is_syn { SYN | ACK } else { ACK }, 1);
        let head = SegmentHeader { source, destination, seq, ack: self.server, flags, window: 3000 };
        let outputs = self.harness.sends(head, &[2, 4, 2, 0], data);
        self.record(&outputs);
    }

    fn confirmation(&mut self) -> Option<(Order, Status)> {
        let order = self.order.take().filter(|_| self.rng.percent(50))?;
        self.spliced += 1;
        Some((order, Status::Applied))
    }
}

fn play(seed: u64) -> usize {
    let mut rng = Rng(seed);
    let mut stream: Vec<u8> = (0..rng.below(8)).flat_map(|_| LINES[rng.below(5) as usize].bytes()).collect();
    stream.extend("RSET\r\nMAIL FROM:<a@a>\r\nRCPT TO:<b@b>\r\nDATA\r\n".bytes());
    let mut harness = Harness::new(CONTENT);
    let (options, length) = harness.syn_options.write();
    let Output::Client { seq, .. } = harness.syn(&options[..length], b"")[0] else { panic!("no answer") };
    harness.cookie = seq;
    let outputs = harness.client(0, 0, ACK, b"");
    let (received, server) = (Vec::new(), ISN);
    let mut play = Mail { harness, rng, stream, sent: 0, received, server, server_sent: 0, order: None, spliced: 0 };
    play.record(&outputs);
    for _ in 0..80 {
        play.step();
    }
    // The answer `250 swallowed` to MAIL is not searched for: a client that sends MAIL again may receive it.
    let received = String::from_utf8_lossy(&play.received).into_owned();
    assert!(!received.contains("220 swallowed") && !received.contains("250-swallowed"), "seed {seed}: {received}");
    play::assert_ends(&mut play.harness, seed);
    play.spliced
}

#[test]
fn no_greeting_reaches_a_client_that_was_greeted() {
    let spliced: usize = (0..3000).map(play).sum();
    assert!(spliced > 300, "many connections are spliced: {spliced}");
}
