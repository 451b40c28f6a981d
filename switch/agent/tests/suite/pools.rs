//! The abilities that agents announce to clients on behalf of servers: learned from SYN-ACKs, shared by agents, and
//! forgotten with the servers or after a while.

use std::sync::Arc;

use sluice_agent::pool::{HALF_LIFE, Learned, SCALE, Shared};
use sluice_agent::wire::flags::{ACK, SYN};
use sluice_agent::wire::{Head, RawOffer, Segment};
use sluice_agent::{Configuration, Frames};

use crate::support::exact::{Exact, GET, ISN, RULES, SERVER_ISN, Seen, group};
use crate::support::switch::{AGENT_MAC, SWITCH_MAC};

const ALL: RawOffer = RawOffer { mss: Some(1460), scale: Some(9), sack: true };

/// Returns the window and options of the SYN-ACK to a client.
fn answered(exact: &mut Exact, offer: RawOffer) -> (u16, RawOffer) {
    exact.client.set_port(exact.client.port() + 1);
    let (options, length) = offer.write();
    let (source, destination) = (exact.client, exact.own());
    let head = Head { source, destination, seq: ISN, ack: sluice_agent::seq::Seq(0), flags: SYN, window: 64_000 };
    let (mut frame, mut out) = (Vec::new(), Frames::default());
    let link = sluice_agent::wire::Link { own: SWITCH_MAC, router: AGENT_MAC };
    head.write(&link, &options[..length], [b"", b""], &mut frame);
    exact.engine.receive(exact.now, &frame, &mut out);
    let segment = Segment::read(out.iter().next().unwrap()).unwrap();
    assert!(segment.has(SYN | ACK));
    exact.cookie = segment.seq();
    (segment.window(), segment.offer())
}

/// Connects to a server that answers with this window and these options.
fn serves(exact: &mut Exact, window: u16, options: RawOffer) -> Vec<Seen> {
    answered(exact, ALL);
    exact.data(0, GET);
    let (source, destination) = (exact.service.address, exact.client);
    let head = Head { source, destination, seq: SERVER_ISN, ack: ISN + 1, flags: SYN | ACK, window };
    let (options, length) = options.write();
    exact.sends(head, &options[..length], b"")
}

/// Reconfigures the agent: group `a` has these servers from now on.
fn has_servers(exact: &mut Exact, servers: &[u16]) {
    let mut service = Arc::into_inner(crate::support::exact::service(RULES)).unwrap();
    service.groups[0].servers = servers.to_vec();
    exact.service = Arc::new(service);
    let services = vec![Arc::clone(&exact.service)];
    exact.engine.configure(exact.now, Configuration { services, generation: 2, key: [7; 16], former_key: None });
}

/// Returns what a client is offered: window, MSS, and whether it may send SACK.
fn offered(exact: &mut Exact) -> (u16, u16, bool) {
    let (window, offer) = answered(exact, ALL);
    assert_eq!(offer.scale, Some(SCALE));
    (window, offer.mss.unwrap(), offer.sack)
}

const WEAK: RawOffer = RawOffer { mss: Some(1000), scale: Some(2), sack: false };

#[test]
fn a_closed_window_of_a_server_is_not_the_services() {
    let mut exact = Exact::new(RULES);
    serves(&mut exact, 0, ALL);
    assert_eq!(offered(&mut exact), (65_535, 1460, true));
    // The window behind the handshake is open as well.
    let seen = exact.client(u32::MAX, 0, ACK, b"");
    assert!(matches!(seen[..], [Seen::Client { window: 511, .. }]), "{seen:?}");
    assert_eq!(exact.engine.learned(exact.now)[0].learned.window, None);
}

#[test]
fn a_small_window_is_not_rounded_to_none() {
    let mut exact = Exact::new(RULES);
    serves(&mut exact, 100, ALL);
    assert_eq!(offered(&mut exact), (100, 1460, true));
    let seen = exact.client(u32::MAX, 0, ACK, b"");
    assert!(matches!(seen[..], [Seen::Client { window: 1, .. }]), "{seen:?}");
    exact.data(0, &GET[..5]);
    let seen = exact.waits(10);
    assert!(matches!(seen[..], [Seen::Client { window: 1, .. }]), "{seen:?}");
}

#[test]
fn the_least_of_all_servers_counts() {
    let mut exact = Exact::new(RULES);
    serves(&mut exact, 20_000, ALL);
    serves(&mut exact, 30_000, RawOffer { scale: None, ..WEAK });
    assert_eq!(offered(&mut exact), (20_000, 1000, false));
    let learned = exact.engine.learned(exact.now);
    let [Shared { group: of, servers, learned }] = &learned[..] else { panic!("{learned:?}") };
    assert_eq!((*of, servers.len()), (group(1), 0));
    let expected =
        Learned { mss: Some(1000), window: Some(20_000), sack: Some(false), scales: Some(false), scale: Some(9) };
    assert_eq!(*learned, expected);
}

#[test]
fn servers_that_are_gone_count_no_more() {
    let mut exact = Exact::new(RULES);
    has_servers(&mut exact, &[3, 5]);
    serves(&mut exact, 20_000, WEAK);
    has_servers(&mut exact, &[5, 3]);
    assert_eq!(offered(&mut exact), (20_000, 1000, false), "the same servers");
    has_servers(&mut exact, &[3]);
    assert_eq!(offered(&mut exact), (65_535, 1460, true));
}

#[test]
fn what_was_learned_ages() {
    let minutes = HALF_LIFE / 1_000_000;
    let mut exact = Exact::new(RULES);
    serves(&mut exact, 20_000, WEAK);
    exact.waits(minutes - 10_000);
    assert_eq!(offered(&mut exact), (20_000, 1000, false));
    exact.waits(20_000);
    serves(&mut exact, 30_000, ALL);
    assert_eq!(offered(&mut exact), (20_000, 1000, false), "the half-life before counts");
    exact.waits(minutes);
    assert_eq!(offered(&mut exact), (30_000, 1460, true));
    exact.waits(minutes);
    assert_eq!(offered(&mut exact), (65_535, 1460, true));
}

#[test]
fn what_other_agents_have_learned_counts() {
    let learned = Learned { mss: Some(1000), window: Some(9000), sack: Some(false), ..Learned::default() };
    let shared = |servers: &[u16]| vec![Shared { group: group(1), servers: servers.to_vec(), learned }];
    let mut exact = Exact::new(RULES);
    has_servers(&mut exact, &[3, 5]);
    exact.engine.share(exact.now, shared(&[5, 3]));
    assert_eq!(offered(&mut exact), (9000, 1000, false));
    assert_eq!(exact.engine.learned(exact.now), [], "it is not handed back as its own");
    // Each call replaces the previous one; a call about other servers changes nothing.
    for message in [vec![], shared(&[5]), shared(&[3, 4])] {
        exact.engine.share(exact.now, shared(&[3, 5]));
        exact.engine.share(exact.now, message);
        assert_eq!(offered(&mut exact), (65_535, 1460, true));
    }
    // A controller that has stopped repeats nothing.
    exact.engine.share(exact.now, shared(&[3, 5]));
    exact.waits(2 * HALF_LIFE / 1_000_000 - 1);
    assert_eq!(offered(&mut exact), (9000, 1000, false));
    exact.waits(2);
    assert_eq!(offered(&mut exact), (65_535, 1460, true));
    // A window of 0 counts for no server.
    let closed = Learned { window: Some(0), ..Learned::default() };
    exact.engine.share(exact.now, vec![Shared { group: group(1), servers: vec![3, 5], learned: closed }]);
    assert_eq!(offered(&mut exact), (65_535, 1460, true));
}

#[test]
fn any_agent_reads_the_cookie_of_one_that_has_seen_other_servers() {
    for options in [RawOffer { scale: Some(6), ..ALL }, RawOffer { scale: None, ..ALL }, RawOffer::default()] {
        let mut first = Exact::new(RULES);
        serves(&mut first, 5000, options);
        for offer in [ALL, RawOffer { scale: None, ..ALL }] {
            let (_, offered) = answered(&mut first, offer);
            assert_eq!(offered.scale, offer.scale.map(|_| SCALE), "{options:?}");
            let mut second = Exact::new(RULES);
            (second.client, second.cookie) = (first.client, first.cookie);
            let seen = second.data(0, GET);
            assert!(matches!(seen[..], [Seen::Server { flags: SYN, .. }]), "{options:?}: {seen:?}");
        }
    }
}
