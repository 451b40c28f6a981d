//! The memory that an agent's connections share.

use sluice_agent::wire::flags::{ACK, PSH, RST, SYN};

use crate::support::exact::{EACH, Exact, GUARDING, OK, RULES, asks, is_answer};

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
    // The newest connection continues.
    let seen = exact.data(5, b" HTTP/1.1\r\nHost: a\r\n\r\n");
    assert!(asks(&seen, 0, 1), "{seen:?}");
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

/// Values take more memory than their bytes: their bookkeeping counts in the budget as well.
#[test]
fn bodies_of_many_values_share_the_budget() {
    let rules = r#"{"protocol": "http", "default": {"to": "a"}, "rules": [
        {"name": "v", "match": {"json": {"a": 7}}, "to": "b"}, {"name": "w", "match": {"json": {"a.*": 8}}, "to": "b"}]}"#;
    let mut exact = Exact::new(rules);
    let budget = crate::support::world::settings().budget;
    let head = b"POST /x HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 60000\r\n\r\n";
    let values = [&b"{\"a\":["[..], &b"1,".repeat(7000)].concat();
    let (mut sent, mut memory_bytes) = (0, Vec::new());
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
        memory_bytes.push(exact.engine.memory());
    }
    assert_eq!(exact.refused(), [("crowded", 1)]);
    assert_eq!(exact.engine.waiting(), sent - 1);
    // 14,000 values of 12 bytes each make up most of the memory of one connection.
    assert!(memory_bytes[0] > 14_000 * 12 + values.len(), "{} bytes", memory_bytes[0]);
    assert_eq!(memory_bytes[1], 2 * memory_bytes[0]);
    // A refused request frees all its memory.
    exact.waits(60_000);
    assert!(exact.refused().contains(&("timeout", sent as u64 - 1)), "{:?}", exact.refused());
    assert_eq!((exact.engine.connections(), exact.engine.memory()), (0, 0));
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
        let mut seen = exact.data(0, EACH);
        seen.extend(exact.opens(0, Some(7)));
        seen.extend(exact.server(0, EACH.len() as u32, ACK | PSH, OK));
        seen.extend(exact.client(EACH.len() as u32, OK.len() as u32, ACK, b""));
        let_go = seen.iter().filter(|seen| seen.flags() & RST != 0).count();
        clients.push(exact.client);
        assert!(exact.engine.memory() <= budget);
        assert!(clients.len() < 100_000, "{} bytes", exact.engine.memory());
    }
    // The oldest connection is closed on both sides.
    assert_eq!((let_go, exact.engine.connections()), (2, clients.len() - 1));
    assert_eq!(exact.refused(), [("crowded", 1)]);
    // A new request is served as before.
    exact.client = "10.2.0.1:4711".parse().unwrap();
    exact.shake();
    let seen = exact.data(0, EACH);
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
