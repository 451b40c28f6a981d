//! Tests of connections that the agent opens to servers: a server refuses, does not answer, or answers for an earlier
//! connection.

use sluice_agent::Frames;
use sluice_agent::seq::Seq;
use sluice_agent::wire::flags::{ACK, PSH, RST, SYN};
use sluice_agent::wire::{Link, Segment, SegmentHeader};

use crate::support::harness::{GET, ISN, OK, Output, connected, group, is_answer, is_syn_to};
use crate::support::switch::{AGENT_MAC, SWITCH_MAC};

#[test]
fn server_refuses_or_is_silent() {
    let mut harness = connected();
    harness.data(0, GET);
    let outputs = harness.refuses_all(0);
    assert!(is_answer(&outputs, "503"), "{outputs:?}");
    assert_eq!(harness.refused(), [("server_refused", 1)]);
    assert_eq!(harness.service.groups[0].failed.get(), 4);

    let mut harness = connected();
    harness.data(0, GET);
    let outputs = harness.waits(3_700);
    assert_eq!(outputs.iter().filter(|output| output.flags() == SYN).count(), 3, "{outputs:?}");
    let outputs = harness.waits(100);
    let [Output::Server { to, seq, flags: RST, .. }, answer] = &outputs[..] else { panic!("{outputs:?}") };
    assert_eq!((*to, *seq), (group(1), ISN + 1));
    assert!(is_answer(std::slice::from_ref(answer), "503"), "{outputs:?}");
    assert_eq!(harness.service.groups[0].failed.get(), 1);
}

#[test]
fn a_server_that_refuses_is_left_for_the_next_of_its_group() {
    let mut harness = connected();
    harness.data(0, GET);
    for _ in 0..3 {
        let outputs = harness.server(0, 0, RST | ACK, b"");
        let [Output::Server { to, seq, flags: RST, .. }, rest @ ..] = &outputs[..] else { panic!("{outputs:?}") };
        assert_eq!((*to, *seq), (group(1), ISN + 1), "the refusing server is left");
        assert!(is_syn_to(rest, 0, 1), "{outputs:?}");
        // After a refusal, the agent repeats an unanswered SYN to the next server in the same way as to the first.
        assert!(is_syn_to(&harness.waits(250), 0, 1));
    }
    let outputs = harness.opens(0, Some(7));
    assert!(outputs.iter().any(|output| output.data() == GET), "{outputs:?}");
    assert_eq!((harness.refused(), harness.service.groups[0].failed.get()), (vec![], 3));
}

/// A forged reset does not count as a refusal: a server's refusal acknowledges exactly the agent's SYN.
#[test]
fn a_forged_refusal_is_none() {
    let mut harness = connected();
    harness.data(0, GET);
    for (has, flags) in [(1, RST | ACK), (u32::MAX, RST | ACK), (0, RST)] {
        assert_eq!(harness.server(0, has, flags, b""), []);
    }
    assert!(harness.opens(0, Some(7)).iter().any(|output| output.data() == GET));
}

/// Each SYN carries the number of its attempt as IPv4 identification, by which the data plane selects another server.
#[test]
fn each_attempt_has_its_number() {
    let mut harness = connected();
    harness.data(0, GET);
    let (source, destination) = (harness.service.address, harness.client);
    let head = SegmentHeader { source, destination, seq: Seq(0), ack: ISN + 1, flags: RST | ACK, window: 0 };
    for attempt in 1..4 {
        let mut frame = Vec::new();
        let link = Link { own: SWITCH_MAC, router: AGENT_MAC };
        head.write(&link, &[], [b"", b""], &mut frame);
        for repeated in [false, true] {
            let mut out = Frames::default();
            if repeated {
                harness.now += 250_000_000;
                harness.engine.poll(harness.now, &mut out);
            } else {
                harness.engine.receive(harness.now, &frame, &mut out);
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
    let mut harness = connected();
    harness.data(0, GET);
    let outputs = harness.client(GET.len() as u32, 0, RST, b"");
    assert!(
        matches!(outputs[..], [Output::Server { to, seq, flags: RST, .. }] if to == group(1) && seq == ISN + 1),
        "{outputs:?}"
    );
    assert_eq!(harness.engine.connections(), 0);
    assert_eq!(harness.opens(0, Some(7)), []);
}

#[test]
fn a_stale_connection_of_the_server_is_reset_and_the_syn_repeated() {
    let mut harness = connected();
    harness.data(0, GET);
    let outputs = harness.server(5000, 777, ACK, b"");
    let [Output::Server { seq, flags: RST, .. }, Output::Server { flags: SYN, .. }] = outputs[..] else {
        panic!("{outputs:?}")
    };
    assert_eq!(seq, ISN + 1 + 777);
    // The agent resets the earlier connection only once. A late segment of this connection causes no second reset,
    // which would remove the new connection's entry in the data plane.
    assert_eq!(harness.server(5000, 777, ACK, b""), []);
    let outputs = harness.opens(0, Some(7));
    assert!(outputs.iter().any(|output| output.data() == GET), "{outputs:?}");
    // The server is the same host, and its new sequence numbers are in the range of the earlier connection.
    assert_eq!(harness.server(2000, 0, ACK | PSH, OK), []);
    let outputs = harness.server(0, GET.len() as u32, ACK | PSH, OK);
    assert!(outputs.iter().any(|output| output.data() == OK), "{outputs:?}");
}
