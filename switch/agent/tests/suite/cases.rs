//! Cases that go wrong elsewhere, segment by segment.

use crate::support::exact::{Exact, GUARDING, ISN, RULES, SERVER_ISN, Seen, group};
use sluice_agent::Frames;
use sluice_agent::order::{Order, Remember, Status};
use sluice_agent::seq::Seq;
use sluice_agent::wire::flags::{ACK, FIN, PSH, RST, SYN};
use sluice_agent::wire::{Head, Link, RawOffer, Segment};

use crate::support::switch::{AGENT_MAC, SWITCH_MAC};

const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n";

fn connected() -> Exact {
    let mut exact = Exact::new(RULES);
    exact.handshake();
    exact
}

/// A SYN to a group, and nothing else.
fn asks(seen: &[Seen], base: u32, n: u8) -> bool {
    matches!(seen, [Seen::Server { to, seq, flags: SYN, .. }] if *to == group(n) && *seq == ISN + base)
}

fn order(seen: &[Seen]) -> Order {
    let found = seen.iter().find_map(|seen| if let Seen::Order(order) = seen { Some(*order) } else { None });
    found.unwrap_or_else(|| panic!("no order in {seen:?}"))
}

/// A whole answer of the agent's own, with its status, that ends the connection.
fn is_answer(seen: &[Seen], status: &str) -> bool {
    let [Seen::Client { data, flags, .. }] = seen else { return false };
    data.starts_with(format!("HTTP/1.1 {status} ").as_bytes()) && flags & FIN != 0
}

#[test]
fn a_request_in_one_segment_is_not_acknowledged() {
    let mut exact = connected();
    let seen = exact.data(0, GET);
    assert!(asks(&seen, 0, 1), "{seen:?}");
    // Repeated meanwhile: the client does not hear of it.
    assert_eq!(exact.data(0, GET), []);
    let seen = exact.opens(0, Some(7));
    let order = order(&seen[..1]);
    assert_eq!(order.delta, (exact.cookie - SERVER_ISN) as u32);
    assert_eq!((order.shift, order.remember, order.generation), (0, Remember::Nothing, 1));
    let request = Seen::Server {
        to: group(1),
        seq: ISN + 1,
        ack: SERVER_ISN + 1,
        flags: ACK | PSH,
        window: 100,
        data: GET.to_vec(),
    };
    assert_eq!(seen[1..], [request]);
    assert_eq!(exact.confirms(&order, Status::Applied), []);
    assert_eq!((exact.engine.connections(), exact.engine.memory()), (0, 0));
    assert_eq!(exact.service.counters.spliced.get(), 1);
}

#[test]
fn an_order_is_repeated_until_it_is_confirmed() {
    let mut exact = connected();
    exact.data(0, GET);
    let order = order(&exact.opens(0, Some(7)));
    assert_eq!(exact.waits(19), []);
    assert_eq!(exact.waits(1), [Seen::Order(order)]);
    assert_eq!(exact.waits(39), []);
    assert_eq!(exact.waits(1), [Seen::Order(order)]);
    // Meanwhile the agent translates.
    let seen = exact.server(0, GET.len() as u32, ACK | PSH, b"HTTP/1.1 200 OK\r\n");
    let [Seen::Client { seq, ack, window, data, .. }] = &seen[..] else { panic!("{seen:?}") };
    assert_eq!((*seq, *ack, *window), (exact.cookie + 1, ISN + 1 + GET.len() as u32, 500));
    assert_eq!(data, b"HTTP/1.1 200 OK\r\n");
    let seen = exact.client(GET.len() as u32, 17, ACK, b"");
    let [Seen::Server { seq, ack, .. }] = &seen[..] else { panic!("{seen:?}") };
    assert_eq!((*seq, *ack), (ISN + 1 + GET.len() as u32, SERVER_ISN + 1 + 17));
    exact.confirms(&order, Status::Applied);
    assert_eq!(exact.waits(10_000), []);
}

#[test]
fn an_order_that_is_refused_resets_both_sides() {
    let mut exact = connected();
    exact.data(0, GET);
    let order = order(&exact.opens(0, Some(7)));
    let seen = exact.confirms(&order, Status::NoConnection);
    assert!(seen.iter().all(|seen| seen.flags() & RST != 0) && seen.len() == 2, "{seen:?}");
    assert_eq!(exact.engine.connections(), 0);
}

#[test]
fn syn_with_options_30_34_254_and_data() {
    let mut exact = Exact::new(RULES);
    // MPTCP, TCP Fast Open with a cookie, an experiment; timestamps as well.
    let mut options = vec![30, 4, 0, 1, 34, 6, 1, 2, 3, 4, 254, 4, 9, 9, 8, 10, 1, 2, 3, 4, 0, 0, 0, 0];
    options.extend([2, 4, 5, 180, 4, 2, 3, 3, 9, 0]);
    options.resize(36, 0);
    let (source, destination) = (exact.client, exact.own());
    let head = Head { source, destination, seq: ISN, ack: Seq(0), flags: SYN, window: 64_000 };
    let seen = exact.sends(head, &options, b"GET / HTTP/1.1\r\n");
    let [Seen::Client { ack, flags, data, .. }] = &seen[..] else { panic!("{seen:?}") };
    assert_eq!((*ack, *flags, &data[..]), (ISN + 1, SYN | ACK, &b""[..]));
    assert_eq!(exact.engine.memory(), 0);
}

#[test]
fn a_request_split_at_every_byte() {
    let post = b"POST /x HTTP/1.1\r\nHost: shop.example\r\nContent-Type: text/xml\r\nContent-Length: 41\r\n\r\n<purchase><total>6000</total></purchase>\n";
    for at in 1..post.len() {
        for is_reversed in [false, true] {
            let mut exact = connected();
            let (first, second) = post.split_at(at);
            let mut seen = Vec::new();
            if is_reversed {
                // Nothing is known of it before its first byte has come.
                assert_eq!(exact.data(at as u32, second), []);
                seen.extend(exact.data(0, first));
                seen.extend(exact.data(at as u32, second));
            } else {
                seen.extend(exact.data(0, first));
                seen.extend(exact.data(at as u32, second));
            }
            assert!(asks(&seen, 0, 3), "split at {at}: {seen:?}");
            let handed: Vec<u8> = exact.opens(0, Some(7)).iter().flat_map(|seen| seen.data().to_vec()).collect();
            assert_eq!(handed, post);
        }
    }
}

#[test]
fn one_byte_in_ten_seconds_is_408_and_others_do_not_wait() {
    let mut exact = connected();
    assert_eq!(exact.data(0, b"G"), []);
    // The client may send more only when it hears of this.
    let seen = exact.waits(10);
    assert!(matches!(seen[..], [Seen::Client { ack, flags: ACK, .. }] if ack == ISN + 2), "{seen:?}");
    assert_eq!(exact.engine.waiting(), 1);
    // Another client's request goes its way meanwhile.
    let slow = (exact.client, exact.cookie);
    exact.client = "10.0.1.2:4711".parse().unwrap();
    exact.shake();
    assert!(asks(&exact.data(0, GET), 0, 1));
    (exact.client, exact.cookie) = slow;
    let mut exact = connected();
    exact.data(0, b"G");
    let seen = exact.waits(2_100);
    assert!(is_answer(&seen[1..2], "408"), "{seen:?}");
    assert_eq!(exact.engine.waiting(), 0);
    assert_eq!(exact.refused(), [("timeout", 1)]);
}

#[test]
fn server_refuses_or_is_silent() {
    let mut exact = connected();
    exact.data(0, GET);
    let seen = exact.refuses_all(0);
    assert!(is_answer(&seen, "503"), "{seen:?}");
    assert_eq!(exact.refused(), [("server_refused", 1)]);
    assert_eq!(exact.service.groups[0].failed.get(), 4);

    let mut exact = connected();
    exact.data(0, GET);
    let seen = exact.waits(3_700);
    assert_eq!(seen.iter().filter(|seen| seen.flags() == SYN).count(), 3, "{seen:?}");
    let seen = exact.waits(100);
    let [Seen::Server { to, seq, flags: RST, .. }, answer] = &seen[..] else { panic!("{seen:?}") };
    assert_eq!((*to, *seq), (group(1), ISN + 1));
    assert!(is_answer(std::slice::from_ref(answer), "503"), "{seen:?}");
    assert_eq!(exact.service.groups[0].failed.get(), 1);
}

/// A request to a server whose SYN-ACK says a window of 0, as of a SYNPROXY.
fn held_up(get: &[u8]) -> Exact {
    let mut exact = connected();
    exact.data(0, get);
    let (source, destination) = (exact.service.address, exact.client);
    let head = Head { source, destination, seq: SERVER_ISN, ack: ISN + 1, flags: SYN | ACK, window: 0 };
    let (options, length) = RawOffer { mss: Some(1460), scale: Some(7), sack: true }.write();
    let seen = exact.sends(head, &options[..length], b"");
    let [Seen::Client { ack, .. }, Seen::Server { data, flags: ACK, .. }] = &seen[..] else { panic!("{seen:?}") };
    assert_eq!((*ack, data.len()), (ISN + 1 + get.len() as u32, 0), "the agent has it, and no splice is ordered");
    exact
}

fn handed(seen: &[Seen]) -> &[u8] {
    let data: Vec<_> = seen.iter().filter(|seen| matches!(seen, Seen::Server { .. })).map(Seen::data).collect();
    assert!(data.len() <= 1, "{seen:?}");
    data.first().copied().unwrap_or_default()
}

#[test]
fn a_request_waits_in_the_agent_for_the_servers_window() {
    for get in [GET, GET_B] {
        let mut exact = held_up(get);
        // The client repeats nothing, and hears so if it does.
        let seen = exact.data(0, get);
        assert!(matches!(seen[..], [Seen::Client { flags: ACK, .. }]), "{seen:?}");
        let seen = exact.server(0, 0, ACK, b"");
        assert!(handed(&seen) == get && seen.len() == 1, "{seen:?}");
        let seen = exact.server(0, get.len() as u32, ACK, b"");
        assert_eq!(seen.iter().any(|seen| matches!(seen, Seen::Order(_))), get == GET, "{seen:?}");
    }
}

#[test]
fn a_window_whose_opening_is_lost_is_probed() {
    let mut exact = held_up(GET);
    let seen = exact.waits(200);
    assert_eq!(handed(&seen), &GET[..1], "{seen:?}");
    let seen = exact.server(0, 1, ACK, b"");
    assert_eq!(handed(&seen), &GET[1..], "the server has taken the probe: {seen:?}");
    let mut exact = held_up(GET);
    exact.waits(200);
    let seen = exact.server(0, 0, ACK, b"");
    assert_eq!(handed(&seen), GET, "it has not: {seen:?}");
}

#[test]
fn a_window_that_never_opens_ends_the_connection() {
    let mut exact = held_up(GET);
    let seen = exact.waits(60_000);
    let resets = seen.iter().filter(|seen| seen.flags() & RST != 0).count();
    assert_eq!((resets, exact.engine.connections(), exact.service.counters.lost.get()), (2, 0, 1), "{seen:?}");
}

#[test]
fn a_server_that_refuses_is_left_for_the_next_of_its_group() {
    let mut exact = connected();
    exact.data(0, GET);
    for _ in 0..3 {
        let seen = exact.server(0, 0, RST | ACK, b"");
        let [Seen::Server { to, seq, flags: RST, .. }, rest @ ..] = &seen[..] else { panic!("{seen:?}") };
        assert_eq!((*to, *seq), (group(1), ISN + 1), "the refusing server is left");
        assert!(asks(rest, 0, 1), "{seen:?}");
        // One that does not answer is asked as often as the first.
        assert!(asks(&exact.waits(250), 0, 1));
    }
    let seen = exact.opens(0, Some(7));
    assert!(seen.iter().any(|seen| seen.data() == GET), "{seen:?}");
    assert_eq!((exact.refused(), exact.service.groups[0].failed.get()), (vec![], 3));
}

/// Only the reset that acknowledges the SYN exactly is an answer to it.
#[test]
fn a_forged_refusal_is_none() {
    let mut exact = connected();
    exact.data(0, GET);
    for (has, flags) in [(1, RST | ACK), (u32::MAX, RST | ACK), (0, RST)] {
        assert_eq!(exact.server(0, has, flags, b""), []);
    }
    assert!(exact.opens(0, Some(7)).iter().any(|seen| seen.data() == GET));
}

/// The data plane draws the server by the number of the attempt.
#[test]
fn each_attempt_has_its_number() {
    let mut exact = connected();
    exact.data(0, GET);
    let (source, destination) = (exact.service.address, exact.client);
    let head = Head { source, destination, seq: Seq(0), ack: ISN + 1, flags: RST | ACK, window: 0 };
    for attempt in 1..4 {
        let mut frame = Vec::new();
        let link = Link { own: SWITCH_MAC, router: AGENT_MAC };
        head.write(&link, &[], [b"", b""], &mut frame);
        for repeated in [false, true] {
            let mut out = Frames::default();
            if repeated {
                exact.now += 250_000_000;
                exact.engine.poll(exact.now, &mut out);
            } else {
                exact.engine.receive(exact.now, &frame, &mut out);
            }
            let segments = out.iter().filter_map(|frame| Segment::read(frame).ok());
            let numbers: Vec<_> = segments.map(|segment| (segment.has(SYN), segment.identification())).collect();
            let syn = (true, attempt);
            assert_eq!(numbers, if repeated { vec![syn] } else { vec![(false, 0), syn] });
        }
    }
}

#[test]
fn client_resets_while_the_server_is_being_opened() {
    let mut exact = connected();
    exact.data(0, GET);
    let seen = exact.client(GET.len() as u32, 0, RST, b"");
    assert!(
        matches!(seen[..], [Seen::Server { to, seq, flags: RST, .. }] if to == group(1) && seq == ISN + 1),
        "{seen:?}"
    );
    assert_eq!(exact.engine.connections(), 0);
    assert_eq!(exact.opens(0, Some(7)), []);
}

#[test]
fn a_forged_reset_or_syn_is_challenged() {
    let mut exact = connected();
    exact.data(0, GET);
    let seen = exact.client(GET.len() as u32 + 100, 0, RST, b"");
    assert!(matches!(seen[..], [Seen::Client { ack, flags: ACK, .. }] if ack == ISN + 1), "{seen:?}");
    let seen = exact.syn(&[], b"");
    assert!(matches!(seen[..], [Seen::Client { flags: ACK, .. }]), "{seen:?}");
    assert_eq!(exact.engine.connections(), 1);
}

#[test]
fn client_half_closes_with_its_request() {
    let mut exact = connected();
    let seen = exact.client(0, 0, ACK | PSH | FIN, GET);
    assert!(asks(&seen, 0, 1), "{seen:?}");
    let seen = exact.opens(0, Some(7));
    assert_eq!((seen[1].data(), seen[1].flags()), (GET, ACK | PSH | FIN));
    // Behind it, before the confirmation: it is passed on as well.
    let mut exact = connected();
    exact.data(0, GET);
    exact.opens(0, Some(7));
    let seen = exact.client(GET.len() as u32, 0, ACK | FIN, b"");
    assert!(matches!(seen[..], [Seen::Server { flags, .. }] if flags == ACK | FIN), "{seen:?}");
}

#[test]
fn a_half_request_that_ends_is_400() {
    let mut exact = connected();
    let seen = exact.client(0, 0, ACK | PSH | FIN, b"GET / HT");
    assert!(is_answer(&seen, "400"), "{seen:?}");
    let [Seen::Client { ack, .. }] = seen[..] else { panic!() };
    assert_eq!(ack, ISN + 1 + 9, "the FIN is acknowledged as well");
}

#[test]
fn ambiguous_requests_are_400_and_close() {
    let heads: [&[u8]; 13] = [
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length : 1\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +5\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0x10\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: ,chunked\r\n\r\n",
        b"GET / HTTP/1.1\nHost: a\n\n",
        b"GET / HTTP/1.1\r\nHost: a\rb\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\n b: c\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\0b\r\n\r\n",
        b"GET /%2fadmin HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET /%00 HTTP/1.1\r\nHost: a\r\n\r\n",
    ];
    for head in heads {
        let mut exact = connected();
        let seen = exact.data(0, head);
        assert!(is_answer(&seen, "400"), "{}: {seen:?}", String::from_utf8_lossy(head));
        assert_eq!(exact.opens(0, Some(7)), []);
    }
}

#[test]
fn a_refused_client_hears_why_until_it_has_it() {
    let mut exact = Exact::new(GUARDING);
    exact.handshake();
    let get = b"GET /admin HTTP/1.1\r\nHost: a\r\n\r\n";
    let seen = exact.data(0, get);
    assert!(is_answer(&seen, "403"), "{seen:?}");
    let length = seen[0].data().len() as u32;
    assert_eq!(exact.waits(250), seen);
    // It acknowledges, and ends its side.
    assert_eq!(exact.client(get.len() as u32, length + 1, ACK, b""), []);
    let last = exact.client(get.len() as u32, length + 1, ACK | FIN, b"");
    assert!(matches!(last[..], [Seen::Client { ack, .. }] if ack == ISN + 2 + get.len() as u32), "{last:?}");
    assert_eq!(exact.engine.connections(), 0);
}

#[test]
fn windows_of_servers_with_other_scales() {
    // The client is told 7 at first.
    for (scale, field, told) in
        [(Some(10), 500, 4000), (Some(10), 60_000, 65_535), (Some(3), 5, 1), (Some(3), 0, 0), (None, 640, 5)]
    {
        let mut exact = connected();
        exact.data(0, GET);
        let order = order(&exact.opens(0, scale));
        assert_eq!(i16::from(order.shift), i16::from(scale.unwrap_or(0)) - 7);
        let head = Head {
            source: exact.service.address,
            destination: exact.client,
            seq: SERVER_ISN + 1,
            ack: ISN + 1 + GET.len() as u32,
            flags: ACK,
            window: field,
        };
        let seen = exact.sends(head, &[], b"");
        let room = 768; // of the agent, shifted as well: no more is told while it has the turn
        assert!(matches!(seen[..], [Seen::Client { window, .. }] if window == told.min(room)), "{scale:?}: {seen:?}");
    }
}

/// The client scales its own, since the agent has told it a scale; a server that does not scale reads it as it stands.
#[test]
fn windows_of_clients_toward_servers_that_do_not_scale() {
    for (client_scale, scale, field, told) in [
        (Some(9), None, 100, 51_200),
        (Some(9), None, 200, 65_535),
        (Some(9), None, 0, 0),
        (Some(0), None, 100, 100),
        (None, None, 100, 100),
        (Some(9), Some(0), 100, 100),
        (Some(9), Some(7), 100, 100),
    ] {
        let mut exact = Exact::new(RULES);
        exact.offer.scale = client_scale;
        exact.handshake();
        exact.data(0, GET);
        let order = order(&exact.opens(0, scale));
        let client_shift = if scale.is_none() { client_scale.unwrap_or(0) } else { 0 };
        assert_eq!(order.client_shift, client_shift, "{client_scale:?} {scale:?}");
        let (source, destination, seq) = (exact.client, exact.own(), ISN + 1 + GET.len() as u32);
        let head = Head { source, destination, seq, ack: exact.cookie + 1, flags: ACK, window: field };
        let seen = exact.sends(head, &[], b"");
        assert!(matches!(seen[..], [Seen::Server { window, .. }] if window == told), "{client_scale:?}: {seen:?}");
    }
}

#[test]
fn without_a_scale_of_the_client_there_is_none() {
    let mut exact = Exact::new(RULES);
    exact.offer = RawOffer { mss: Some(1000), scale: None, sack: false };
    exact.handshake();
    exact.data(0, GET);
    assert_eq!(order(&exact.opens(0, None)).shift, 0);
}

#[test]
fn what_the_agent_owns_it_repeats_in_place_of_the_client() {
    let mut exact = connected();
    let head = b"POST /x HTTP/1.1\r\nHost: a\r\nContent-Type: text/xml\r\nContent-Length: 5040\r\n\r\n";
    let mut post = head.to_vec();
    post.resize(head.len() + 5000, b' ');
    post.extend(b"<purchase><total>6000</total></purchase>");
    let mut seen = Vec::new();
    for (n, part) in post.chunks(1000).enumerate() {
        seen.extend(exact.data(1000 * n as u32, part));
    }
    assert!(seen.iter().any(|seen| matches!(seen, Seen::Client { ack, .. } if *ack == ISN + 5001)), "{seen:?}");
    // Handed on, but not spliced: the server does not have it yet.
    let seen = exact.opens(0, Some(7));
    assert!(!seen.iter().any(|seen| matches!(seen, Seen::Order(_))), "{seen:?}");
    assert_eq!(seen.iter().flat_map(|seen| seen.data().to_vec()).collect::<Vec<_>>(), post);
    // Segment 2 of 4 lost: three duplicates, one segment repeated, and the client hears nothing.
    assert_eq!(exact.server(0, 1460, ACK, b""), []);
    assert_eq!(exact.server(0, 1460, ACK, b""), []);
    assert_eq!(exact.server(0, 1460, ACK, b""), []);
    let seen = exact.server(0, 1460, ACK, b"");
    assert_eq!(seen.len(), 1, "{seen:?}");
    assert_eq!(seen[0].data(), &post[1460..2920]);
    let seen = exact.server(0, post.len() as u32, ACK, b"");
    assert!(seen.iter().any(|seen| matches!(seen, Seen::Order(_))), "{seen:?}");
    assert_eq!(exact.waits(5), []);
}

/// A client may wait for the acknowledgement of all that it has sent before it sends its last, shorter segment.
#[test]
fn the_last_bytes_of_a_long_request_are_not_waited_for() {
    let mut exact = connected();
    let head = b"POST /x HTTP/1.1\r\nHost: a\r\nContent-Type: text/xml\r\nContent-Length: 9000\r\n\r\n<a>";
    exact.data(0, head);
    assert_eq!(exact.waits(9), [], "the rest may come at once, and nothing is to be owned");
    exact.data(head.len() as u32, &[b' '; 4096]);
    let next = head.len() as u32 + 4096;
    assert_eq!(exact.data(next, &[b' '; 1000]), []);
    let seen = exact.waits(1);
    let [Seen::Client { ack, .. }] = seen[..] else { panic!("{seen:?}") };
    assert_eq!(ack, ISN + 1 + next + 1000);
}

#[test]
fn expect_100_continue_with_a_rule_on_the_body() {
    let mut exact = connected();
    let head =
        b"POST /x HTTP/1.1\r\nHost: a\r\nContent-Type: text/xml\r\nContent-Length: 40\r\nExpect: 100-continue\r\n\r\n";
    let seen = exact.data(0, head);
    let [Seen::Client { seq, data, ack, .. }] = &seen[..] else { panic!("{seen:?}") };
    assert_eq!((&data[..], *seq), (&b"HTTP/1.1 100 Continue\r\n\r\n"[..], exact.cookie + 1));
    assert_eq!(*ack, ISN + 1 + head.len() as u32);
    let said = data.len() as u32;
    let body = b"<purchase><total>6000</total></purchase>";
    let seen = exact.client(head.len() as u32, said, ACK | PSH, body);
    assert!(asks(&seen, 0, 3), "{seen:?}");
    exact.opens(0, Some(7));
    let seen = exact.server(0, (head.len() + body.len()) as u32, ACK, b"");
    // What the agent has said is in the delta.
    assert_eq!(order(&seen).delta, (exact.cookie + said - SERVER_ISN) as u32);
}

#[test]
fn sticky_client_is_remembered() {
    let mut exact = Exact::new(r#"{"protocol": "http", "default": {"to": "a", "sticky": "client"}}"#);
    exact.handshake();
    exact.data(0, GET);
    assert_eq!(order(&exact.opens(0, Some(7))).remember, Remember::Client);
}

#[test]
fn upgrade_is_opaque_from_then_on() {
    let mut exact = connected();
    let get = b"GET /b HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n";
    exact.data(0, get);
    let seen = exact.opens(0, Some(7));
    assert!(!seen.iter().any(|seen| matches!(seen, Seen::Order(_))), "each request has its group: {seen:?}");
    let seen = exact.server(
        0,
        get.len() as u32,
        ACK | PSH,
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
    );
    order(&seen);
}

#[test]
fn a_reload_lets_a_connection_keep_its_rules() {
    let mut exact = connected();
    exact.data(0, b"GET /b HTTP");
    exact.configure(r#"{"protocol": "http", "default": {"to": "z"}}"#);
    let seen = exact.data(11, b"/1.1\r\nHost: a\r\n\r\n");
    assert!(asks(&seen, 0, 2), "{seen:?}");
    let mut later = connected();
    later.configure(r#"{"protocol": "http", "default": {"to": "z"}}"#);
    assert!(asks(&later.data(0, b"GET /b HTTP/1.1\r\nHost: a\r\n\r\n"), 0, 1));
}

#[test]
fn another_agent_with_the_key_takes_a_request() {
    let first = connected();
    let mut second = Exact::new(RULES);
    second.cookie = first.cookie;
    assert!(asks(&second.data(0, GET), 0, 1));
    let mut stranger = Exact::new(RULES);
    stranger.cookie = first.cookie + 1;
    assert_eq!(stranger.data(0, GET), []);
    assert_eq!(stranger.data(0, GET), []);
    // Who insists is told that there is no such connection.
    assert!(matches!(stranger.data(0, GET)[..], [Seen::Client { flags: RST, .. }]));
    assert_eq!(stranger.service.counters.lost.get(), 1);
    assert_eq!(stranger.engine.connections(), 0);
}

#[test]
fn a_stale_connection_of_the_server_is_reset_and_asked_again() {
    let mut exact = connected();
    exact.data(0, GET);
    let seen = exact.server(5000, 777, ACK, b"");
    let [Seen::Server { seq, flags: RST, .. }, Seen::Server { flags: SYN, .. }] = seen[..] else { panic!("{seen:?}") };
    assert_eq!(seq, ISN + 1 + 777);
}

#[test]
fn a_hundred_thousand_handshakes_cost_nothing() {
    let mut exact = Exact::new(RULES);
    for n in 0..100_000u32 {
        exact.client = format!("10.1.{}.{}:{}", n >> 8 & 255, n & 255, 1024 + (n >> 16)).parse().unwrap();
        exact.handshake();
    }
    assert_eq!((exact.engine.connections(), exact.engine.memory()), (0, 0));
}

#[test]
fn a_hundred_thousand_partial_requests_share_one_budget() {
    let mut exact = Exact::new(RULES);
    let budget = crate::support::world::settings().budget;
    let mut answers = 0;
    for n in 0..100_000u32 {
        exact.now += 10_000;
        exact.client = format!("10.1.{}.{}:{}", n >> 8 & 255, n & 255, 1024 + (n >> 16)).parse().unwrap();
        exact.shake();
        let seen = exact.data(0, b"GET /");
        answers += seen.iter().filter(|seen| seen.data().starts_with(b"HTTP/1.1 408")).count();
        assert!(exact.engine.memory() <= budget);
    }
    assert_eq!(exact.engine.waiting() + answers, 100_000);
    assert!(answers > 0);
    // The newest goes on.
    let seen = exact.data(5, b" HTTP/1.1\r\nHost: a\r\n\r\n");
    assert!(asks(&seen, 0, 1), "{seen:?}");
}

const GET_B: &[u8] = b"GET /b HTTP/1.1\r\nHost: a\r\n\r\n";
const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

/// A connection with one answered request, whose next is decided anew.
fn answered() -> Exact {
    let mut exact = connected();
    exact.data(0, GET_B);
    exact.opens(0, Some(7));
    exact.server(0, GET_B.len() as u32, ACK | PSH, OK);
    exact.client(GET_B.len() as u32, OK.len() as u32, ACK, b"");
    exact
}

#[test]
fn a_late_segment_of_the_server_before_is_not_the_next_ones() {
    let mut exact = answered();
    let (asked, heard) = (GET_B.len() as u32, OK.len() as u32);
    let seen = exact.client(asked, heard, ACK | PSH, GET);
    let [Seen::Server { flags: RST, .. }, Seen::Server { flags: SYN, to, .. }] = seen[..] else { panic!("{seen:?}") };
    assert_eq!(to, group(1));
    // It repeats its answer, since the acknowledgement was late.
    assert_eq!(exact.server(0, asked, ACK | PSH, OK), []);
    let seen = exact.opens(asked, Some(7));
    assert!(seen.iter().any(|seen| seen.data() == GET), "{seen:?}");
    // A segment of the one before means nothing to the one after, either.
    let (source, destination) = (exact.service.address, exact.client);
    let seq = SERVER_ISN - 1_000_000;
    let head = Head { source, destination, seq, ack: ISN + 1 + asked, flags: ACK | PSH, window: 9 };
    assert_eq!(exact.sends(head, &[], OK), []);
}

#[test]
fn a_client_that_has_ended_needs_no_agent() {
    let mut exact = answered();
    let (asked, heard) = (GET_B.len() as u32, OK.len() as u32);
    let seen = exact.client(asked, heard, ACK | FIN, b"");
    let order = order(&seen);
    assert!(seen.iter().any(|seen| seen.flags() == ACK | FIN), "{seen:?}");
    exact.confirms(&order, Status::Applied);
    assert_eq!((exact.engine.connections(), exact.engine.memory()), (0, 0));
    // Half-closed with its only request: the answer may take its time.
    let mut exact = connected();
    exact.client(0, 0, ACK | PSH | FIN, GET_B);
    let seen = exact.opens(0, Some(7));
    assert!(matches!(seen[0], Seen::Order(_)), "{seen:?}");
}

#[test]
fn a_client_that_ends_with_more_requests_is_answered_by_their_groups() {
    let mut exact = connected();
    exact.client(0, 0, ACK | PSH | FIN, &[GET_B, GET].concat());
    let asked = GET_B.len() as u32;
    let seen = exact.opens(0, Some(7));
    assert!(!seen.iter().any(|seen| matches!(seen, Seen::Order(_))), "{seen:?}");
    assert!(seen.iter().all(|seen| seen.flags() & FIN == 0), "{seen:?}");
    exact.server(0, asked, ACK | PSH, OK);
    let end = asked + GET.len() as u32 + 1;
    let seen = exact.client(end, OK.len() as u32, ACK, b"");
    let [.., Seen::Server { flags: RST, .. }, Seen::Server { flags: SYN, to, .. }] = seen[..] else {
        panic!("{seen:?}")
    };
    assert_eq!(to, group(1));
    let seen = exact.opens(asked, Some(7));
    order(&seen);
    assert!(seen.iter().any(|seen| seen.data() == GET && seen.flags() & FIN != 0), "{seen:?}");
}

#[test]
fn a_request_behind_the_servers_end_is_reset() {
    for next in [GET_B, GET] {
        let mut exact = answered();
        let (asked, heard) = (GET_B.len() as u32, OK.len() as u32);
        exact.server(heard, asked, ACK | FIN, b"");
        // On its way when the end came: it does not know of it.
        let seen = exact.client(asked, heard, ACK | PSH, b"");
        assert!(seen.iter().all(|seen| seen.flags() & RST == 0), "{seen:?}");
        let seen = exact.client(asked, heard + 1, ACK | PSH, next);
        let seen = seen.iter().chain(&exact.client(asked, heard + 1, ACK | PSH, next)).cloned().collect::<Vec<_>>();
        assert!(!seen.iter().any(|seen| seen.flags() == SYN), "another server: {seen:?}");
        let resets = seen.iter().filter(|seen| seen.flags() & RST != 0).count();
        assert_eq!((resets, exact.engine.connections()), (2, 0), "{seen:?}");
    }
}

#[test]
fn requests_that_grow_share_the_budget() {
    let mut exact = Exact::new(RULES);
    let budget = crate::support::world::settings().budget;
    let head = b"POST /x HTTP/1.1\r\nHost: a\r\nContent-Type: text/xml\r\nContent-Length: 60000\r\n\r\n";
    let clients: Vec<_> = (0..1000).map(|n| format!("10.1.0.1:{}", 1024 + n).parse().unwrap()).collect();
    let mut cookies = Vec::new();
    for client in &clients {
        exact.client = *client;
        exact.shake();
        cookies.push(exact.cookie);
        exact.data(0, head);
    }
    assert_eq!(exact.engine.waiting(), 1000);
    for part in 0..40 {
        for (client, cookie) in clients.iter().zip(&cookies) {
            exact.now += 1;
            (exact.client, exact.cookie) = (*client, *cookie);
            exact.data(head.len() as u32 + 1400 * part, &[b' '; 1400]);
            assert!(exact.engine.memory() <= budget);
        }
    }
    assert!(exact.refused().contains(&("crowded", 1000 - exact.engine.waiting() as u64)), "{:?}", exact.refused());
    assert!(exact.engine.waiting() > 100);
}

/// Values take more than their bytes: they share the budget with them.
#[test]
fn bodies_of_many_values_share_the_budget() {
    let rules = r#"{"protocol": "http", "default": {"to": "a"}, "rules": [
        {"name": "v", "match": {"json": {"a": 7}}, "to": "b"}, {"name": "w", "match": {"json": {"a.*": 8}}, "to": "b"}]}"#;
    let mut exact = Exact::new(rules);
    let budget = crate::support::world::settings().budget;
    let head = b"POST /x HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 60000\r\n\r\n";
    let values = [&b"{\"a\":["[..], &b"1,".repeat(7000)].concat();
    let (mut sent, mut held) = (0, Vec::new());
    while exact.refused().is_empty() {
        sent += 1;
        exact.client = format!("10.1.0.1:{}", 1024 + sent).parse().unwrap();
        exact.shake();
        exact.data(0, head);
        for (n, part) in values.chunks(1400).enumerate() {
            exact.now += 1;
            exact.data((head.len() + 1400 * n) as u32, part);
            assert!(exact.engine.memory() <= budget);
        }
        held.push(exact.engine.memory());
    }
    assert_eq!(exact.refused(), [("crowded", 1)]);
    assert_eq!(exact.engine.waiting(), sent - 1);
    // 14,000 values of 12 bytes each are the larger part of what one connection takes.
    assert!(held[0] > 14_000 * 12 + values.len(), "{} bytes", held[0]);
    assert_eq!(held[1], 2 * held[0]);
    // What is refused gives back all that it took.
    exact.waits(60_000);
    assert!(exact.refused().contains(&("timeout", sent as u64 - 1)), "{:?}", exact.refused());
    assert_eq!((exact.engine.connections(), exact.engine.memory()), (0, 0));
}

#[test]
fn an_ambiguous_body_is_refused() {
    let rules = r#"{"protocol": "http", "default": {"to": "a"}, "rules": [
        {"name": "r", "match": {"json": {"role": "user", "id": {"present": true}}}, "to": "b"},
        {"name": "n", "match": {"json": {"role": "admin"}}, "refuse": 403},
        {"name": "x", "match": {"xml": {"role": "admin"}}, "refuse": 403},
        {"name": "f", "match": {"form": {"role": "admin"}}, "refuse": 403}]}"#;
    let (json, xml, form) = ("application/json", "text/xml", "application/x-www-form-urlencoded");
    let unread = "the body cannot be read, and a rule on it may refuse";
    for (media, parameters, body, status, why) in [
        (
            json,
            "",
            "{\"role\": \"x\", \"role\": \"user\", \"id\": 1}",
            "400",
            "a JSON name that a rule asks for comes twice",
        ),
        (json, "", "{\"x\": \"\u{a0}\", \"role\": \"user\", \"id\": 1}", "400", "the JSON is no UTF-8"),
        (json, "; charset=utf-16", "{}", "415", unread),
        (xml, "", "<?xml version='1.0' encoding='UTF-7'?><a>+ADw-role+AD4-admin+ADw-/role+AD4-</a>", "415", unread),
        (xml, "", "<a>\u{a0}</a>", "415", unread),
        (form, "; charset=ibm037", "role=x", "415", unread),
        (form, "", "a=%FF%FE%3C%00a%00", "415", unread),
    ] {
        let mut exact = Exact::new(rules);
        exact.handshake();
        // Latin-1: no-break space is a byte that begins no character of UTF-8.
        let body: Vec<u8> = body.chars().map(|character| u8::try_from(character).unwrap()).collect();
        let head = format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Type: {media}{parameters}");
        let head = format!("{head}\r\nContent-Length: {}\r\n\r\n", body.len());
        let seen = exact.data(0, &[head.as_bytes(), &body].concat());
        assert!(is_answer(&seen, status), "{why}: {seen:?}");
        assert_eq!(exact.refused(), [(why, 1)]);
    }
}

#[test]
fn connections_between_two_requests_share_the_budget() {
    let mut exact = Exact::new(RULES);
    let budget = crate::support::world::settings().budget;
    let mut clients = Vec::new();
    let mut let_go = 0;
    while let_go == 0 {
        exact.now += 1000;
        exact.client = format!("10.1.{}.1:{}", clients.len() >> 12, 1024 + (clients.len() & 0xfff)).parse().unwrap();
        exact.shake();
        let mut seen = exact.data(0, GET_B);
        seen.extend(exact.opens(0, Some(7)));
        seen.extend(exact.server(0, GET_B.len() as u32, ACK | PSH, OK));
        seen.extend(exact.client(GET_B.len() as u32, OK.len() as u32, ACK, b""));
        let_go = seen.iter().filter(|seen| seen.flags() & RST != 0).count();
        clients.push(exact.client);
        assert!(exact.engine.memory() <= budget);
        assert!(clients.len() < 100_000, "{} bytes", exact.engine.memory());
    }
    // The oldest: both of its sides.
    assert_eq!((let_go, exact.engine.connections()), (2, clients.len() - 1));
    assert_eq!(exact.refused(), [("crowded", 1)]);
    // A new request is as welcome as before.
    exact.client = "10.2.0.1:4711".parse().unwrap();
    exact.shake();
    let seen = exact.data(0, GET_B);
    assert!(seen.iter().any(|seen| seen.flags() == SYN), "{seen:?}");
}

#[test]
fn refused_clients_that_stay_share_the_budget() {
    let mut exact = Exact::new(GUARDING);
    let budget = crate::support::world::settings().budget;
    for n in 0..60_000u32 {
        exact.now += 10_000;
        exact.client = format!("10.1.{}.{}:{}", n >> 8 & 255, n & 255, 1024 + (n >> 16)).parse().unwrap();
        exact.shake();
        let seen = exact.data(0, b"GET /admin HTTP/1.1\r\nHost: a\r\n\r\n");
        assert!(is_answer(&seen, "403"), "{n}: {seen:?}");
        assert!(exact.engine.memory() <= budget);
    }
    assert_eq!(exact.refused(), [("a rule refuses", 60_000)]);
}
