//! A connection behind its first request, where each request has its own group: the next request, and the FIN of
//! either side.

use sluice_agent::order::Status;
use sluice_agent::wire::Head;
use sluice_agent::wire::flags::{ACK, FIN, PSH, RST, SYN};

use crate::support::exact::{EACH, Exact, GET, ISN, OK, SERVER_ISN, Seen, connected, group, order};

/// Returns a connection with one answered request, whose next request is decided separately.
fn answered() -> Exact {
    let mut exact = connected();
    exact.data(0, EACH);
    exact.opens(0, Some(7));
    exact.server(0, EACH.len() as u32, ACK | PSH, OK);
    exact.client(EACH.len() as u32, OK.len() as u32, ACK, b"");
    exact
}

#[test]
fn a_late_segment_of_the_server_before_is_not_the_next_ones() {
    let mut exact = answered();
    let (request_end, answer_end) = (EACH.len() as u32, OK.len() as u32);
    let seen = exact.client(request_end, answer_end, ACK | PSH, GET);
    let [Seen::Server { flags: RST, .. }, Seen::Server { flags: SYN, to, .. }] = seen[..] else { panic!("{seen:?}") };
    assert_eq!(to, group(1));
    // The former server repeats its answer, because the ACK was late.
    assert_eq!(exact.server(0, request_end, ACK | PSH, OK), []);
    let seen = exact.opens(request_end, Some(7));
    assert!(seen.iter().any(|seen| seen.data() == GET), "{seen:?}");
    // A segment of the former server is no answer to the later one's SYN, either.
    let (source, destination) = (exact.service.address, exact.client);
    let seq = SERVER_ISN - 1_000_000;
    let head = Head { source, destination, seq, ack: ISN + 1 + request_end, flags: ACK | PSH, window: 9 };
    assert_eq!(exact.sends(head, &[], OK), []);
}

#[test]
fn a_late_segment_of_a_server_that_was_left_resets_nothing() {
    let mut exact = answered();
    let (first_end, answer_end) = (EACH.len() as u32, OK.len() as u32);
    exact.client(first_end, answer_end, ACK | PSH, GET);
    // The server of the first request, which may get the second one as well, repeats its answer, or has missed its
    // reset. The numbers are none that the agent remembers.
    let (source, destination) = (exact.service.address, exact.client);
    let late = Head { source, destination, seq: SERVER_ISN - 77_000_000, ack: ISN - 99, flags: ACK | PSH, window: 9 };
    assert_eq!(exact.sends(late, &[], OK), []);
    // A repeated SYN follows a reset with the number that this server would accept.
    let seen = exact.waits(250);
    let [Seen::Server { seq, flags: RST, .. }, Seen::Server { flags: SYN, .. }] = seen[..] else { panic!("{seen:?}") };
    assert_eq!(seq, ISN - 99);
    let seen = exact.opens(first_end, Some(7));
    assert!(seen.iter().any(|seen| seen.data() == GET), "{seen:?}");
}

#[test]
fn late_data_among_the_numbers_of_a_host_that_is_opened_anew_is_dropped() {
    let mut exact = answered();
    let (first_end, answer_end) = (EACH.len() as u32, OK.len() as u32);
    exact.client(first_end, answer_end, ACK | PSH, GET);
    // The same host: its new numbers begin among those of its first answer.
    exact.opens(first_end, Some(7));
    let end = first_end + GET.len() as u32;
    for (at, flags, data) in [(0, ACK | PSH, OK), (7, ACK | PSH, &OK[7..]), (answer_end, ACK | FIN, &b""[..])] {
        assert_eq!(exact.server(at, first_end, flags, data), [], "acknowledges nothing of the second request");
    }
    // An ACK of the first connection that lies ahead is dropped as well; an ACK with the next number opens a window.
    assert_eq!(exact.server(answer_end, first_end, ACK, b""), []);
    assert_ne!(exact.server(0, first_end, ACK, b""), []);
    // A segment that acknowledges the request passes. The data plane does not check acknowledgements, so it gets no
    // order while late data may still arrive.
    let seen = exact.server(0, end, ACK | PSH, OK);
    assert!(seen.iter().any(|seen| seen.data() == OK), "{seen:?}");
    assert!(!seen.iter().any(|seen| matches!(seen, Seen::Order(_))), "{seen:?}");
    exact.client(end, 2 * answer_end, ACK, b"");
    let waits_s = (0..61).find(|_| exact.waits(1_000).iter().any(|seen| matches!(seen, Seen::Order(_))));
    assert_eq!(waits_s, Some(59));
}

#[test]
fn late_data_needs_no_agent_once_the_client_has_the_servers_end() {
    let mut exact = answered();
    let (first_end, answer_end) = (EACH.len() as u32, OK.len() as u32);
    exact.client(first_end, answer_end, ACK | PSH, GET);
    exact.opens(first_end, Some(7));
    let end = first_end + GET.len() as u32;
    exact.server(0, end, ACK | PSH, OK);
    exact.client(end, 2 * answer_end, ACK | FIN, b"");
    let seen = exact.server(answer_end, end + 1, ACK | FIN, b"");
    assert!(!seen.iter().any(|seen| matches!(seen, Seen::Order(_))), "the client may not have the end yet: {seen:?}");
    let order = order(&exact.client(end + 1, 2 * answer_end + 1, ACK, b""));
    exact.confirms(&order, Status::Applied);
    assert_eq!((exact.engine.connections(), exact.engine.memory()), (0, 0));
}

#[test]
fn a_host_that_is_opened_anew_may_answer_before_it_has_the_request() {
    let mut exact = answered();
    let (first_end, answer_end) = (EACH.len() as u32, OK.len() as u32);
    exact.client(first_end, answer_end, ACK | PSH, GET);
    exact.opens_from(SERVER_ISN + (1 << 30), first_end, Some(7));
    let seen = exact.server(1 << 30, first_end, ACK | PSH | FIN, OK);
    assert!(seen.iter().any(|seen| seen.data() == OK), "{seen:?}");
}

#[test]
fn a_client_that_has_ended_needs_no_agent() {
    let mut exact = answered();
    let (request_end, answer_end) = (EACH.len() as u32, OK.len() as u32);
    let seen = exact.client(request_end, answer_end, ACK | FIN, b"");
    let order = order(&seen);
    assert!(seen.iter().any(|seen| seen.flags() == ACK | FIN), "{seen:?}");
    exact.confirms(&order, Status::Applied);
    assert_eq!((exact.engine.connections(), exact.engine.memory()), (0, 0));
    // Half-closed behind its only request: the answer may take its time.
    let mut exact = connected();
    exact.client(0, 0, ACK | PSH | FIN, EACH);
    let seen = exact.opens(0, Some(7));
    assert!(matches!(seen[0], Seen::Order(_)), "{seen:?}");
}

#[test]
fn a_client_that_ends_with_more_requests_is_answered_by_their_groups() {
    let mut exact = connected();
    exact.client(0, 0, ACK | PSH | FIN, &[EACH, GET].concat());
    let request_end = EACH.len() as u32;
    let seen = exact.opens(0, Some(7));
    assert!(!seen.iter().any(|seen| matches!(seen, Seen::Order(_))), "{seen:?}");
    assert!(seen.iter().all(|seen| seen.flags() & FIN == 0), "{seen:?}");
    exact.server(0, request_end, ACK | PSH, OK);
    let end = request_end + GET.len() as u32 + 1;
    let seen = exact.client(end, OK.len() as u32, ACK, b"");
    let [.., Seen::Server { flags: RST, .. }, Seen::Server { flags: SYN, to, .. }] = seen[..] else {
        panic!("{seen:?}")
    };
    assert_eq!(to, group(1));
    let seen = exact.opens_from(SERVER_ISN + (1 << 30), request_end, Some(7));
    order(&seen);
    assert!(seen.iter().any(|seen| seen.data() == GET && seen.flags() & FIN != 0), "{seen:?}");
}

#[test]
fn a_request_behind_the_servers_end_is_reset() {
    for next in [EACH, GET] {
        let mut exact = answered();
        let (request_end, answer_end) = (EACH.len() as u32, OK.len() as u32);
        exact.server(answer_end, request_end, ACK | FIN, b"");
        // A segment that was under way when the server closed, from a client that has not received the FIN.
        let seen = exact.client(request_end, answer_end, ACK | PSH, b"");
        assert!(seen.iter().all(|seen| seen.flags() & RST == 0), "{seen:?}");
        let seen = exact.client(request_end, answer_end + 1, ACK | PSH, next);
        let seen =
            seen.iter().chain(&exact.client(request_end, answer_end + 1, ACK | PSH, next)).cloned().collect::<Vec<_>>();
        assert!(!seen.iter().any(|seen| seen.flags() == SYN), "another server: {seen:?}");
        let resets = seen.iter().filter(|seen| seen.flags() & RST != 0).count();
        assert_eq!((resets, exact.engine.connections()), (2, 0), "{seen:?}");
    }
}
