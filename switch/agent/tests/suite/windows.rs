//! Windows of both sides as the agent passes them on: shifted, closed, and opened late.

use sluice_agent::wire::flags::{ACK, RST, SYN};
use sluice_agent::wire::{Head, RawOffer};

use crate::support::exact::{EACH, Exact, GET, ISN, RULES, SERVER_ISN, Seen, connected, order};

/// Sends a request to a server whose SYN-ACK has a window of 0, as from a SYNPROXY.
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
    for get in [GET, EACH] {
        let mut exact = held_up(get);
        // The client need not retransmit; if it does, it is sent an ACK.
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
fn windows_of_servers_with_other_scales() {
    // The client was offered a scale of 7.
    for (scale, field, passed_on) in
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
        let room = 768; // of the agent, shifted as well: no larger window is passed on while it has the turn
        assert!(
            matches!(seen[..], [Seen::Client { window, .. }] if window == passed_on.min(room)),
            "{scale:?}: {seen:?}"
        );
    }
}

/// The client scales its windows, because the agent has offered it a scale; a server that does not scale reads them
/// unshifted.
#[test]
fn windows_of_clients_toward_servers_that_do_not_scale() {
    for (client_scale, scale, field, passed_on) in [
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
        assert!(matches!(seen[..], [Seen::Server { window, .. }] if window == passed_on), "{client_scale:?}: {seen:?}");
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
