//! A connection behind its first request, where each request has its own group: the next request, and the end of either side.

use sluice_agent::order::Status;
use sluice_agent::wire::Head;
use sluice_agent::wire::flags::{ACK, FIN, PSH, RST, SYN};

use crate::support::exact::{EACH, Exact, GET, ISN, OK, SERVER_ISN, Seen, connected, group, order};

/// A connection with one answered request, whose next is decided anew.
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
    // It repeats its answer, since the acknowledgement was late.
    assert_eq!(exact.server(0, request_end, ACK | PSH, OK), []);
    let seen = exact.opens(request_end, Some(7));
    assert!(seen.iter().any(|seen| seen.data() == GET), "{seen:?}");
    // A segment of the one before means nothing to the one after, either.
    let (source, destination) = (exact.service.address, exact.client);
    let seq = SERVER_ISN - 1_000_000;
    let head = Head { source, destination, seq, ack: ISN + 1 + request_end, flags: ACK | PSH, window: 9 };
    assert_eq!(exact.sends(head, &[], OK), []);
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
    // Half-closed with its only request: the answer may take its time.
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
    let seen = exact.opens(request_end, Some(7));
    order(&seen);
    assert!(seen.iter().any(|seen| seen.data() == GET && seen.flags() & FIN != 0), "{seen:?}");
}

#[test]
fn a_request_behind_the_servers_end_is_reset() {
    for next in [EACH, GET] {
        let mut exact = answered();
        let (request_end, answer_end) = (EACH.len() as u32, OK.len() as u32);
        exact.server(answer_end, request_end, ACK | FIN, b"");
        // On its way when the end came: it does not know of it.
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
