//! A draining agent (SIGTERM), and its connections whose every request is decided separately.

use crate::support::exact::{Exact, RULES, Seen, group};
use sluice_agent::seq::Seq;
use sluice_agent::wire::flags::{ACK, FIN, PSH, RST};

const GET: &[u8] = b"GET /b HTTP/1.1\r\nHost: a\r\n\r\n";
const ASKED: u32 = GET.len() as u32;
const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
const ANSWERED: u32 = OK.len() as u32;

/// Returns a connection whose request was forwarded to its server.
fn asked() -> Exact {
    let mut exact = Exact::new(RULES);
    exact.handshake();
    exact.data(0, GET);
    exact.opens(0, Some(7));
    exact
}

fn answered() -> Exact {
    let mut exact = asked();
    exact.server(0, ASKED, ACK | PSH, OK);
    exact.client(ASKED, ANSWERED, ACK, b"");
    exact
}

/// Returns whether the server is reset, and the client gets a FIN with this number.
fn parts(seen: &[Seen], behind: Seq) -> bool {
    let [Seen::Server { to, flags: RST, .. }, Seen::Client { seq, flags, data, .. }] = seen else { return false };
    *to == group(2) && *seq == behind && flags & (FIN | RST) == FIN && data.is_empty()
}

#[test]
fn a_connection_between_two_requests_ends_at_once() {
    let mut exact = answered();
    assert_eq!(exact.engine.connections(), 1);
    let seen = exact.drains();
    assert!(parts(&seen, exact.cookie + 1 + ANSWERED), "{seen:?}");
    assert_eq!(exact.drains(), [], "once");
    // The FIN is retransmitted until the client acknowledges it.
    assert!(matches!(exact.waits(300)[..], [Seen::Client { flags, .. }] if flags & FIN != 0));
    exact.client(ASKED, ANSWERED + 1, ACK | FIN, b"");
    assert_eq!((exact.engine.connections(), exact.engine.memory()), (0, 0));
    assert_eq!((exact.refused(), exact.service.counters.lost.get()), (vec![], 0));
}

#[test]
fn a_client_that_does_not_close_holds_the_agent_for_its_farewell_only() {
    let mut exact = answered();
    exact.drains();
    exact.client(ASKED, ANSWERED + 1, ACK, b"");
    assert_eq!(exact.engine.connections(), 1);
    exact.waits(5_000);
    assert_eq!((exact.engine.connections(), exact.engine.memory()), (0, 0));
}

#[test]
fn a_request_is_served_to_its_end() {
    let mut exact = asked();
    assert_eq!(exact.drains(), []);
    let seen = exact.server(0, ASKED, ACK | PSH, OK);
    assert!(seen.iter().any(|seen| seen.data() == OK), "{seen:?}");
    let seen = exact.client(ASKED, ANSWERED, ACK, b"");
    assert!(parts(&seen[seen.len() - 2..], exact.cookie + 1 + ANSWERED), "{seen:?}");
    exact.client(ASKED, ANSWERED + 1, ACK | FIN, b"");
    assert_eq!((exact.engine.connections(), exact.engine.memory()), (0, 0));
}

#[test]
fn a_request_that_has_begun_is_read_and_served() {
    let mut exact = answered();
    exact.client(ASKED, ANSWERED, ACK | PSH, &GET[..10]);
    assert_eq!(exact.drains(), []);
    let seen = exact.client(ASKED + 10, ANSWERED, ACK | PSH, &GET[10..]);
    assert!(seen.iter().any(|seen| matches!(seen, Seen::Server { .. }) && seen.data() == GET), "{seen:?}");
    exact.server(ANSWERED, 2 * ASKED, ACK | PSH, OK);
    let seen = exact.client(2 * ASKED, 2 * ANSWERED, ACK, b"");
    assert!(parts(&seen[seen.len() - 2..], exact.cookie + 1 + 2 * ANSWERED), "{seen:?}");
}

#[test]
fn requests_that_came_together_are_all_served() {
    let mut exact = Exact::new(RULES);
    exact.handshake();
    exact.data(0, &GET.repeat(2));
    exact.opens(0, Some(7));
    assert_eq!(exact.drains(), []);
    exact.server(0, ASKED, ACK | PSH, OK);
    let seen = exact.client(2 * ASKED, ANSWERED, ACK, b"");
    assert!(seen.iter().any(|seen| matches!(seen, Seen::Server { .. }) && seen.data() == GET), "{seen:?}");
    exact.server(ANSWERED, 2 * ASKED, ACK | PSH, OK);
    let seen = exact.client(2 * ASKED, 2 * ANSWERED, ACK, b"");
    assert!(parts(&seen[seen.len() - 2..], exact.cookie + 1 + 2 * ANSWERED), "{seen:?}");
}

#[test]
fn a_client_that_its_server_has_left_is_reset() {
    for is_early in [true, false] {
        let mut exact = asked();
        let mut seen = if is_early { exact.drains() } else { vec![] };
        exact.server(0, ASKED, ACK | PSH | FIN, OK);
        seen.extend(exact.client(ASKED, ANSWERED + 1, ACK, b""));
        if !is_early {
            seen = exact.drains();
        }
        let resets = seen.iter().filter(|seen| seen.flags() & RST != 0).count();
        assert_eq!((resets, exact.engine.connections()), (2, 0), "{seen:?}");
    }
}

#[test]
fn a_new_client_is_not_answered() {
    let mut exact = answered();
    exact.drains();
    exact.client = "10.0.1.1:4712".parse().unwrap();
    assert_eq!(exact.syn(&[], b""), []);
}
