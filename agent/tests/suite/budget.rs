//! Tests of the memory budget that an agent's connections share.

use sluice_agent::wire::flags::{ACK, PSH, RST, SYN};

use crate::support::harness::{EACH, GUARDING, Harness, OK, RULES, is_answer, is_syn_to};

#[test]
fn a_hundred_thousand_handshakes_cost_nothing() {
    let mut harness = Harness::new(RULES);
    for n in 0..100_000u32 {
        harness.client = format!("10.1.{}.{}:{}", n >> 8 & 255, n & 255, 1024 + (n >> 16)).parse().unwrap();
        harness.handshake();
    }
    assert_eq!((harness.engine.connections(), harness.engine.memory()), (0, 0));
}

#[test]
fn a_hundred_thousand_partial_requests_share_one_budget() {
    let mut harness = Harness::new(RULES);
    let budget = crate::support::world::settings().budget;
    let mut answers = 0;
    for n in 0..100_000u32 {
        harness.now += 10_000;
        harness.client = format!("10.1.{}.{}:{}", n >> 8 & 255, n & 255, 1024 + (n >> 16)).parse().unwrap();
        harness.shake();
        let outputs = harness.data(0, b"GET /");
        answers += outputs.iter().filter(|output| output.data().starts_with(b"HTTP/1.1 408")).count();
        assert!(harness.engine.memory() <= budget);
    }
    assert_eq!(harness.engine.waiting() + answers, 100_000);
    assert!(answers > 0);
    // The newest connection is still served.
    let outputs = harness.data(5, b" HTTP/1.1\r\nHost: a\r\n\r\n");
    assert!(is_syn_to(&outputs, 0, 1), "{outputs:?}");
}

#[test]
fn requests_that_grow_share_the_budget() {
    let mut harness = Harness::new(RULES);
    let budget = crate::support::world::settings().budget;
    let head = b"POST /x HTTP/1.1\r\nHost: a\r\nContent-Type: text/xml\r\nContent-Length: 60000\r\n\r\n";
    let clients: Vec<_> = (0..1000).map(|n| format!("10.1.0.1:{}", 1024 + n).parse().unwrap()).collect();
    let mut cookies = Vec::new();
    for client in &clients {
        harness.client = *client;
        harness.shake();
        cookies.push(harness.cookie);
        harness.data(0, head);
    }
    assert_eq!(harness.engine.waiting(), 1000);
    for piece in 0..40 {
        for (client, cookie) in clients.iter().zip(&cookies) {
            harness.now += 1;
            (harness.client, harness.cookie) = (*client, *cookie);
            harness.data(head.len() as u32 + 1400 * piece, &[b' '; 1400]);
            assert!(harness.engine.memory() <= budget);
        }
    }
    assert!(
        harness.refused().contains(&("crowded", 1000 - harness.engine.waiting() as u64)),
        "{:?}",
        harness.refused()
    );
    assert!(harness.engine.waiting() > 100);
}

/// The budget includes the memory for the bookkeeping of a body's values, which is needed in addition to the body's
/// bytes.
#[test]
fn bodies_of_many_values_share_the_budget() {
    let rules = r#"{"protocol": "http", "default": {"to": "a"}, "rules": [
        {"name": "v", "match": {"json": {"a": 7}}, "to": "b"}, {"name": "w", "match": {"json": {"a.*": 8}}, "to": "b"}]}"#;
    let mut harness = Harness::new(rules);
    let budget = crate::support::world::settings().budget;
    let head = b"POST /x HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 60000\r\n\r\n";
    let values = [&b"{\"a\":["[..], &b"1,".repeat(7000)].concat();
    let (mut sent, mut memory_bytes) = (0, Vec::new());
    while harness.refused().is_empty() {
        sent += 1;
        harness.client = format!("10.1.0.1:{}", 1024 + sent).parse().unwrap();
        harness.shake();
        harness.data(0, head);
        for (n, piece) in values.chunks(1400).enumerate() {
            harness.now += 1;
            harness.data((head.len() + 1400 * n) as u32, piece);
            assert!(harness.engine.memory() <= budget);
        }
        memory_bytes.push(harness.engine.memory());
    }
    assert_eq!(harness.refused(), [("crowded", 1)]);
    assert_eq!(harness.engine.waiting(), sent - 1);
    // The rules store each of the 7,000 values for two paths, with 12 bytes of bookkeeping per path. This makes up most
    // of the memory of a connection.
    assert!(memory_bytes[0] > 14_000 * 12 + values.len(), "{} bytes", memory_bytes[0]);
    assert_eq!(memory_bytes[1], 2 * memory_bytes[0]);
    // When a request is refused, all its memory is freed.
    harness.waits(60_000);
    assert!(harness.refused().contains(&("timeout", sent as u64 - 1)), "{:?}", harness.refused());
    assert_eq!((harness.engine.connections(), harness.engine.memory()), (0, 0));
}

#[test]
fn connections_between_two_requests_share_the_budget() {
    let mut harness = Harness::new(RULES);
    let budget = crate::support::world::settings().budget;
    let mut clients = Vec::new();
    let mut resets = 0;
    while resets == 0 {
        harness.now += 1000;
        harness.client = format!("10.1.{}.1:{}", clients.len() >> 12, 1024 + (clients.len() & 0xfff)).parse().unwrap();
        harness.shake();
        let mut outputs = harness.data(0, EACH);
        outputs.extend(harness.opens(0, Some(7)));
        outputs.extend(harness.server(0, EACH.len() as u32, ACK | PSH, OK));
        outputs.extend(harness.client(EACH.len() as u32, OK.len() as u32, ACK, b""));
        resets = outputs.iter().filter(|output| output.flags() & RST != 0).count();
        clients.push(harness.client);
        assert!(harness.engine.memory() <= budget);
        assert!(clients.len() < 100_000, "{} bytes", harness.engine.memory());
    }
    // The oldest connection is closed: its client and its server are reset.
    assert_eq!((resets, harness.engine.connections()), (2, clients.len() - 1));
    assert_eq!(harness.refused(), [("crowded", 1)]);
    // A new request is served as before.
    harness.client = "10.2.0.1:4711".parse().unwrap();
    harness.shake();
    let outputs = harness.data(0, EACH);
    assert!(outputs.iter().any(|output| output.flags() == SYN), "{outputs:?}");
}

#[test]
fn refused_clients_that_stay_share_the_budget() {
    let mut harness = Harness::new(GUARDING);
    let budget = crate::support::world::settings().budget;
    for n in 0..60_000u32 {
        harness.now += 10_000;
        harness.client = format!("10.1.{}.{}:{}", n >> 8 & 255, n & 255, 1024 + (n >> 16)).parse().unwrap();
        harness.shake();
        let outputs = harness.data(0, b"GET /admin HTTP/1.1\r\nHost: a\r\n\r\n");
        assert!(is_answer(&outputs, "403"), "{n}: {outputs:?}");
        assert!(harness.engine.memory() <= budget);
    }
    assert_eq!(harness.refused(), [("a rule refuses", 60_000)]);
}
