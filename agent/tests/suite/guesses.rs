//! Tests, segment by segment, of connections that the data plane has opened to a guessed server.

use crate::support::guess::{FACTS, OF_B, OF_BOTH, guessing};
use crate::support::harness::{GET, GUARDING, Harness, ISN, Output, RULES, SERVER_ISN, group};
use sluice_agent::facts::Facts;
use sluice_agent::order::{Order, Remember, Status, Turn};
use sluice_agent::seq::Seq;
use sluice_agent::wire::flags::{ACK, FIN, PSH, RST, SYN};

const GUESSED_B: Facts = Facts { server: OF_B, ..FACTS };

fn order(outputs: &[Output], turn: Turn) -> Order {
    let order_output = outputs.iter().find_map(|output| match output {
        Output::Order(order) if order.turn == turn => Some(*order),
        _ => None,
    });
    order_output.unwrap_or_else(|| panic!("no order in {outputs:?}"))
}

fn take() -> Order {
    Order::take("10.0.1.1:4711".parse().unwrap(), "10.0.0.100:80".parse().unwrap(), ISN)
}

/// Returns whether the outputs are a reset of the guessed server and a SYN to group `n`, and nothing else.
fn leaves_for(outputs: &[Output], n: u8) -> bool {
    matches!(outputs, [Output::Server { seq, flags: RST, .. }, Output::Server { to, seq: first, flags: SYN, .. }]
        if *seq == ISN + 1 && *to == group(n) && *first == ISN)
}

fn forwarded(outputs: &[Output]) -> Vec<u8> {
    let data = |output: &Output| if let Output::Server { data, .. } = output { data.clone() } else { Vec::new() };
    outputs.iter().flat_map(data).collect()
}

#[test]
fn a_hit_is_spliced_without_a_delta_and_forwarded_unchanged() {
    let mut harness = guessing(RULES);
    let outputs = harness.guessed(0, GET);
    let splice = order(&outputs[..1], Turn::Spliced);
    assert_eq!((splice.delta, splice.shift, splice.remember, splice.generation), (0, 0, Remember::Guess, 1));
    let request = Output::Server {
        to: group(1),
        seq: ISN + 1,
        ack: SERVER_ISN + 1,
        flags: ACK | PSH,
        window: 100,
        data: GET.to_vec(),
    };
    assert_eq!(outputs[1..], [request], "the client gets nothing from the agent");
    assert_eq!(harness.confirms(&splice, Status::Applied), []);
    assert_eq!((harness.engine.connections(), harness.engine.memory()), (0, 0));
    assert_eq!((harness.guesses(), harness.service.counters.spliced.get()), ([1, 0, 0], 1));
}

#[test]
fn bytes_behind_a_hit_are_all_forwarded_before_the_splice() {
    let mut harness = guessing(RULES);
    let body = vec![b'x'; 66_000];
    let post =
        [format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n", body.len()).as_bytes(), &body].concat();
    let mut outputs = Vec::new();
    for (n, piece) in post.chunks(1446).enumerate() {
        outputs.extend(harness.guessed(1446 * n as u32, piece));
    }
    // Only the client, not the agent, has received the server's window, so the agent forwards all bytes at once.
    assert_eq!(forwarded(&outputs).len(), post.len());
    assert!(forwarded(&outputs) == post && !outputs.iter().any(|output| matches!(output, Output::Client { .. })));
}

#[test]
fn a_miss_resets_the_wrong_server_before_it_receives_a_byte() {
    let mut harness = guessing_wrong();
    let outputs = harness.guessed_with(GUESSED_B, 0, 0, ACK | PSH, GET);
    assert!(leaves_for(&outputs, 1), "{outputs:?}");
    let outputs = harness.opens(0, Some(10));
    let splice = order(&outputs[..1], Turn::Spliced);
    assert_eq!((splice.delta, splice.shift), ((harness.cookie - SERVER_ISN) as u32, 3));
    assert_eq!(forwarded(&outputs), GET);
    assert_eq!(harness.guesses(), [0, 1, 0]);
}

/// Returns a client as [`guessing`] does, whose guessed server has other sequence numbers than the right server.
fn guessing_wrong() -> Harness {
    let mut harness = guessing(RULES);
    harness.cookie = Seq(u32::MAX);
    harness
}

#[test]
fn the_delta_of_a_miss_is_that_of_the_wrong_servers_numbers() {
    let mut harness = guessing_wrong();
    let outputs = harness.guessed_with(GUESSED_B, 0, 0, ACK | PSH, GET);
    assert!(leaves_for(&outputs, 1), "{outputs:?}");
    let splice = order(&harness.opens(0, Some(7)), Turn::Spliced);
    assert_eq!(SERVER_ISN + 1 + splice.delta, harness.cookie + 1);
    // Until the data plane confirms the splice order, the agent translates the server's sequence numbers.
    let outputs = harness.server(0, GET.len() as u32, ACK | PSH, b"HTTP/1.1 200 OK\r\n");
    assert!(matches!(outputs[..], [Output::Client { seq, .. }] if seq == harness.cookie + 1), "{outputs:?}");
    assert_eq!(harness.confirms(&splice, Status::Applied), []);
    assert_eq!(harness.engine.connections(), 0);
}

#[test]
fn a_server_of_both_groups_is_right_for_either() {
    for path in ["/", "/b"] {
        let mut harness = guessing(RULES);
        let get = format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n");
        harness.guessed_with(Facts { server: OF_BOTH, ..FACTS }, 0, 0, ACK | PSH, get.as_bytes());
        assert_eq!(harness.guesses(), [1, 0, 0], "{path}");
    }
}

#[test]
fn a_request_split_at_every_byte_is_not_acknowledged() {
    for (facts, is_right) in [(FACTS, true), (GUESSED_B, false)] {
        for at in 1..GET.len() {
            for is_reversed in [false, true] {
                let mut harness = guessing_wrong();
                let (first, second) = GET.split_at(at);
                let parts = [(0, first), (at as u32, second)];
                let [earlier, later] = if is_reversed { [parts[1], parts[0]] } else { parts };
                let mut outputs = harness.guessed_with(facts, earlier.0, 0, ACK | PSH, earlier.1);
                outputs.extend(harness.guessed_with(facts, later.0, 0, ACK | PSH, later.1));
                if is_reversed {
                    // Out-of-order bytes must be acknowledged, so the agent takes the connection.
                    assert_eq!(outputs[0], Output::Order(take()), "split at {at}");
                    assert!(
                        matches!(outputs[1], Output::Client { ack, flags: ACK, .. } if ack == ISN + 1),
                        "{outputs:?}"
                    );
                    outputs.drain(..2);
                }
                if !is_right {
                    assert!(leaves_for(&outputs, 1), "split at {at}: {outputs:?}");
                    outputs = harness.opens(0, Some(7));
                }
                assert_eq!(forwarded(&outputs), GET, "split at {at}");
                assert!(
                    !outputs.iter().any(|output| matches!(output, Output::Client { .. })),
                    "split at {at}: {outputs:?}"
                );
            }
        }
    }
}

#[test]
fn later_bytes_alone_decide_nothing() {
    // The rules decide differently about the second part alone than about both parts.
    let mut harness = guessing(GUARDING);
    let head = b"POST /admin HTTP/1.1\r\nHost: a\r\nContent-Length: 39\r\n\r\n";
    let outputs = harness.guessed(head.len() as u32, GET);
    assert!(!outputs.iter().any(|output| matches!(output, Output::Server { .. })), "{outputs:?}");
    let outputs = harness.guessed(0, head);
    assert!(forwarded(&outputs).is_empty(), "{outputs:?}");
    assert!(outputs.iter().any(|output| output.data().starts_with(b"HTTP/1.1 403")), "{outputs:?}");
}

#[test]
fn what_is_acknowledged_is_the_agents_until_the_guessed_server_has_it() {
    let mut harness = guessing(RULES);
    let facts = Facts { server: OF_BOTH, ..FACTS };
    let body = format!("{:6000}<purchase><total>1</total></purchase>", "");
    let head = "POST /x HTTP/1.1\r\nHost: a\r\nContent-Type: text/xml\r\nContent-Length:";
    let post = format!("{head} {}\r\n\r\n{body}", body.len());
    let post = post.as_bytes();
    let mut outputs = Vec::new();
    for (n, piece) in post.chunks(1446).enumerate() {
        outputs.extend(harness.guessed_with(facts, 1446 * n as u32, 0, ACK | PSH, piece));
    }
    // The agent orders the switch to send it the connection's packets before it acknowledges any byte.
    let taken = outputs.iter().position(|output| *output == Output::Order(take())).unwrap();
    let acknowledged = outputs.iter().position(|output| matches!(output, Output::Client { .. })).unwrap();
    assert!(taken < acknowledged, "{outputs:?}");
    assert_eq!(harness.confirms(&take(), Status::Applied), []);
    outputs.extend(harness.waits(1));
    let rest = harness.server(0, 1446, ACK, b"");
    let all = [forwarded(&outputs), forwarded(&rest)].concat();
    assert!(all.len() >= 4096 && all == post[..all.len()], "{} of {}", all.len(), post.len());
    let outputs = harness.server(0, post.len() as u32, ACK, b"");
    let splice = order(&outputs, Turn::Spliced);
    assert_eq!((splice.delta, splice.shift), (0, 0));
    assert_eq!(harness.guesses(), [1, 0, 0]);
}

#[test]
fn a_retransmitted_request_is_forwarded_again() {
    let mut harness = guessing(RULES);
    let splice = order(&harness.guessed(0, GET), Turn::Spliced);
    let outputs = harness.guessed(0, GET);
    assert_eq!(forwarded(&outputs), GET);
    // The data plane has not received the order, so the agent repeats it.
    assert_eq!(harness.waits(20), [Output::Order(splice)]);
    assert_eq!(harness.guesses(), [1, 0, 0]);
    // If the guess is wrong, the agent does not forward repeated bytes while it connects to the right server.
    let mut harness = guessing(RULES);
    harness.guessed_with(GUESSED_B, 0, 0, ACK | PSH, GET);
    assert_eq!(harness.guessed_with(GUESSED_B, 0, 0, ACK | PSH, GET), []);
    assert_eq!(harness.data(0, GET), []);
}

#[test]
fn another_agent_takes_an_unacknowledged_request() {
    let mut first = guessing(RULES);
    let (head, rest) = GET.split_at(20);
    assert_eq!(first.guessed(0, head), []);
    let mut second = guessing(RULES);
    assert_eq!(second.guessed(0, head), []);
    let outputs = second.guessed(20, rest);
    assert_eq!(forwarded(&outputs), GET);
}

#[test]
fn a_server_that_has_sent_data_cannot_be_left() {
    let with_server_data = Facts { server_has_sent: true, ..GUESSED_B };
    for (facts, received) in [(with_server_data, 0), (with_server_data, 9)] {
        let mut harness = guessing_wrong();
        let outputs = harness.guessed_with(facts, 0, received, ACK | PSH, GET);
        assert!(outputs.iter().all(|output| output.flags() & RST != 0 && output.data().is_empty()), "{outputs:?}");
        let ends: Vec<_> = outputs.iter().filter(|output| matches!(output, Output::Client { .. })).collect();
        assert!(
            matches!(ends[..], [Output::Client { seq, .. }] if *seq == harness.cookie + 1 + received),
            "{outputs:?}"
        );
        assert_eq!((harness.guesses(), harness.engine.connections()), ([0, 1, 1], 0));
    }
    // The connection is reset although the guess is right: the agent has not received the start of the response, so it
    // cannot find the end of the response, after which the rules decide about the next request.
    let mut harness = guessing_wrong();
    let outputs = harness.guessed_with(with_server_data, 0, 9, ACK | PSH, b"GET /b HTTP/1.1\r\nHost: a\r\n\r\n");
    assert!(outputs.iter().all(|output| output.flags() & RST != 0), "{outputs:?}");
    assert_eq!(harness.guesses(), [1, 0, 1]);
    // The guess is right, and the rules decide only once per connection, so the agent need not find the end of the
    // response: the connection continues with this server.
    let mut harness = guessing(RULES);
    let outputs = harness.guessed_with(Facts { server_has_sent: true, ..FACTS }, 0, 9, ACK | PSH, GET);
    assert_eq!((forwarded(&outputs), order(&outputs, Turn::Spliced).delta), (GET.to_vec(), 0));
}

#[test]
fn a_client_that_was_answered_by_the_wrong_server_is_reset() {
    // The client acknowledges the wrong server's bytes while the agent reads the request.
    let mut harness = guessing_wrong();
    assert_eq!(harness.guessed_with(GUESSED_B, 0, 0, ACK | PSH, &GET[..9]), []);
    harness.guessed_with(GUESSED_B, 9, 5, ACK | PSH, &GET[9..]);
    assert_eq!((harness.guesses(), harness.engine.connections()), ([0, 1, 1], 0));
    // The client acknowledges the wrong server's bytes while the agent connects to the right server. The agent must
    // reset both sides: the client would discard the right server's bytes, because it has acknowledged their sequence
    // numbers already.
    let mut harness = guessing_wrong();
    harness.guessed_with(GUESSED_B, 0, 0, ACK | PSH, GET);
    let outputs = harness.client(GET.len() as u32, 5, ACK, b"");
    assert!(
        outputs.iter().any(|output| matches!(output, Output::Server { to, flags: RST, .. } if *to == group(1))),
        "{outputs:?}"
    );
    assert!(
        outputs.iter().any(|output| matches!(output, Output::Client { seq, .. } if *seq == harness.cookie + 6)),
        "{outputs:?}"
    );
    assert_eq!((harness.guesses(), harness.engine.connections()), ([0, 1, 1], 0));
}

#[test]
fn a_refusal_takes_the_connection_and_leaves_the_server() {
    let mut harness = guessing(GUARDING);
    let get = b"GET /admin HTTP/1.1\r\nHost: a\r\n\r\n";
    let outputs = harness.guessed(0, get);
    let [
        Output::Order(taken),
        Output::Server { flags: RST, seq, .. },
        Output::Client { seq: answer_seq, data, flags, .. },
    ] = &outputs[..]
    else {
        panic!("{outputs:?}")
    };
    assert_eq!((*taken, *seq, *answer_seq), (take(), ISN + 1, SERVER_ISN + 1));
    assert!(data.starts_with(b"HTTP/1.1 403 ") && flags & FIN != 0);
    // Once the agent has taken the connection, the client's segments arrive without the header of guessed connections.
    harness.confirms(&take(), Status::Applied);
    let answered = data.len() as u32 + 1;
    assert_eq!(harness.client(get.len() as u32, answered, ACK, b""), []);
    let last = harness.client(get.len() as u32, answered, ACK | FIN, b"");
    assert!(matches!(last[..], [Output::Client { ack, .. }] if ack == ISN + 2 + get.len() as u32), "{last:?}");
    assert_eq!((harness.engine.connections(), harness.guesses()), (0, [0, 0, 0]));
    // If the server has sent data, the agent cannot send the client the error 403, and resets the client.
    let mut harness = guessing(GUARDING);
    let outputs = harness.guessed_with(Facts { server_has_sent: true, ..FACTS }, 0, 9, ACK | PSH, get);
    assert!(outputs.iter().all(|output| output.flags() & RST != 0), "{outputs:?}");
    assert_eq!((harness.refused(), harness.guesses()), (vec![("a rule refuses", 1)], [0, 0, 1]));
}

#[test]
fn half_a_request_is_408_in_the_servers_numbers() {
    let mut harness = guessing(RULES);
    harness.guessed(0, b"G");
    let outputs = harness.waits(10);
    assert!(
        matches!(outputs[..], [Output::Order(_), Output::Client { seq, ack, .. }] if seq == SERVER_ISN + 1 && ack == ISN + 2)
    );
    harness.confirms(&take(), Status::Applied);
    let outputs = harness.waits(2_000);
    assert!(outputs.iter().any(|output| output.data().starts_with(b"HTTP/1.1 408 ")), "{outputs:?}");
    assert!(outputs.iter().any(|output| matches!(output, Output::Server { flags: RST, .. })), "{outputs:?}");
}

#[test]
fn the_agent_requests_a_connection_until_it_has_it() {
    let mut harness = guessing(RULES);
    harness.guessed(0, b"G");
    let outputs = harness.waits(29);
    assert_eq!(outputs.iter().filter(|output| **output == Output::Order(take())).count(), 1);
    assert_eq!(harness.waits(1), [Output::Order(take())]);
    harness.confirms(&take(), Status::Applied);
    assert_eq!(harness.waits(1_000), []);
    // If another agent has taken the connection, or the connection has ended, this agent gives up the connection. This
    // agent has acknowledged bytes of the client, so it resets the client.
    for status in [Status::Foreign, Status::NoConnection] {
        let mut harness = guessing(RULES);
        harness.guessed(0, b"G");
        harness.waits(10);
        let outputs = harness.confirms(&take(), status);
        assert!(
            outputs.iter().all(|output| matches!(output, Output::Client { flags, .. } if flags & RST != 0)),
            "{outputs:?}"
        );
        assert_eq!((harness.engine.connections(), harness.service.counters.lost.get()), (0, 1));
    }
}

#[test]
fn client_half_closes_with_its_request() {
    for (facts, is_right) in [(FACTS, true), (GUESSED_B, false)] {
        let mut harness = guessing_wrong();
        let mut outputs = harness.guessed_with(facts, 0, 0, ACK | PSH | FIN, GET);
        if !is_right {
            assert!(leaves_for(&outputs, 1), "{outputs:?}");
            outputs = harness.opens(0, Some(7));
        }
        assert!(outputs.iter().any(|output| output.data() == GET && output.flags() == ACK | PSH | FIN), "{outputs:?}");
    }
}

#[test]
fn client_resets_while_the_right_server_is_being_opened() {
    let mut harness = guessing(RULES);
    harness.guessed_with(GUESSED_B, 0, 0, ACK | PSH, GET);
    let outputs = harness.client(GET.len() as u32, 0, RST, b"");
    assert!(matches!(outputs[..], [Output::Server { to, flags: RST, .. }] if to == group(1)), "{outputs:?}");
    assert_eq!(harness.engine.connections(), 0);
}

#[test]
fn a_reset_of_the_wrong_server_that_is_lost_is_sent_again() {
    let mut harness = guessing(RULES);
    harness.guessed_with(GUESSED_B, 0, 0, ACK | PSH, GET);
    let outputs = harness.waits(250);
    assert!(leaves_for(&outputs, 1), "{outputs:?}");
}

#[test]
fn the_right_server_refuses() {
    let mut harness = guessing(RULES);
    harness.guessed_with(GUESSED_B, 0, 0, ACK | PSH, GET);
    let outputs = harness.refuses_all(0);
    let [Output::Client { seq, data, .. }] = &outputs[..] else { panic!("{outputs:?}") };
    assert!(data.starts_with(b"HTTP/1.1 503 ") && *seq == SERVER_ISN + 1);
}

#[test]
fn window_scales_unlike() {
    let cases = [
        // Each case contains the window scales of the wrong server, of the client and of the right server, the scale
        // that the agent offers to the right server, and the shift in the splice order.
        (Some(7), Some(9), Some(10), Some(9), 3),
        (Some(10), Some(9), Some(7), Some(9), -3),
        (None, Some(9), None, None, 0),
        (Some(7), None, None, None, 0),
        (Some(7), Some(9), None, Some(9), -7),
    ];
    for (server_scale, client_scale, scale, offered, shift) in cases {
        let mut harness = guessing(RULES);
        let facts = Facts { server_scale, client_scale, ..GUESSED_B };
        let frame = harness.guessed_frame(facts, 0, 0, ACK | PSH, GET);
        let offers = harness.offers(&frame);
        assert_eq!(offers.iter().map(|syn_options| syn_options.scale).collect::<Vec<_>>(), [offered], "{facts:?}");
        let order = order(&harness.opens(0, scale), Turn::Spliced);
        let client_shift = if scale.is_none() { offered.unwrap_or(0) } else { 0 };
        assert_eq!((order.shift, order.client_shift), (shift, client_shift), "{facts:?}");
    }
}

#[test]
fn what_the_handshake_did_not_permit_the_right_server_is_not_offered() {
    let mut harness = guessing(RULES);
    let facts = Facts { sack: false, mss: 1000, ..GUESSED_B };
    let frame = harness.guessed_frame(facts, 0, 0, ACK | PSH, GET);
    let offers = harness.offers(&frame);
    assert!(matches!(offers[..], [syn_options] if !syn_options.sack && syn_options.mss == Some(1000)), "{offers:?}");
}

#[test]
fn each_request_of_a_guessed_connection_to_its_own_group() {
    let mut harness = guessing(RULES);
    let (to_b, to_a) = (b"GET /b HTTP/1.1\r\nHost: a\r\n\r\n", GET);
    let outputs = harness.guessed_with(GUESSED_B, 0, 0, ACK | PSH, to_b);
    assert_eq!(outputs[0], Output::Order(take()), "the response is for the agent: {outputs:?}");
    assert_eq!(forwarded(&outputs), to_b);
    harness.confirms(&take(), Status::Applied);
    let response = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc";
    let outputs = harness.server(0, to_b.len() as u32, ACK | PSH, response);
    assert!(matches!(&outputs[..], [Output::Client { seq, data, .. }] if *seq == SERVER_ISN + 1 && data == response));
    let outputs = harness.client(to_b.len() as u32, response.len() as u32, ACK | PSH, to_a);
    let is_syn = |output: &Output| matches!(output, Output::Server { to, flags: SYN, .. } if *to == group(1));
    assert!(outputs.iter().any(is_syn) && forwarded(&outputs).is_empty(), "{outputs:?}");
    assert_eq!(harness.guesses(), [1, 0, 0]);
}

#[test]
fn expect_100_continue_of_a_guessed_connection() {
    let mut harness = guessing(RULES);
    let facts = Facts { server: 0, ..FACTS };
    let head =
        b"POST /x HTTP/1.1\r\nHost: a\r\nContent-Type: text/xml\r\nContent-Length: 40\r\nExpect: 100-continue\r\n\r\n";
    let outputs = harness.guessed_with(facts, 0, 0, ACK | PSH, head);
    let [Output::Order(_), Output::Client { data, .. }] = &outputs[..] else { panic!("{outputs:?}") };
    let answered = data.len() as u32;
    harness.confirms(&take(), Status::Applied);
    let outputs = harness.client(head.len() as u32, answered, ACK | PSH, b"<purchase><total>6000</total></purchase>");
    assert!(leaves_for(&outputs, 3), "{outputs:?}");
    harness.opens(0, Some(7));
    let outputs = harness.server(0, head.len() as u32 + 40, ACK, b"");
    assert_eq!(order(&outputs, Turn::Spliced).delta, answered, "the agent's answer is in it");
}

#[test]
fn a_reused_port_begins_a_new_connection() {
    let mut harness = guessing(RULES);
    harness.guessed(0, GET);
    let facts = Facts { isn: Seq(5), ..GUESSED_B };
    let outputs = harness.guessed_with(facts, 0, 0, ACK | PSH, GET);
    assert!(matches!(outputs[..], [Output::Server { seq, flags: RST, .. }, _] if seq == Seq(6)), "{outputs:?}");
    assert_eq!(harness.engine.connections(), 1);
}

#[test]
fn a_malformed_header_is_ignored() {
    let mut harness = guessing(GUARDING);
    let complete = harness.guessed_frame(FACTS, 0, 0, ACK | PSH, GET);
    for length in 0..complete.len() {
        assert_eq!(harness.take(&complete[..length]), [], "{length} bytes");
    }
    for (at, byte) in [(14, 15), (15, 254), (26, 0x86), (27, 1), (28, 0x60)] {
        let mut frame = complete.clone();
        frame[at] = byte;
        assert_eq!(harness.take(&frame), [], "byte {at}");
    }
    // No segment contains a request to read: the first has no data, the second has the flag SYN, the third lacks the
    // flag ACK, and the fourth has only a byte before the request.
    for (at, flags, data) in [(0, ACK, &b""[..]), (0, SYN | ACK, GET), (0, PSH, GET), (u32::MAX, ACK, b"x")] {
        assert_eq!(harness.guessed_with(FACTS, at, 0, flags, data), [], "flags {flags}");
    }
    assert_eq!(harness.engine.connections(), 0);
    let tiny = Facts { mss: 0, ..FACTS };
    let outputs = harness.guessed_with(tiny, 0, 0, ACK | PSH, b"GET /admin HTTP/1.1\r\nHost: a\r\n\r\n");
    assert!(outputs.len() < 20, "a client that takes nothing is answered in pieces: {outputs:?}");
}

#[test]
fn a_guess_of_tls() {
    let content = r#"{"protocol": "tls", "default": {"to": "a"}, "rules": [
        {"name": "b", "match": {"sni": "b.example"}, "to": "b"}]}"#;
    for (facts, guesses) in [(FACTS, [1, 0, 0]), (GUESSED_B, [0, 1, 0])] {
        let mut harness = guessing(content);
        let hello = crate::support::guess::client_hello();
        harness.guessed_with(facts, 0, 0, ACK | PSH, &hello);
        assert_eq!(harness.guesses(), guesses);
    }
}

#[test]
fn the_memory_that_a_hit_orders() {
    for (sticky, guess, remember) in [
        ("connection", true, Remember::Guess),
        ("connection", false, Remember::Nothing),
        ("client", true, Remember::Client),
    ] {
        let content = format!(r#"{{"protocol": "http", "default": {{"to": "a", "sticky": "{sticky}"}}}}"#);
        let mut harness = crate::support::guess::guessing_if(&content, guess);
        assert_eq!(order(&harness.guessed(0, GET), Turn::Spliced).remember, remember, "{sticky}");
    }
}
