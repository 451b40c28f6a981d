//! Tests of resets, keepalives and unacceptable segments at each step of a connection: before the request, within the
//! request, while the agent connects to a server, while the server answers, and between two requests.

use sluice_agent::wire::flags::{ACK, FIN, PSH, RST, SYN};

use crate::support::guess::{FACTS, guessing};
use crate::support::harness::{Harness, ISN, Output, RULES, group};

/// Two requests of a connection, about which the rules decide separately: the first is for group b, the second for
/// group a.
const FIRST: &[u8] = b"GET /b HTTP/1.1\r\nHost: a\r\n\r\n";
const SECOND: &[u8] = b"GET /a HTTP/1.1\r\nHost: a\r\n\r\n";
const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const HALF: usize = 20;

/// A connection after some of the steps in `run_step`.
struct Moment {
    harness: Harness,
    /// The number of bytes that the client has sent, and the number that it has received.
    sent: u32,
    received: u32,
    /// The offset in the client's bytes at which the connection to the current server begins; none before the server
    /// has accepted it.
    server: Option<u32>,
    /// The number of bytes that the current server has sent.
    answered: u32,
}

const MOMENTS: usize = 9;

fn after(moments: usize) -> Moment {
    let mut harness = Harness::new(RULES);
    harness.handshake();
    let mut moment = Moment { harness, sent: 0, received: 0, server: None, answered: 0 };
    for number in 1..=moments {
        moment.run_step(number);
    }
    moment
}

impl Moment {
    fn run_step(&mut self, number: usize) -> Vec<Output> {
        let (first, answer) = (FIRST.len() as u32, ANSWER.len() as u32);
        match number {
            1 => self.sends(&FIRST[..HALF]),
            2 => self.sends(&FIRST[HALF..]),
            3 => {
                self.server = Some(0);
                self.harness.opens(0, Some(7))
            }
            4 => self.answers(first, &ANSWER[..HALF]),
            5 => self.answers(first, &ANSWER[HALF..]),
            6 => {
                self.received = answer;
                self.harness.client(first, answer, ACK, b"")
            }
            7 => {
                (self.server, self.answered) = (None, 0);
                self.sends(SECOND)
            }
            8 => {
                self.server = Some(first);
                self.harness.opens(first, Some(7))
            }
            _ => self.answers(first + SECOND.len() as u32, ANSWER),
        }
    }

    fn sends(&mut self, data: &[u8]) -> Vec<Output> {
        let outputs = self.harness.client(self.sent, self.received, ACK | PSH, data);
        self.sent += data.len() as u32;
        outputs
    }

    fn answers(&mut self, has: u32, data: &[u8]) -> Vec<Output> {
        let outputs = self.harness.server(self.answered, has, ACK | PSH, data);
        self.answered += data.len() as u32;
        outputs
    }

    /// Runs the remaining steps, and returns all outputs.
    fn run_remaining(&mut self, at: usize) -> Vec<Output> {
        (at + 1..=MOMENTS).flat_map(|number| self.run_step(number)).collect()
    }

    /// Asserts that the agent has removed the connection, and sends no further segment for it.
    fn is_over(&mut self, at: usize) {
        assert_eq!((self.harness.engine.connections(), self.harness.engine.memory()), (0, 0), "moment {at}");
        let later = self.harness.waits(400_000);
        assert_eq!(later, [], "moment {at}");
    }
}

fn resets(outputs: &[Output]) -> [usize; 2] {
    let to_client =
        outputs.iter().filter(|output| matches!(output, Output::Client { flags, .. } if flags & RST != 0)).count();
    let to_server =
        outputs.iter().filter(|output| matches!(output, Output::Server { flags, .. } if flags & RST != 0)).count();
    [to_client, to_server]
}

#[test]
fn a_client_resets_at_every_moment() {
    for at in 0..=MOMENTS {
        let mut moment = after(at);
        let outputs = moment.harness.client(moment.sent, moment.received, RST, b"");
        // If the agent has sent a SYN to a server, it resets this server, once. It sends the client nothing.
        assert_eq!(resets(&outputs), [0, usize::from(at >= 2)], "moment {at}: {outputs:?}");
        assert_eq!(outputs.len(), usize::from(at >= 2), "moment {at}: {outputs:?}");
        moment.is_over(at);
    }
}

#[test]
fn a_server_resets_at_every_moment() {
    for at in 2..=MOMENTS {
        let mut moment = after(at);
        // A server that has received only a SYN acknowledges only the SYN; any other server acknowledges all bytes of
        // the client.
        let has = [moment.sent, 0, FIRST.len() as u32][[2, 7].iter().position(|&step| step == at).map_or(0, |n| n + 1)];
        let outputs = match moment.server {
            Some(_) => moment.harness.server(moment.answered, has, RST | ACK, b""),
            None => moment.harness.refuses_all(has),
        };
        if let Some(begin) = moment.server {
            // The agent forwards the server's reset to the client, with translated sequence numbers.
            let [Output::Client { seq, flags, .. }] = outputs[..] else { panic!("moment {at}: {outputs:?}") };
            let before = if begin == 0 { 0 } else { ANSWER.len() as u32 };
            assert_eq!((seq, flags & RST), (moment.harness.cookie + 1 + before + moment.answered, RST), "moment {at}");
            moment.is_over(at);
        } else {
            assert!(
                outputs.iter().any(|output| output.data().starts_with(b"HTTP/1.1 503")),
                "moment {at}: {outputs:?}"
            );
            moment.harness.waits(400_000);
            assert_eq!((moment.harness.engine.connections(), moment.harness.engine.memory()), (0, 0), "moment {at}");
        }
    }
}

/// Segments that no host sends in the current state. Each has a sequence number and an acknowledgement number, relative
/// to the current numbers of the connection, and flags and data.
const UNACCEPTABLE: [(u32, u32, u8, &[u8]); 14] = [
    // These segments acknowledge bytes that were never sent.
    (0, 100_000, ACK | FIN, b""),
    (0, 100_000, ACK | PSH, b"GET /admin HTTP/1.1\r\n\r\n"),
    (0, 100_000, ACK, b""),
    (0, u32::MAX / 2, ACK | PSH | FIN, b"x"),
    // The acknowledgement number is older than any window allows.
    (0, u32::MAX - 40_000_000, ACK | PSH, b"x"),
    // The sequence number is beyond the window.
    (200_000_000, 0, ACK | FIN, b""),
    (200_000_000, 0, ACK | PSH, b"x"),
    (200_000_000, 0, RST | ACK, b""),
    // The bytes or the FIN were acknowledged before.
    (u32::MAX - 1000, 0, ACK | PSH, b"x"),
    (u32::MAX - 1000, 0, ACK | FIN, b""),
    // These segments have no ACK flag.
    (0, 0, PSH | FIN, b"x"),
    (0, 0, 0, b""),
    // A reset near the next sequence number, and the SYN of a new handshake, may be forged (RFC 5961, sections 3 and
    // 4).
    (1, 0, RST | ACK, b""),
    (7, 0, SYN, b""),
];

/// Returns whether the outputs are at most one challenge ACK.
fn is_challenge(outputs: &[Output]) -> bool {
    outputs.len() <= 1 && outputs.iter().all(|output| output.flags() == ACK && output.data().is_empty())
}

#[test]
fn a_clients_segment_that_is_not_acceptable_changes_nothing_at_any_moment() {
    for at in 0..=MOMENTS {
        let clean = after(at).run_remaining(at);
        for (ahead, claimed, flags, data) in UNACCEPTABLE {
            let mut moment = after(at);
            let (seq, received) = (moment.sent.wrapping_add(ahead), moment.received.wrapping_add(claimed));
            let outputs = moment.harness.client(seq, received, flags, data);
            // Before the request, the agent stores no connection, and only checks the client's cookie.
            let is_expected = if at == 0 { moment.harness.engine.connections() == 0 } else { is_challenge(&outputs) };
            assert!(
                is_expected || flags & SYN != 0 && at == 0,
                "moment {at}, {ahead} {claimed} {flags:#x}: {outputs:?}"
            );
            assert_eq!(moment.run_remaining(at), clean, "moment {at}, {ahead} {claimed} {flags:#x}");
        }
    }
}

#[test]
fn a_servers_segment_that_is_not_acceptable_changes_nothing_at_any_moment() {
    for at in [3, 4, 5, 6, 8, 9] {
        let clean = after(at).run_remaining(at);
        for (ahead, claimed, flags, data) in UNACCEPTABLE {
            let mut moment = after(at);
            let (seq, has) = (moment.answered.wrapping_add(ahead), moment.sent.wrapping_add(claimed));
            let outputs = moment.harness.server(seq, has, flags, data);
            assert!(is_challenge(&outputs), "moment {at}, {ahead} {claimed} {flags:#x}: {outputs:?}");
            assert_eq!(moment.run_remaining(at), clean, "moment {at}, {ahead} {claimed} {flags:#x}");
        }
    }
}

#[test]
fn half_a_request_and_a_fin_that_acknowledges_unsent_bytes() {
    let mut moment = after(1);
    let outputs = moment.harness.client(moment.sent, 1, ACK | FIN, b"");
    let [Output::Client { seq, ack, flags: ACK, .. }] = outputs[..] else { panic!("{outputs:?}") };
    assert_eq!((seq, ack), (moment.harness.cookie + 1, ISN + 1), "nothing is taken, and the client is asked");
    assert_eq!(moment.harness.refused(), []);
    let outputs = moment.sends(&FIRST[HALF..]);
    assert!(matches!(outputs[..], [Output::Server { flags: SYN, .. }]), "{outputs:?}");
}

/// The agent answers unacceptable ACKs of a host at most twice a second. Otherwise two hosts that reject each other's
/// ACKs would answer each other forever.
#[test]
fn acknowledgements_that_are_not_acceptable_are_answered_twice_a_second() {
    for at in [1, 4] {
        let mut moment = after(at);
        let mut answers = 0;
        for _ in 0..100 {
            answers += moment.harness.client(moment.sent, 100_000, ACK, b"").len();
            if moment.server.is_some() {
                answers += moment.harness.server(moment.answered, 100_000, ACK, b"").len();
            }
            moment.harness.now += 10_000_000;
        }
        assert_eq!(answers, if at == 1 { 2 } else { 4 }, "moment {at}");
    }
}

/// A keepalive contains no byte, or a single byte that was sent before (RFC 9293, section 3.8.4). A client sends
/// keepalives only if all of its bytes are acknowledged; otherwise it retransmits. The agent or the server answers,
/// whichever has acknowledged the bytes, and no byte reaches a server twice.
#[test]
fn a_client_sends_a_keepalive_at_every_moment() {
    for at in [0, 1, 4, 5, 6, 9] {
        for garbage in [&b""[..], b"?"] {
            let mut moment = after(at);
            moment.harness.waits(20);
            let outputs = moment.harness.client(moment.sent.wrapping_sub(1), moment.received, ACK, garbage);
            let before = if at > 6 { ANSWER.len() as u32 } else { 0 };
            match &outputs[..] {
                [Output::Client { seq, ack, flags: ACK, data, .. }] => {
                    assert_eq!(
                        (*seq, data.len()),
                        (moment.harness.cookie + 1 + before + moment.answered, 0),
                        "moment {at}"
                    );
                    assert_eq!(*ack, ISN + 1 + moment.sent, "moment {at}");
                }
                // The agent forwards the keepalive, so that the server answers it.
                [Output::Server { seq, flags: ACK, data, .. }] => {
                    assert!(moment.server.is_some(), "moment {at}");
                    assert_eq!((*seq, data.len()), (ISN + moment.sent, 0), "moment {at}: {outputs:?}");
                }
                _ => panic!("moment {at}: {outputs:?}"),
            }
            for next in at + 1..=MOMENTS {
                moment.run_step(next);
            }
            assert_eq!(moment.harness.service.counters.resets.get(), 0, "moment {at}");
            assert_eq!(moment.harness.engine.connections(), 1, "moment {at}: it goes on");
        }
    }
}

#[test]
fn a_server_sends_a_keepalive_at_every_moment() {
    for at in [3, 4, 5, 6, 8, 9] {
        let mut moment = after(at);
        let outputs = moment.harness.server(moment.answered.wrapping_sub(1), moment.sent, ACK, b"");
        let [Output::Client { seq, flags: ACK, ref data, .. }] = outputs[..] else {
            panic!("moment {at}: {outputs:?}")
        };
        let before = if at > 6 { ANSWER.len() as u32 } else { 0 };
        assert_eq!((seq, data.len()), (moment.harness.cookie + before + moment.answered, 0), "moment {at}");
    }
}

#[test]
fn a_client_resets_a_guessed_connection_at_every_moment() {
    for at in 0..=2 {
        let mut harness = guessing(RULES);
        let get = if at == 2 { FIRST } else { SECOND };
        if at > 0 {
            harness.guessed(0, if at == 1 { &get[..HALF] } else { get });
        }
        let sent = [0, HALF, get.len()][at] as u32;
        let outputs = harness.guessed_with(FACTS, sent, 0, RST, b"");
        // Before the agent has received a segment of the connection, the data plane itself forwards the client's reset
        // to the server.
        let resets = outputs.iter().filter(|output| matches!(output, Output::Server { flags: RST, .. })).count();
        assert_eq!(resets, usize::from(at > 0), "moment {at}: {outputs:?}");
        assert!(outputs.iter().all(|output| !matches!(output, Output::Server { to, .. } if *to == group(3))));
        harness.waits(400_000);
        assert_eq!((harness.engine.connections(), harness.engine.memory()), (0, 0), "moment {at}");
    }
}
