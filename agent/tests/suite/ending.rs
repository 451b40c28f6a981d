//! Tests of draining (on SIGTERM): the agent ends connections on which the rules decide about each request separately.

use crate::support::harness::{Harness, Output, RULES, group};
use sluice_agent::seq::Seq;
use sluice_agent::wire::flags::{ACK, FIN, PSH, RST};

const GET: &[u8] = b"GET /b HTTP/1.1\r\nHost: a\r\n\r\n";
const REQUEST_BYTES: u32 = GET.len() as u32;
const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
const ANSWER_BYTES: u32 = OK.len() as u32;

/// Returns a connection whose request was forwarded to a server.
fn requested() -> Harness {
    let mut harness = Harness::new(RULES);
    harness.handshake();
    harness.data(0, GET);
    harness.opens(0, Some(7));
    harness
}

fn answered() -> Harness {
    let mut harness = requested();
    harness.server(0, REQUEST_BYTES, ACK | PSH, OK);
    harness.client(REQUEST_BYTES, ANSWER_BYTES, ACK, b"");
    harness
}

/// Returns whether the server is reset, and the client is sent a FIN with the sequence number `behind`.
fn is_ended(outputs: &[Output], behind: Seq) -> bool {
    let [Output::Server { to, flags: RST, .. }, Output::Client { seq, flags, data, .. }] = outputs else {
        return false;
    };
    *to == group(2) && *seq == behind && flags & (FIN | RST) == FIN && data.is_empty()
}

#[test]
fn a_connection_between_two_requests_ends_at_once() {
    let mut harness = answered();
    assert_eq!(harness.engine.connections(), 1);
    let outputs = harness.drains();
    assert!(is_ended(&outputs, harness.cookie + 1 + ANSWER_BYTES), "{outputs:?}");
    assert_eq!(harness.drains(), [], "once");
    // The FIN is retransmitted until the client acknowledges it.
    assert!(matches!(harness.waits(300)[..], [Output::Client { flags, .. }] if flags & FIN != 0));
    harness.client(REQUEST_BYTES, ANSWER_BYTES + 1, ACK | FIN, b"");
    assert_eq!((harness.engine.connections(), harness.engine.memory()), (0, 0));
    assert_eq!((harness.refused(), harness.service.counters.lost.get()), (vec![], 0));
}

#[test]
fn a_client_that_does_not_close_holds_the_agent_for_its_farewell_only() {
    let mut harness = answered();
    harness.drains();
    harness.client(REQUEST_BYTES, ANSWER_BYTES + 1, ACK, b"");
    assert_eq!(harness.engine.connections(), 1);
    harness.waits(5_000);
    assert_eq!((harness.engine.connections(), harness.engine.memory()), (0, 0));
}

#[test]
fn a_request_is_served_to_its_end() {
    let mut harness = requested();
    assert_eq!(harness.drains(), []);
    let outputs = harness.server(0, REQUEST_BYTES, ACK | PSH, OK);
    assert!(outputs.iter().any(|output| output.data() == OK), "{outputs:?}");
    let outputs = harness.client(REQUEST_BYTES, ANSWER_BYTES, ACK, b"");
    assert!(is_ended(&outputs[outputs.len() - 2..], harness.cookie + 1 + ANSWER_BYTES), "{outputs:?}");
    harness.client(REQUEST_BYTES, ANSWER_BYTES + 1, ACK | FIN, b"");
    assert_eq!((harness.engine.connections(), harness.engine.memory()), (0, 0));
}

#[test]
fn a_request_that_has_begun_is_read_and_served() {
    let mut harness = answered();
    harness.client(REQUEST_BYTES, ANSWER_BYTES, ACK | PSH, &GET[..10]);
    assert_eq!(harness.drains(), []);
    let outputs = harness.client(REQUEST_BYTES + 10, ANSWER_BYTES, ACK | PSH, &GET[10..]);
    assert!(
        outputs.iter().any(|output| matches!(output, Output::Server { .. }) && output.data() == GET),
        "{outputs:?}"
    );
    harness.server(ANSWER_BYTES, 2 * REQUEST_BYTES, ACK | PSH, OK);
    let outputs = harness.client(2 * REQUEST_BYTES, 2 * ANSWER_BYTES, ACK, b"");
    assert!(is_ended(&outputs[outputs.len() - 2..], harness.cookie + 1 + 2 * ANSWER_BYTES), "{outputs:?}");
}

#[test]
fn requests_in_one_segment_are_all_served() {
    let mut harness = Harness::new(RULES);
    harness.handshake();
    harness.data(0, &GET.repeat(2));
    harness.opens(0, Some(7));
    assert_eq!(harness.drains(), []);
    harness.server(0, REQUEST_BYTES, ACK | PSH, OK);
    let outputs = harness.client(2 * REQUEST_BYTES, ANSWER_BYTES, ACK, b"");
    assert!(
        outputs.iter().any(|output| matches!(output, Output::Server { .. }) && output.data() == GET),
        "{outputs:?}"
    );
    harness.server(ANSWER_BYTES, 2 * REQUEST_BYTES, ACK | PSH, OK);
    let outputs = harness.client(2 * REQUEST_BYTES, 2 * ANSWER_BYTES, ACK, b"");
    assert!(is_ended(&outputs[outputs.len() - 2..], harness.cookie + 1 + 2 * ANSWER_BYTES), "{outputs:?}");
}

#[test]
fn a_client_whose_server_has_closed_is_reset() {
    for is_early in [true, false] {
        let mut harness = requested();
        let mut outputs = if is_early { harness.drains() } else { vec![] };
        harness.server(0, REQUEST_BYTES, ACK | PSH | FIN, OK);
        outputs.extend(harness.client(REQUEST_BYTES, ANSWER_BYTES + 1, ACK, b""));
        if !is_early {
            outputs = harness.drains();
        }
        let resets = outputs.iter().filter(|output| output.flags() & RST != 0).count();
        assert_eq!((resets, harness.engine.connections()), (2, 0), "{outputs:?}");
    }
}

#[test]
fn a_new_client_is_not_answered() {
    let mut harness = answered();
    harness.drains();
    harness.client = "10.0.1.1:4712".parse().unwrap();
    assert_eq!(harness.syn(&[], b""), []);
}
