//! Connections that the agent opens to servers: refused, unanswered, or answered by an earlier connection.

use sluice_agent::Frames;
use sluice_agent::seq::Seq;
use sluice_agent::wire::flags::{ACK, PSH, RST, SYN};
use sluice_agent::wire::{Head, Link, Segment};

use crate::support::exact::{GET, ISN, OK, Seen, asks, connected, group, is_answer};
use crate::support::switch::{AGENT_MAC, SWITCH_MAC};

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

#[test]
fn a_server_that_refuses_is_left_for_the_next_of_its_group() {
    let mut exact = connected();
    exact.data(0, GET);
    for _ in 0..3 {
        let seen = exact.server(0, 0, RST | ACK, b"");
        let [Seen::Server { to, seq, flags: RST, .. }, rest @ ..] = &seen[..] else { panic!("{seen:?}") };
        assert_eq!((*to, *seq), (group(1), ISN + 1), "the refusing server is left");
        assert!(asks(rest, 0, 1), "{seen:?}");
        // A server that does not answer gets as many SYNs as the first one.
        assert!(asks(&exact.waits(250), 0, 1));
    }
    let seen = exact.opens(0, Some(7));
    assert!(seen.iter().any(|seen| seen.data() == GET), "{seen:?}");
    assert_eq!((exact.refused(), exact.service.groups[0].failed.get()), (vec![], 3));
}

/// Only a reset that acknowledges the SYN exactly is an answer to it.
#[test]
fn a_forged_refusal_is_none() {
    let mut exact = connected();
    exact.data(0, GET);
    for (has, flags) in [(1, RST | ACK), (u32::MAX, RST | ACK), (0, RST)] {
        assert_eq!(exact.server(0, has, flags, b""), []);
    }
    assert!(exact.opens(0, Some(7)).iter().any(|seen| seen.data() == GET));
}

/// The data plane selects the server by the attempt's number.
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
fn a_stale_connection_of_the_server_is_reset_and_asked_again() {
    let mut exact = connected();
    exact.data(0, GET);
    let seen = exact.server(5000, 777, ACK, b"");
    let [Seen::Server { seq, flags: RST, .. }, Seen::Server { flags: SYN, .. }] = seen[..] else { panic!("{seen:?}") };
    assert_eq!(seq, ISN + 1 + 777);
    // Only once: a late segment of the earlier connection does not free the slot of the new one.
    assert_eq!(exact.server(5000, 777, ACK, b""), []);
    let seen = exact.opens(0, Some(7));
    assert!(seen.iter().any(|seen| seen.data() == GET), "{seen:?}");
    // The same host, whose new numbers begin among those of the earlier connection.
    assert_eq!(exact.server(2000, 0, ACK | PSH, OK), []);
    let seen = exact.server(0, GET.len() as u32, ACK | PSH, OK);
    assert!(seen.iter().any(|seen| seen.data() == OK), "{seen:?}");
}
