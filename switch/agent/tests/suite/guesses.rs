//! Connections that the data plane has opened to a guessed server, segment by segment.

use crate::support::exact::{Exact, GET, GUARDING, ISN, RULES, SERVER_ISN, Seen, group};
use crate::support::guess::{FACTS, OF_B, OF_BOTH, guessing};
use sluice_agent::facts::Facts;
use sluice_agent::order::{Order, Remember, Status, Turn};
use sluice_agent::seq::Seq;
use sluice_agent::wire::flags::{ACK, FIN, PSH, RST, SYN};

const GUESSED_B: Facts = Facts { server: OF_B, ..FACTS };

fn order(seen: &[Seen], turn: Turn) -> Order {
    let found = seen.iter().find_map(|seen| match seen {
        Seen::Order(order) if order.turn == turn => Some(*order),
        _ => None,
    });
    found.unwrap_or_else(|| panic!("no order in {seen:?}"))
}

fn take() -> Order {
    Order::take("10.0.1.1:4711".parse().unwrap(), "10.0.0.100:80".parse().unwrap(), ISN)
}

/// Returns whether these are a reset of the guessed server and a SYN to a group, and nothing else.
fn leaves_for(seen: &[Seen], n: u8) -> bool {
    matches!(seen, [Seen::Server { seq, flags: RST, .. }, Seen::Server { to, seq: first, flags: SYN, .. }]
        if *seq == ISN + 1 && *to == group(n) && *first == ISN)
}

fn handed(seen: &[Seen]) -> Vec<u8> {
    let data = |seen: &Seen| if let Seen::Server { data, .. } = seen { data.clone() } else { Vec::new() };
    seen.iter().flat_map(data).collect()
}

#[test]
fn a_hit_is_spliced_without_a_delta_and_handed_on_as_it_came() {
    let mut exact = guessing(RULES);
    let seen = exact.guessed(0, GET);
    let splice = order(&seen[..1], Turn::Spliced);
    assert_eq!((splice.delta, splice.shift, splice.remember, splice.generation), (0, 0, Remember::Guess, 1));
    let request = Seen::Server {
        to: group(1),
        seq: ISN + 1,
        ack: SERVER_ISN + 1,
        flags: ACK | PSH,
        window: 100,
        data: GET.to_vec(),
    };
    assert_eq!(seen[1..], [request], "the client gets nothing from the agent");
    assert_eq!(exact.confirms(&splice, Status::Applied), []);
    assert_eq!((exact.engine.connections(), exact.engine.memory()), (0, 0));
    assert_eq!((exact.guesses(), exact.service.counters.spliced.get()), ([1, 0, 0], 1));
}

#[test]
fn what_comes_behind_a_hit_before_the_splice_is_handed_on_whole() {
    let mut exact = guessing(RULES);
    let body = vec![b'x'; 66_000];
    let post =
        [format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n", body.len()).as_bytes(), &body].concat();
    let mut seen = Vec::new();
    for (n, part) in post.chunks(1446).enumerate() {
        seen.extend(exact.guessed(1446 * n as u32, part));
    }
    // Only the client has received the server's window, so the agent does not limit itself.
    assert_eq!(handed(&seen).len(), post.len());
    assert!(handed(&seen) == post && !seen.iter().any(|seen| matches!(seen, Seen::Client { .. })));
}

#[test]
fn a_miss_leaves_the_wrong_server_before_it_has_seen_a_byte() {
    let mut exact = guessing_wrong();
    let seen = exact.guessed_with(GUESSED_B, 0, 0, ACK | PSH, GET);
    assert!(leaves_for(&seen, 1), "{seen:?}");
    let seen = exact.opens(0, Some(10));
    let splice = order(&seen[..1], Turn::Spliced);
    assert_eq!((splice.delta, splice.shift), ((exact.cookie - SERVER_ISN) as u32, 3));
    assert_eq!(handed(&seen), GET);
    assert_eq!(exact.guesses(), [0, 1, 0]);
}

/// As [`guessing`], but the wrong server's numbers differ from the right one's.
fn guessing_wrong() -> Exact {
    let mut exact = guessing(RULES);
    exact.cookie = Seq(u32::MAX);
    exact
}

#[test]
fn the_delta_of_a_miss_is_that_of_the_wrong_servers_numbers() {
    let mut exact = guessing_wrong();
    let seen = exact.guessed_with(GUESSED_B, 0, 0, ACK | PSH, GET);
    assert!(leaves_for(&seen, 1), "{seen:?}");
    let splice = order(&exact.opens(0, Some(7)), Turn::Spliced);
    assert_eq!(SERVER_ISN + 1 + splice.delta, exact.cookie + 1);
    // Until the order is confirmed, the agent translates.
    let seen = exact.server(0, GET.len() as u32, ACK | PSH, b"HTTP/1.1 200 OK\r\n");
    assert!(matches!(seen[..], [Seen::Client { seq, .. }] if seq == exact.cookie + 1), "{seen:?}");
    assert_eq!(exact.confirms(&splice, Status::Applied), []);
    assert_eq!(exact.engine.connections(), 0);
}

#[test]
fn a_server_of_both_groups_is_right_for_either() {
    for path in ["/", "/b"] {
        let mut exact = guessing(RULES);
        let get = format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n");
        exact.guessed_with(Facts { server: OF_BOTH, ..FACTS }, 0, 0, ACK | PSH, get.as_bytes());
        assert_eq!(exact.guesses(), [1, 0, 0], "{path}");
    }
}

#[test]
fn a_request_split_at_every_byte_is_not_acknowledged() {
    for (facts, is_right) in [(FACTS, true), (GUESSED_B, false)] {
        for at in 1..GET.len() {
            for is_reversed in [false, true] {
                let mut exact = guessing_wrong();
                let (first, second) = GET.split_at(at);
                let parts = [(0, first), (at as u32, second)];
                let [one, two] = if is_reversed { [parts[1], parts[0]] } else { parts };
                let mut seen = exact.guessed_with(facts, one.0, 0, ACK | PSH, one.1);
                seen.extend(exact.guessed_with(facts, two.0, 0, ACK | PSH, two.1));
                if is_reversed {
                    // Out-of-order bytes must be acknowledged, so the agent takes the connection.
                    assert_eq!(seen[0], Seen::Order(take()), "split at {at}");
                    assert!(matches!(seen[1], Seen::Client { ack, flags: ACK, .. } if ack == ISN + 1), "{seen:?}");
                    seen.drain(..2);
                }
                if !is_right {
                    assert!(leaves_for(&seen, 1), "split at {at}: {seen:?}");
                    seen = exact.opens(0, Some(7));
                }
                assert_eq!(handed(&seen), GET, "split at {at}");
                assert!(!seen.iter().any(|seen| matches!(seen, Seen::Client { .. })), "split at {at}: {seen:?}");
            }
        }
    }
}

#[test]
fn what_is_not_the_beginning_decides_nothing() {
    // The rules decide differently about the second part alone than about both parts.
    let mut exact = guessing(GUARDING);
    let head = b"POST /admin HTTP/1.1\r\nHost: a\r\nContent-Length: 39\r\n\r\n";
    let seen = exact.guessed(head.len() as u32, GET);
    assert!(!seen.iter().any(|seen| matches!(seen, Seen::Server { .. })), "{seen:?}");
    let seen = exact.guessed(0, head);
    assert!(handed(&seen).is_empty(), "{seen:?}");
    assert!(seen.iter().any(|seen| seen.data().starts_with(b"HTTP/1.1 403")), "{seen:?}");
}

#[test]
fn what_is_acknowledged_is_the_agents_until_the_guessed_server_has_it() {
    let mut exact = guessing(RULES);
    let facts = Facts { server: OF_BOTH, ..FACTS };
    let body = format!("{:6000}<purchase><total>1</total></purchase>", "");
    let head = "POST /x HTTP/1.1\r\nHost: a\r\nContent-Type: text/xml\r\nContent-Length:";
    let post = format!("{head} {}\r\n\r\n{body}", body.len());
    let post = post.as_bytes();
    let mut seen = Vec::new();
    for (n, part) in post.chunks(1446).enumerate() {
        seen.extend(exact.guessed_with(facts, 1446 * n as u32, 0, ACK | PSH, part));
    }
    // The connection is taken before any byte is acknowledged, and nothing is spliced yet.
    let taken = seen.iter().position(|seen| *seen == Seen::Order(take())).unwrap();
    let acknowledged = seen.iter().position(|seen| matches!(seen, Seen::Client { .. })).unwrap();
    assert!(taken < acknowledged, "{seen:?}");
    assert_eq!(exact.confirms(&take(), Status::Applied), []);
    seen.extend(exact.waits(1));
    let rest = exact.server(0, 1446, ACK, b"");
    let all = [handed(&seen), handed(&rest)].concat();
    assert!(all.len() >= 4096 && all == post[..all.len()], "{} of {}", all.len(), post.len());
    let seen = exact.server(0, post.len() as u32, ACK, b"");
    let splice = order(&seen, Turn::Spliced);
    assert_eq!((splice.delta, splice.shift), (0, 0));
    assert_eq!(exact.guesses(), [1, 0, 0]);
}

#[test]
fn a_request_that_comes_again_is_handed_on_again() {
    let mut exact = guessing(RULES);
    let splice = order(&exact.guessed(0, GET), Turn::Spliced);
    let seen = exact.guessed(0, GET);
    assert_eq!(handed(&seen), GET);
    // The order was lost.
    assert_eq!(exact.waits(20), [Seen::Order(splice)]);
    assert_eq!(exact.guesses(), [1, 0, 0]);
    // In case of a wrong guess, repeated bytes are not sent while the right server is being connected.
    let mut exact = guessing(RULES);
    exact.guessed_with(GUESSED_B, 0, 0, ACK | PSH, GET);
    assert_eq!(exact.guessed_with(GUESSED_B, 0, 0, ACK | PSH, GET), []);
    assert_eq!(exact.data(0, GET), []);
}

#[test]
fn another_agent_takes_an_unacknowledged_request() {
    let mut first = guessing(RULES);
    let (head, rest) = GET.split_at(20);
    assert_eq!(first.guessed(0, head), []);
    let mut second = guessing(RULES);
    assert_eq!(second.guessed(0, head), []);
    let seen = second.guessed(20, rest);
    assert_eq!(handed(&seen), GET);
}

#[test]
fn a_server_that_has_spoken_cannot_be_left() {
    let spoken = Facts { has_spoken: true, ..GUESSED_B };
    for (facts, received) in [(spoken, 0), (spoken, 9)] {
        let mut exact = guessing_wrong();
        let seen = exact.guessed_with(facts, 0, received, ACK | PSH, GET);
        assert!(seen.iter().all(|seen| seen.flags() & RST != 0 && seen.data().is_empty()), "{seen:?}");
        let ends: Vec<_> = seen.iter().filter(|seen| matches!(seen, Seen::Client { .. })).collect();
        assert!(matches!(ends[..], [Seen::Client { seq, .. }] if *seq == exact.cookie + 1 + received), "{seen:?}");
        assert_eq!((exact.guesses(), exact.engine.connections()), ([0, 1, 1], 0));
    }
    // The end of the server's response is unknown, and so is the start of the next one.
    let mut exact = guessing_wrong();
    let seen = exact.guessed_with(spoken, 0, 9, ACK | PSH, b"GET /b HTTP/1.1\r\nHost: a\r\n\r\n");
    assert!(seen.iter().all(|seen| seen.flags() & RST != 0), "{seen:?}");
    assert_eq!(exact.guesses(), [1, 0, 1]);
    // The guess is right, so the server may stay.
    let mut exact = guessing(RULES);
    let seen = exact.guessed_with(Facts { has_spoken: true, ..FACTS }, 0, 9, ACK | PSH, GET);
    assert_eq!((handed(&seen), order(&seen, Turn::Spliced).delta), (GET.to_vec(), 0));
}

#[test]
fn a_client_that_was_answered_by_the_wrong_server_is_reset() {
    // While the request is being read.
    let mut exact = guessing_wrong();
    assert_eq!(exact.guessed_with(GUESSED_B, 0, 0, ACK | PSH, &GET[..9]), []);
    exact.guessed_with(GUESSED_B, 9, 5, ACK | PSH, &GET[9..]);
    assert_eq!((exact.guesses(), exact.engine.connections()), ([0, 1, 1], 0));
    // While the right server is being connected: the client would take its numbers for old ones.
    let mut exact = guessing_wrong();
    exact.guessed_with(GUESSED_B, 0, 0, ACK | PSH, GET);
    let seen = exact.client(GET.len() as u32, 5, ACK, b"");
    assert!(seen.iter().any(|seen| matches!(seen, Seen::Server { to, flags: RST, .. } if *to == group(1))), "{seen:?}");
    assert!(seen.iter().any(|seen| matches!(seen, Seen::Client { seq, .. } if *seq == exact.cookie + 6)), "{seen:?}");
    assert_eq!((exact.guesses(), exact.engine.connections()), ([0, 1, 1], 0));
}

#[test]
fn a_refusal_takes_the_connection_and_leaves_the_server() {
    let mut exact = guessing(GUARDING);
    let get = b"GET /admin HTTP/1.1\r\nHost: a\r\n\r\n";
    let seen = exact.guessed(0, get);
    let [Seen::Order(taken), Seen::Server { flags: RST, seq, .. }, Seen::Client { seq: answer_seq, data, flags, .. }] =
        &seen[..]
    else {
        panic!("{seen:?}")
    };
    assert_eq!((*taken, *seq, *answer_seq), (take(), ISN + 1, SERVER_ISN + 1));
    assert!(data.starts_with(b"HTTP/1.1 403 ") && flags & FIN != 0);
    // The client's answer comes to the agent, without a header.
    exact.confirms(&take(), Status::Applied);
    let answered = data.len() as u32 + 1;
    assert_eq!(exact.client(get.len() as u32, answered, ACK, b""), []);
    let last = exact.client(get.len() as u32, answered, ACK | FIN, b"");
    assert!(matches!(last[..], [Seen::Client { ack, .. }] if ack == ISN + 2 + get.len() as u32), "{last:?}");
    assert_eq!((exact.engine.connections(), exact.guesses()), (0, [0, 0, 0]));
    // A client whose server has sent data cannot be sent the reason.
    let mut exact = guessing(GUARDING);
    let seen = exact.guessed_with(Facts { has_spoken: true, ..FACTS }, 0, 9, ACK | PSH, get);
    assert!(seen.iter().all(|seen| seen.flags() & RST != 0), "{seen:?}");
    assert_eq!((exact.refused(), exact.guesses()), (vec![("a rule refuses", 1)], [0, 0, 1]));
}

#[test]
fn half_a_request_is_408_in_the_servers_numbers() {
    let mut exact = guessing(RULES);
    exact.guessed(0, b"G");
    let seen = exact.waits(10);
    assert!(
        matches!(seen[..], [Seen::Order(_), Seen::Client { seq, ack, .. }] if seq == SERVER_ISN + 1 && ack == ISN + 2)
    );
    exact.confirms(&take(), Status::Applied);
    let seen = exact.waits(2_000);
    assert!(seen.iter().any(|seen| seen.data().starts_with(b"HTTP/1.1 408 ")), "{seen:?}");
    assert!(seen.iter().any(|seen| matches!(seen, Seen::Server { flags: RST, .. })), "{seen:?}");
}

#[test]
fn a_connection_is_asked_for_until_it_is_the_agents() {
    let mut exact = guessing(RULES);
    exact.guessed(0, b"G");
    let seen = exact.waits(29);
    assert_eq!(seen.iter().filter(|seen| **seen == Seen::Order(take())).count(), 1);
    assert_eq!(exact.waits(1), [Seen::Order(take())]);
    exact.confirms(&take(), Status::Applied);
    assert_eq!(exact.waits(1_000), []);
    // Another agent has taken the connection, or it has ended: the client is reset only if bytes were acknowledged.
    for status in [Status::Foreign, Status::NoConnection] {
        let mut exact = guessing(RULES);
        exact.guessed(0, b"G");
        exact.waits(10);
        let seen = exact.confirms(&take(), status);
        assert!(seen.iter().all(|seen| matches!(seen, Seen::Client { flags, .. } if flags & RST != 0)), "{seen:?}");
        assert_eq!((exact.engine.connections(), exact.service.counters.lost.get()), (0, 1));
    }
}

#[test]
fn client_half_closes_with_its_request() {
    for (facts, is_right) in [(FACTS, true), (GUESSED_B, false)] {
        let mut exact = guessing_wrong();
        let mut seen = exact.guessed_with(facts, 0, 0, ACK | PSH | FIN, GET);
        if !is_right {
            assert!(leaves_for(&seen, 1), "{seen:?}");
            seen = exact.opens(0, Some(7));
        }
        assert!(seen.iter().any(|seen| seen.data() == GET && seen.flags() == ACK | PSH | FIN), "{seen:?}");
    }
}

#[test]
fn client_resets_while_the_right_server_is_being_opened() {
    let mut exact = guessing(RULES);
    exact.guessed_with(GUESSED_B, 0, 0, ACK | PSH, GET);
    let seen = exact.client(GET.len() as u32, 0, RST, b"");
    assert!(matches!(seen[..], [Seen::Server { to, flags: RST, .. }] if to == group(1)), "{seen:?}");
    assert_eq!(exact.engine.connections(), 0);
}

#[test]
fn a_reset_of_the_wrong_server_that_is_lost_is_sent_again() {
    let mut exact = guessing(RULES);
    exact.guessed_with(GUESSED_B, 0, 0, ACK | PSH, GET);
    let seen = exact.waits(250);
    assert!(leaves_for(&seen, 1), "{seen:?}");
}

#[test]
fn the_right_server_refuses() {
    let mut exact = guessing(RULES);
    exact.guessed_with(GUESSED_B, 0, 0, ACK | PSH, GET);
    let seen = exact.refuses_all(0);
    let [Seen::Client { seq, data, .. }] = &seen[..] else { panic!("{seen:?}") };
    assert!(data.starts_with(b"HTTP/1.1 503 ") && *seq == SERVER_ISN + 1);
}

#[test]
fn window_scales_unlike() {
    let cases = [
        // The scales of the wrong server, the client and the right server; the scale that the right server is
        // offered, and the shift.
        (Some(7), Some(9), Some(10), Some(9), 3),
        (Some(10), Some(9), Some(7), Some(9), -3),
        (None, Some(9), None, None, 0),
        (Some(7), None, None, None, 0),
        (Some(7), Some(9), None, Some(9), -7),
    ];
    for (server_scale, client_scale, scale, offered, shift) in cases {
        let mut exact = guessing(RULES);
        let facts = Facts { server_scale, client_scale, ..GUESSED_B };
        let frame = exact.guessed_frame(facts, 0, 0, ACK | PSH, GET);
        let offers = exact.offers(&frame);
        assert_eq!(offers.iter().map(|offer| offer.scale).collect::<Vec<_>>(), [offered], "{facts:?}");
        let order = order(&exact.opens(0, scale), Turn::Spliced);
        let client_shift = if scale.is_none() { offered.unwrap_or(0) } else { 0 };
        assert_eq!((order.shift, order.client_shift), (shift, client_shift), "{facts:?}");
    }
}

#[test]
fn what_the_handshake_did_not_permit_the_right_server_is_not_offered() {
    let mut exact = guessing(RULES);
    let facts = Facts { sack: false, mss: 1000, ..GUESSED_B };
    let frame = exact.guessed_frame(facts, 0, 0, ACK | PSH, GET);
    let offers = exact.offers(&frame);
    assert!(matches!(offers[..], [offer] if !offer.sack && offer.mss == Some(1000)), "{offers:?}");
}

#[test]
fn each_request_of_a_guessed_connection_to_its_own_group() {
    let mut exact = guessing(RULES);
    let (to_b, to_a) = (b"GET /b HTTP/1.1\r\nHost: a\r\n\r\n", GET);
    let seen = exact.guessed_with(GUESSED_B, 0, 0, ACK | PSH, to_b);
    assert_eq!(seen[0], Seen::Order(take()), "the response is for the agent: {seen:?}");
    assert_eq!(handed(&seen), to_b);
    exact.confirms(&take(), Status::Applied);
    let response = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc";
    let seen = exact.server(0, to_b.len() as u32, ACK | PSH, response);
    assert!(matches!(&seen[..], [Seen::Client { seq, data, .. }] if *seq == SERVER_ISN + 1 && data == response));
    let seen = exact.client(to_b.len() as u32, response.len() as u32, ACK | PSH, to_a);
    let asks = |seen: &Seen| matches!(seen, Seen::Server { to, flags: SYN, .. } if *to == group(1));
    assert!(seen.iter().any(asks) && handed(&seen).is_empty(), "{seen:?}");
    assert_eq!(exact.guesses(), [1, 0, 0]);
}

#[test]
fn expect_100_continue_of_a_guessed_connection() {
    let mut exact = guessing(RULES);
    let facts = Facts { server: 0, ..FACTS };
    let head =
        b"POST /x HTTP/1.1\r\nHost: a\r\nContent-Type: text/xml\r\nContent-Length: 40\r\nExpect: 100-continue\r\n\r\n";
    let seen = exact.guessed_with(facts, 0, 0, ACK | PSH, head);
    let [Seen::Order(_), Seen::Client { data, .. }] = &seen[..] else { panic!("{seen:?}") };
    let answered = data.len() as u32;
    exact.confirms(&take(), Status::Applied);
    let seen = exact.client(head.len() as u32, answered, ACK | PSH, b"<purchase><total>6000</total></purchase>");
    assert!(leaves_for(&seen, 3), "{seen:?}");
    exact.opens(0, Some(7));
    let seen = exact.server(0, head.len() as u32 + 40, ACK, b"");
    assert_eq!(order(&seen, Turn::Spliced).delta, answered, "the agent's answer is in it");
}

#[test]
fn a_port_that_is_used_again_begins_anew() {
    let mut exact = guessing(RULES);
    exact.guessed(0, GET);
    let facts = Facts { isn: Seq(5), ..GUESSED_B };
    let seen = exact.guessed_with(facts, 0, 0, ACK | PSH, GET);
    assert!(matches!(seen[..], [Seen::Server { seq, flags: RST, .. }, _] if seq == Seq(6)), "{seen:?}");
    assert_eq!(exact.engine.connections(), 1);
}

#[test]
fn a_malformed_header_is_ignored() {
    let mut exact = guessing(GUARDING);
    let whole = exact.guessed_frame(FACTS, 0, 0, ACK | PSH, GET);
    for length in 0..whole.len() {
        assert_eq!(exact.take(&whole[..length]), [], "{length} bytes");
    }
    for (at, byte) in [(14, 15), (15, 254), (26, 0x86), (27, 1), (28, 0x60)] {
        let mut frame = whole.clone();
        frame[at] = byte;
        assert_eq!(exact.take(&frame), [], "byte {at}");
    }
    // Without data, with a SYN, or with bytes before the request only: there is no request to read.
    for (at, flags, data) in [(0, ACK, &b""[..]), (0, SYN | ACK, GET), (0, PSH, GET), (u32::MAX, ACK, b"x")] {
        assert_eq!(exact.guessed_with(FACTS, at, 0, flags, data), [], "flags {flags}");
    }
    assert_eq!(exact.engine.connections(), 0);
    let tiny = Facts { mss: 0, ..FACTS };
    let seen = exact.guessed_with(tiny, 0, 0, ACK | PSH, b"GET /admin HTTP/1.1\r\nHost: a\r\n\r\n");
    assert!(seen.len() < 20, "a client that takes nothing is answered in pieces: {seen:?}");
}

#[test]
fn a_guess_of_tls() {
    let content = r#"{"protocol": "tls", "default": {"to": "a"}, "rules": [
        {"name": "b", "match": {"sni": "b.example"}, "to": "b"}]}"#;
    for (facts, guesses) in [(FACTS, [1, 0, 0]), (GUESSED_B, [0, 1, 0])] {
        let mut exact = guessing(content);
        let hello = crate::support::guess::client_hello();
        exact.guessed_with(facts, 0, 0, ACK | PSH, &hello);
        assert_eq!(exact.guesses(), guesses);
    }
}

#[test]
fn what_is_remembered_of_a_hit() {
    for (sticky, guess, remember) in [
        ("connection", true, Remember::Guess),
        ("connection", false, Remember::Nothing),
        ("client", true, Remember::Client),
    ] {
        let content = format!(r#"{{"protocol": "http", "default": {{"to": "a", "sticky": "{sticky}"}}}}"#);
        let mut exact = crate::support::guess::guessing_if(&content, guess);
        assert_eq!(order(&exact.guessed(0, GET), Turn::Spliced).remember, remember, "{sticky}");
    }
}
