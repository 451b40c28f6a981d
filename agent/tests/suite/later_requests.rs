//! Tests of what follows the first request if each request has its own group: the next request, or the FIN of client or
//! server.

use sluice_agent::order::Status;
use sluice_agent::wire::SegmentHeader;
use sluice_agent::wire::flags::{ACK, FIN, PSH, RST, SYN};

use crate::support::harness::{EACH, GET, Harness, ISN, OK, Output, SERVER_ISN, connected, group, order};

/// Returns a connection whose first request was answered. The rules decide about its next request separately.
fn answered() -> Harness {
    let mut harness = connected();
    harness.data(0, EACH);
    harness.opens(0, Some(7));
    harness.server(0, EACH.len() as u32, ACK | PSH, OK);
    harness.client(EACH.len() as u32, OK.len() as u32, ACK, b"");
    harness
}

#[test]
fn a_late_segment_of_the_server_before_is_not_the_next_ones() {
    let mut harness = answered();
    let (request_end, answer_end) = (EACH.len() as u32, OK.len() as u32);
    let outputs = harness.client(request_end, answer_end, ACK | PSH, GET);
    let [Output::Server { flags: RST, .. }, Output::Server { flags: SYN, to, .. }] = outputs[..] else {
        panic!("{outputs:?}")
    };
    assert_eq!(to, group(1));
    // The former server retransmits its answer, because the ACK was late. The agent drops the segment.
    assert_eq!(harness.server(0, request_end, ACK | PSH, OK), []);
    let outputs = harness.opens(request_end, Some(7));
    assert!(outputs.iter().any(|output| output.data() == GET), "{outputs:?}");
    // A segment of the former server does not count as an answer to the SYN to the later server either.
    let (source, destination) = (harness.service.address, harness.client);
    let seq = SERVER_ISN - 1_000_000;
    let head = SegmentHeader { source, destination, seq, ack: ISN + 1 + request_end, flags: ACK | PSH, window: 9 };
    assert_eq!(harness.sends(head, &[], OK), []);
}

#[test]
fn a_late_segment_of_a_server_that_was_left_resets_nothing() {
    let mut harness = answered();
    let (first_end, answer_end) = (EACH.len() as u32, OK.len() as u32);
    harness.client(first_end, answer_end, ACK | PSH, GET);
    // The SYN for the second request may reach a host that still has an earlier connection, because the reset to this
    // host was lost. The host sends a late segment with sequence numbers that the agent has not recorded.
    let (source, destination) = (harness.service.address, harness.client);
    let late =
        SegmentHeader { source, destination, seq: SERVER_ISN - 77_000_000, ack: ISN - 99, flags: ACK | PSH, window: 9 };
    assert_eq!(harness.sends(late, &[], OK), []);
    // The agent sends a reset with the sequence number that this host accepts, and then repeats its SYN.
    let outputs = harness.waits(250);
    let [Output::Server { seq, flags: RST, .. }, Output::Server { flags: SYN, .. }] = outputs[..] else {
        panic!("{outputs:?}")
    };
    assert_eq!(seq, ISN - 99);
    let outputs = harness.opens(first_end, Some(7));
    assert!(outputs.iter().any(|output| output.data() == GET), "{outputs:?}");
}

#[test]
fn late_data_among_the_numbers_of_a_reconnected_host_is_dropped() {
    let mut harness = answered();
    let (first_end, answer_end) = (EACH.len() as u32, OK.len() as u32);
    harness.client(first_end, answer_end, ACK | PSH, GET);
    // The server is the same host as before. Its new sequence numbers are in the range of its first answer.
    harness.opens(first_end, Some(7));
    let end = first_end + GET.len() as u32;
    for (at, flags, data) in [(0, ACK | PSH, OK), (7, ACK | PSH, &OK[7..]), (answer_end, ACK | FIN, &b""[..])] {
        assert_eq!(harness.server(at, first_end, flags, data), [], "acknowledges nothing of the second request");
    }
    // An ACK of the first connection with a later sequence number is dropped as well. An ACK with the next expected
    // sequence number is accepted, because it may open the window.
    assert_eq!(harness.server(answer_end, first_end, ACK, b""), []);
    assert_ne!(harness.server(0, first_end, ACK, b""), []);
    // A segment that acknowledges the request is forwarded. The data plane does not check acknowledgements, so the
    // agent sends no splice order while late data may still arrive: for 60 s after it has left the first connection.
    let outputs = harness.server(0, end, ACK | PSH, OK);
    assert!(outputs.iter().any(|output| output.data() == OK), "{outputs:?}");
    assert!(!outputs.iter().any(|output| matches!(output, Output::Order(_))), "{outputs:?}");
    harness.client(end, 2 * answer_end, ACK, b"");
    let waits_s = (0..61).find(|_| harness.waits(1_000).iter().any(|output| matches!(output, Output::Order(_))));
    assert_eq!(waits_s, Some(59));
}

#[test]
fn late_data_needs_no_agent_once_the_client_has_the_servers_end() {
    let mut harness = answered();
    let (first_end, answer_end) = (EACH.len() as u32, OK.len() as u32);
    harness.client(first_end, answer_end, ACK | PSH, GET);
    harness.opens(first_end, Some(7));
    let end = first_end + GET.len() as u32;
    harness.server(0, end, ACK | PSH, OK);
    harness.client(end, 2 * answer_end, ACK | FIN, b"");
    let outputs = harness.server(answer_end, end + 1, ACK | FIN, b"");
    assert!(
        !outputs.iter().any(|output| matches!(output, Output::Order(_))),
        "the client may not have the end yet: {outputs:?}"
    );
    let order = order(&harness.client(end + 1, 2 * answer_end + 1, ACK, b""));
    harness.confirms(&order, Status::Applied);
    assert_eq!((harness.engine.connections(), harness.engine.memory()), (0, 0));
}

#[test]
fn a_reconnected_host_may_answer_before_it_has_the_request() {
    let mut harness = answered();
    let (first_end, answer_end) = (EACH.len() as u32, OK.len() as u32);
    harness.client(first_end, answer_end, ACK | PSH, GET);
    harness.opens_from(SERVER_ISN + (1 << 30), first_end, Some(7));
    let outputs = harness.server(1 << 30, first_end, ACK | PSH | FIN, OK);
    assert!(outputs.iter().any(|output| output.data() == OK), "{outputs:?}");
}

#[test]
fn a_client_that_has_ended_needs_no_agent() {
    let mut harness = answered();
    let (request_end, answer_end) = (EACH.len() as u32, OK.len() as u32);
    let outputs = harness.client(request_end, answer_end, ACK | FIN, b"");
    let order = order(&outputs);
    assert!(outputs.iter().any(|output| output.flags() == ACK | FIN), "{outputs:?}");
    harness.confirms(&order, Status::Applied);
    assert_eq!((harness.engine.connections(), harness.engine.memory()), (0, 0));
    // The client sends its FIN directly behind its only request; the connection is spliced, so the answer may take any
    // time.
    let mut harness = connected();
    harness.client(0, 0, ACK | PSH | FIN, EACH);
    let outputs = harness.opens(0, Some(7));
    assert!(matches!(outputs[0], Output::Order(_)), "{outputs:?}");
}

#[test]
fn a_client_that_ends_with_more_requests_is_answered_by_their_groups() {
    let mut harness = connected();
    harness.client(0, 0, ACK | PSH | FIN, &[EACH, GET].concat());
    let request_end = EACH.len() as u32;
    let outputs = harness.opens(0, Some(7));
    assert!(!outputs.iter().any(|output| matches!(output, Output::Order(_))), "{outputs:?}");
    assert!(outputs.iter().all(|output| output.flags() & FIN == 0), "{outputs:?}");
    harness.server(0, request_end, ACK | PSH, OK);
    let end = request_end + GET.len() as u32 + 1;
    let outputs = harness.client(end, OK.len() as u32, ACK, b"");
    let [.., Output::Server { flags: RST, .. }, Output::Server { flags: SYN, to, .. }] = outputs[..] else {
        panic!("{outputs:?}")
    };
    assert_eq!(to, group(1));
    let outputs = harness.opens_from(SERVER_ISN + (1 << 30), request_end, Some(7));
    order(&outputs);
    assert!(outputs.iter().any(|output| output.data() == GET && output.flags() & FIN != 0), "{outputs:?}");
}

#[test]
fn a_request_behind_the_servers_end_is_reset() {
    for next in [EACH, GET] {
        let mut harness = answered();
        let (request_end, answer_end) = (EACH.len() as u32, OK.len() as u32);
        harness.server(answer_end, request_end, ACK | FIN, b"");
        // A segment that the client sent before it received the server's FIN does not reset the connection.
        let outputs = harness.client(request_end, answer_end, ACK | PSH, b"");
        assert!(outputs.iter().all(|output| output.flags() & RST == 0), "{outputs:?}");
        let outputs = harness.client(request_end, answer_end + 1, ACK | PSH, next);
        let outputs = outputs
            .iter()
            .chain(&harness.client(request_end, answer_end + 1, ACK | PSH, next))
            .cloned()
            .collect::<Vec<_>>();
        assert!(!outputs.iter().any(|output| output.flags() == SYN), "another server: {outputs:?}");
        let resets = outputs.iter().filter(|output| output.flags() & RST != 0).count();
        assert_eq!((resets, harness.engine.connections()), (2, 0), "{outputs:?}");
    }
}
