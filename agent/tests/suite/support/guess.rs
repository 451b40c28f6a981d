//! Helper functions for tests that check guessed connections segment by segment.

use std::sync::Arc;

use sluice_agent::facts::Facts;
use sluice_agent::seq::Seq;
use sluice_agent::wire::flags::{ACK, PSH, SYN};
use sluice_agent::wire::{Link, Segment, SegmentHeader, SynOptions};
use sluice_agent::{Configuration, Frames, Service};

use super::harness::{Harness, ISN, Output, SERVER_ISN, service};
use super::switch::{AGENT_MAC, SWITCH_MAC};

/// The number of the server that the data plane has guessed; it is in group `a` only.
pub const OF_A: u16 = 31;
/// The number of a server in group `b` only.
pub const OF_B: u16 = 32;
/// The number of a server in the groups `a` and `b`.
pub const OF_BOTH: u16 = 33;

pub const FACTS: Facts = Facts {
    server_scale: Some(7),
    client_scale: Some(9),
    sack: true,
    server_has_sent: false,
    mss: 1460,
    server: OF_A,
    isn: ISN,
};

/// Returns a client that the data plane has connected to a guessed server. The service permits guesses, and its groups
/// contain the servers `OF_A`, `OF_B` and `OF_BOTH`. The agent has not received a segment of the client yet.
pub fn guessing(content: &str) -> Harness {
    guessing_if(content, true)
}

/// Returns the client of [`guessing`]; the service permits guesses only if `guess` is true.
pub fn guessing_if(content: &str, guess: bool) -> Harness {
    let mut harness = Harness::new(content);
    let mut known = Arc::into_inner(service(content)).unwrap();
    known.guess = guess;
    for (group, servers) in known.groups.iter_mut().zip([vec![OF_A, OF_BOTH], vec![OF_B, OF_BOTH], vec![]]) {
        group.servers = servers;
    }
    use_service(&mut harness, known);
    // The client acknowledges the server's sequence numbers, so these replace the cookie.
    harness.cookie = SERVER_ISN;
    harness
}

fn use_service(harness: &mut Harness, service: Service) {
    harness.service = Arc::new(service);
    let services = vec![Arc::clone(&harness.service)];
    harness.engine.configure(harness.now, Configuration { services, generation: 1, key: [7; 16], former_key: None });
}

/// Returns a ClientHello without extensions (RFC 8446, section 4.1.2).
pub fn client_hello() -> Vec<u8> {
    let mut body = vec![3, 3];
    body.extend([7; 32]);
    body.extend([0, 0, 2, 0x13, 0x01, 1, 0]);
    let message = [&[1, 0, 0, body.len() as u8][..], &body].concat();
    [&[22, 3, 1, 0, message.len() as u8][..], &message].concat()
}

impl Harness {
    /// Passes a segment of the client to the engine, with the header that the data plane adds for guessed connections.
    /// `at` and `received` mean the same as for [`Harness::client`].
    pub fn guessed_with(&mut self, facts: Facts, at: u32, received: u32, flags: u8, data: &[u8]) -> Vec<Output> {
        let frame = self.guessed_frame(facts, at, received, flags, data);
        self.take(&frame)
    }

    /// Returns the frame of a client's segment with the header of guessed connections.
    pub fn guessed_frame(&self, facts: Facts, at: u32, received: u32, flags: u8, data: &[u8]) -> Vec<u8> {
        let seq: Seq = facts.isn + 1 + at;
        let (source, destination) = (self.client, self.own());
        let head = SegmentHeader { source, destination, seq, ack: self.cookie + 1 + received, flags, window: 100 };
        let mut frame = Vec::new();
        head.write(&Link { own: SWITCH_MAC, router: AGENT_MAC }, &[], [data, b""], &mut frame);
        facts.write(&frame)
    }

    /// Sends data of the client on a guessed connection.
    pub fn guessed(&mut self, at: u32, data: &[u8]) -> Vec<Output> {
        self.guessed_with(FACTS, at, 0, ACK | PSH, data)
    }

    /// Returns the options of the SYNs that the engine sends after it has received a frame.
    pub fn offers(&mut self, frame: &[u8]) -> Vec<SynOptions> {
        let mut out = Frames::default();
        self.engine.receive(self.now, frame, &mut out);
        let segments = out.iter().filter_map(|frame| Segment::read(frame).ok());
        segments.filter(|segment| segment.has(SYN)).map(|segment| segment.syn_options()).collect()
    }

    /// Returns the numbers of right, wrong and reset guesses.
    pub fn guesses(&self) -> [u64; 3] {
        let counters = &self.service.counters;
        [&counters.guesses_right, &counters.guesses_wrong, &counters.guesses_reset].map(|counter| counter.get())
    }
}
