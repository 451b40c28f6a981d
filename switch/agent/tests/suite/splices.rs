//! From the decision about a request to the splice: the order, and the segments that pass through the agent
//! meanwhile.

use sluice_agent::order::{Remember, Status};
use sluice_agent::wire::flags::{ACK, FIN, PSH, RST};

use crate::support::exact::{Exact, GET, ISN, SERVER_ISN, Seen, asks, connected, group, order};

#[test]
fn a_request_in_one_segment_is_not_acknowledged() {
    let mut exact = connected();
    let seen = exact.data(0, GET);
    assert!(asks(&seen, 0, 1), "{seen:?}");
    // Repeated meanwhile: the client gets no answer.
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
fn client_half_closes_with_its_request() {
    let mut exact = connected();
    let seen = exact.client(0, 0, ACK | PSH | FIN, GET);
    assert!(asks(&seen, 0, 1), "{seen:?}");
    let seen = exact.opens(0, Some(7));
    assert_eq!((seen[1].data(), seen[1].flags()), (GET, ACK | PSH | FIN));
    // A FIN behind the request, before the confirmation, is passed on as well.
    let mut exact = connected();
    exact.data(0, GET);
    exact.opens(0, Some(7));
    let seen = exact.client(GET.len() as u32, 0, ACK | FIN, b"");
    assert!(matches!(seen[..], [Seen::Server { flags, .. }] if flags == ACK | FIN), "{seen:?}");
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
    // Forwarded, but not spliced: the server has not acknowledged it yet.
    let seen = exact.opens(0, Some(7));
    assert!(!seen.iter().any(|seen| matches!(seen, Seen::Order(_))), "{seen:?}");
    assert_eq!(seen.iter().flat_map(|seen| seen.data().to_vec()).collect::<Vec<_>>(), post);
    // Segment 2 of 4 is lost: three duplicate ACKs, one segment is retransmitted, and the client gets nothing.
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

/// A client may wait until all that it has sent is acknowledged before it sends its last, shorter segment.
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
