//! Tests of the time from the decision about a request to the splice: the splice order, and the segments that the agent
//! translates before the data plane takes over.

use sluice_agent::order::{Remember, Status};
use sluice_agent::wire::flags::{ACK, FIN, PSH, RST};

use crate::support::harness::{GET, Harness, ISN, Output, SERVER_ISN, connected, group, is_syn_to, order};

#[test]
fn a_request_in_one_segment_is_not_acknowledged() {
    let mut harness = connected();
    let outputs = harness.data(0, GET);
    assert!(is_syn_to(&outputs, 0, 1), "{outputs:?}");
    // The client repeats its request before a server has accepted the connection, and the agent does not answer.
    assert_eq!(harness.data(0, GET), []);
    let outputs = harness.opens(0, Some(7));
    let order = order(&outputs[..1]);
    assert_eq!(order.delta, (harness.cookie - SERVER_ISN) as u32);
    assert_eq!((order.shift, order.remember, order.generation), (0, Remember::Nothing, 1));
    let request = Output::Server {
        to: group(1),
        seq: ISN + 1,
        ack: SERVER_ISN + 1,
        flags: ACK | PSH,
        window: 100,
        data: GET.to_vec(),
    };
    assert_eq!(outputs[1..], [request]);
    assert_eq!(harness.confirms(&order, Status::Applied), []);
    assert_eq!((harness.engine.connections(), harness.engine.memory()), (0, 0));
    assert_eq!(harness.service.counters.spliced.get(), 1);
}

#[test]
fn an_order_is_repeated_until_it_is_confirmed() {
    let mut harness = connected();
    harness.data(0, GET);
    let order = order(&harness.opens(0, Some(7)));
    assert_eq!(harness.waits(19), []);
    assert_eq!(harness.waits(1), [Output::Order(order)]);
    assert_eq!(harness.waits(39), []);
    assert_eq!(harness.waits(1), [Output::Order(order)]);
    // Until the order is confirmed, the agent translates.
    let outputs = harness.server(0, GET.len() as u32, ACK | PSH, b"HTTP/1.1 200 OK\r\n");
    let [Output::Client { seq, ack, window, data, .. }] = &outputs[..] else { panic!("{outputs:?}") };
    assert_eq!((*seq, *ack, *window), (harness.cookie + 1, ISN + 1 + GET.len() as u32, 500));
    assert_eq!(data, b"HTTP/1.1 200 OK\r\n");
    let outputs = harness.client(GET.len() as u32, 17, ACK, b"");
    let [Output::Server { seq, ack, .. }] = &outputs[..] else { panic!("{outputs:?}") };
    assert_eq!((*seq, *ack), (ISN + 1 + GET.len() as u32, SERVER_ISN + 1 + 17));
    harness.confirms(&order, Status::Applied);
    assert_eq!(harness.waits(10_000), []);
}

#[test]
fn an_order_that_is_refused_resets_both_sides() {
    let mut harness = connected();
    harness.data(0, GET);
    let order = order(&harness.opens(0, Some(7)));
    let outputs = harness.confirms(&order, Status::NoConnection);
    assert!(outputs.iter().all(|output| output.flags() & RST != 0) && outputs.len() == 2, "{outputs:?}");
    assert_eq!(harness.engine.connections(), 0);
}

#[test]
fn client_half_closes_with_its_request() {
    let mut harness = connected();
    let outputs = harness.client(0, 0, ACK | PSH | FIN, GET);
    assert!(is_syn_to(&outputs, 0, 1), "{outputs:?}");
    let outputs = harness.opens(0, Some(7));
    assert_eq!((outputs[1].data(), outputs[1].flags()), (GET, ACK | PSH | FIN));
    // A FIN that arrives behind the request, before the order is confirmed, is forwarded as well.
    let mut harness = connected();
    harness.data(0, GET);
    harness.opens(0, Some(7));
    let outputs = harness.client(GET.len() as u32, 0, ACK | FIN, b"");
    assert!(matches!(outputs[..], [Output::Server { flags, .. }] if flags == ACK | FIN), "{outputs:?}");
}

#[test]
fn what_the_agent_owns_it_repeats_in_place_of_the_client() {
    let mut harness = connected();
    let head = b"POST /x HTTP/1.1\r\nHost: a\r\nContent-Type: text/xml\r\nContent-Length: 5040\r\n\r\n";
    let mut post = head.to_vec();
    post.resize(head.len() + 5000, b' ');
    post.extend(b"<purchase><total>6000</total></purchase>");
    let mut outputs = Vec::new();
    for (n, piece) in post.chunks(1000).enumerate() {
        outputs.extend(harness.data(1000 * n as u32, piece));
    }
    assert!(
        outputs.iter().any(|output| matches!(output, Output::Client { ack, .. } if *ack == ISN + 5001)),
        "{outputs:?}"
    );
    // The agent forwards the request, but sends no splice order, because the server has not acknowledged the request
    // yet.
    let outputs = harness.opens(0, Some(7));
    assert!(!outputs.iter().any(|output| matches!(output, Output::Order(_))), "{outputs:?}");
    assert_eq!(outputs.iter().flat_map(|output| output.data().to_vec()).collect::<Vec<_>>(), post);
    // Segment 2 of 4 is lost. After three duplicate ACKs, the agent retransmits this segment, and sends nothing to the
    // client.
    assert_eq!(harness.server(0, 1460, ACK, b""), []);
    assert_eq!(harness.server(0, 1460, ACK, b""), []);
    assert_eq!(harness.server(0, 1460, ACK, b""), []);
    let outputs = harness.server(0, 1460, ACK, b"");
    assert_eq!(outputs.len(), 1, "{outputs:?}");
    assert_eq!(outputs[0].data(), &post[1460..2920]);
    let outputs = harness.server(0, post.len() as u32, ACK, b"");
    assert!(outputs.iter().any(|output| matches!(output, Output::Order(_))), "{outputs:?}");
    assert_eq!(harness.waits(5), []);
}

/// The agent acknowledges a long request without delay: a client may wait for the ACK of all earlier bytes before it
/// sends its last, shorter segment.
#[test]
fn the_last_bytes_of_a_long_request_are_not_waited_for() {
    let mut harness = connected();
    let head = b"POST /x HTTP/1.1\r\nHost: a\r\nContent-Type: text/xml\r\nContent-Length: 9000\r\n\r\n<a>";
    harness.data(0, head);
    assert_eq!(harness.waits(9), [], "the rest may come at once, and nothing is to be owned");
    harness.data(head.len() as u32, &[b' '; 4096]);
    let next = head.len() as u32 + 4096;
    assert_eq!(harness.data(next, &[b' '; 1000]), []);
    let outputs = harness.waits(1);
    let [Output::Client { ack, .. }] = outputs[..] else { panic!("{outputs:?}") };
    assert_eq!(ack, ISN + 1 + next + 1000);
}

#[test]
fn sticky_client_is_remembered() {
    let mut harness = Harness::new(r#"{"protocol": "http", "default": {"to": "a", "sticky": "client"}}"#);
    harness.handshake();
    harness.data(0, GET);
    assert_eq!(order(&harness.opens(0, Some(7))).remember, Remember::Client);
}

#[test]
fn upgrade_is_opaque_from_then_on() {
    let mut harness = connected();
    let get = b"GET /b HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n";
    harness.data(0, get);
    let outputs = harness.opens(0, Some(7));
    assert!(
        !outputs.iter().any(|output| matches!(output, Output::Order(_))),
        "each request has its group: {outputs:?}"
    );
    let outputs = harness.server(
        0,
        get.len() as u32,
        ACK | PSH,
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
    );
    order(&outputs);
}
