//! Tests of the abilities (MSS, window, SACK) that agents announce to clients on behalf of servers. Agents learn them
//! from SYN-ACKs, share them, and discard them after some time or when the servers change.

use std::sync::Arc;

use sluice_agent::pool::{GroupReport, HALF_LIFE, Learned, SCALE};
use sluice_agent::wire::flags::{ACK, SYN};
use sluice_agent::wire::{Segment, SegmentHeader, SynOptions};
use sluice_agent::{Configuration, Frames};

use crate::support::harness::{GET, Harness, ISN, Output, RULES, SERVER_ISN, group};
use crate::support::switch::{AGENT_MAC, SWITCH_MAC};

const ALL: SynOptions = SynOptions { mss: Some(1460), scale: Some(9), sack: true };

/// Returns the window and options of the SYN-ACK with which the agent answers a client's SYN.
fn answered(harness: &mut Harness, syn_options: SynOptions) -> (u16, SynOptions) {
    harness.client.set_port(harness.client.port() + 1);
    let (options, length) = syn_options.write();
    let (source, destination) = (harness.client, harness.own());
    let head =
        SegmentHeader { source, destination, seq: ISN, ack: sluice_agent::seq::Seq(0), flags: SYN, window: 64_000 };
    let (mut frame, mut out) = (Vec::new(), Frames::default());
    let link = sluice_agent::wire::Link { own: SWITCH_MAC, router: AGENT_MAC };
    head.write(&link, &options[..length], [b"", b""], &mut frame);
    harness.engine.receive(harness.now, &frame, &mut out);
    let segment = Segment::read(out.iter().next().unwrap()).unwrap();
    assert!(segment.has(SYN | ACK));
    harness.cookie = segment.seq();
    (segment.window(), segment.syn_options())
}

/// Connects a client to a server whose SYN-ACK has this window and these options.
fn serves(harness: &mut Harness, window: u16, options: SynOptions) -> Vec<Output> {
    answered(harness, ALL);
    harness.data(0, GET);
    let (source, destination) = (harness.service.address, harness.client);
    let head = SegmentHeader { source, destination, seq: SERVER_ISN, ack: ISN + 1, flags: SYN | ACK, window };
    let (options, length) = options.write();
    harness.sends(head, &options[..length], b"")
}

/// Changes the agent's configuration so that group `a` consists of these servers.
fn has_servers(harness: &mut Harness, servers: &[u16]) {
    let mut service = Arc::into_inner(crate::support::harness::service(RULES)).unwrap();
    service.groups[0].servers = servers.to_vec();
    harness.service = Arc::new(service);
    let services = vec![Arc::clone(&harness.service)];
    harness.engine.configure(harness.now, Configuration { services, generation: 2, key: [7; 16], former_key: None });
}

/// Returns what the agent offers a client: window, MSS, and whether SACK is permitted.
fn offered(harness: &mut Harness) -> (u16, u16, bool) {
    let (window, syn_options) = answered(harness, ALL);
    assert_eq!(syn_options.scale, Some(SCALE));
    (window, syn_options.mss.unwrap(), syn_options.sack)
}

const WEAK: SynOptions = SynOptions { mss: Some(1000), scale: Some(2), sack: false };

#[test]
fn a_closed_window_of_a_server_is_not_the_services() {
    let mut harness = Harness::new(RULES);
    serves(&mut harness, 0, ALL);
    assert_eq!(offered(&mut harness), (65_535, 1460, true));
    // The window that the agent announces after the handshake is open as well.
    let outputs = harness.client(u32::MAX, 0, ACK, b"");
    assert!(matches!(outputs[..], [Output::Client { window: 511, .. }]), "{outputs:?}");
    assert_eq!(harness.engine.learned(harness.now)[0].learned.window, None);
}

#[test]
fn a_small_window_is_not_rounded_to_none() {
    let mut harness = Harness::new(RULES);
    serves(&mut harness, 100, ALL);
    assert_eq!(offered(&mut harness), (100, 1460, true));
    let outputs = harness.client(u32::MAX, 0, ACK, b"");
    assert!(matches!(outputs[..], [Output::Client { window: 1, .. }]), "{outputs:?}");
    harness.data(0, &GET[..5]);
    let outputs = harness.waits(10);
    assert!(matches!(outputs[..], [Output::Client { window: 1, .. }]), "{outputs:?}");
}

#[test]
fn the_least_of_all_servers_counts() {
    let mut harness = Harness::new(RULES);
    serves(&mut harness, 20_000, ALL);
    serves(&mut harness, 30_000, SynOptions { scale: None, ..WEAK });
    assert_eq!(offered(&mut harness), (20_000, 1000, false));
    let learned = harness.engine.learned(harness.now);
    let [GroupReport { group: of, servers, learned }] = &learned[..] else { panic!("{learned:?}") };
    assert_eq!((*of, servers.len()), (group(1), 0));
    let expected =
        Learned { mss: Some(1000), window: Some(20_000), sack: Some(false), scales: Some(false), scale: Some(9) };
    assert_eq!(*learned, expected);
}

#[test]
fn removed_servers_do_not_count() {
    let mut harness = Harness::new(RULES);
    has_servers(&mut harness, &[3, 5]);
    serves(&mut harness, 20_000, WEAK);
    has_servers(&mut harness, &[5, 3]);
    assert_eq!(offered(&mut harness), (20_000, 1000, false), "the same servers");
    has_servers(&mut harness, &[3]);
    assert_eq!(offered(&mut harness), (65_535, 1460, true));
}

#[test]
fn what_was_learned_ages() {
    let minutes = HALF_LIFE / 1_000_000;
    let mut harness = Harness::new(RULES);
    serves(&mut harness, 20_000, WEAK);
    harness.waits(minutes - 10_000);
    assert_eq!(offered(&mut harness), (20_000, 1000, false));
    harness.waits(20_000);
    serves(&mut harness, 30_000, ALL);
    assert_eq!(offered(&mut harness), (20_000, 1000, false), "the half-life before counts");
    harness.waits(minutes);
    assert_eq!(offered(&mut harness), (30_000, 1460, true));
    harness.waits(minutes);
    assert_eq!(offered(&mut harness), (65_535, 1460, true));
}

#[test]
fn what_other_agents_have_learned_counts() {
    let learned = Learned { mss: Some(1000), window: Some(9000), sack: Some(false), ..Learned::default() };
    let shared = |servers: &[u16]| vec![GroupReport { group: group(1), servers: servers.to_vec(), learned }];
    let mut harness = Harness::new(RULES);
    has_servers(&mut harness, &[3, 5]);
    harness.engine.share(harness.now, shared(&[5, 3]));
    assert_eq!(offered(&mut harness), (9000, 1000, false));
    assert_eq!(harness.engine.learned(harness.now), [], "it is not handed back as its own");
    // Each message of the controller replaces the previous one. A message about other servers than the current ones is
    // ignored.
    for message in [vec![], shared(&[5]), shared(&[3, 4])] {
        harness.engine.share(harness.now, shared(&[3, 5]));
        harness.engine.share(harness.now, message);
        assert_eq!(offered(&mut harness), (65_535, 1460, true));
    }
    // If the controller has stopped and repeats nothing, the shared abilities expire.
    harness.engine.share(harness.now, shared(&[3, 5]));
    harness.waits(2 * HALF_LIFE / 1_000_000 - 1);
    assert_eq!(offered(&mut harness), (9000, 1000, false));
    harness.waits(2);
    assert_eq!(offered(&mut harness), (65_535, 1460, true));
    // A window of 0 is ignored.
    let closed = Learned { window: Some(0), ..Learned::default() };
    harness.engine.share(harness.now, vec![GroupReport { group: group(1), servers: vec![3, 5], learned: closed }]);
    assert_eq!(offered(&mut harness), (65_535, 1460, true));
}

#[test]
fn any_agent_reads_the_cookie_of_another_with_other_servers() {
    for options in [SynOptions { scale: Some(6), ..ALL }, SynOptions { scale: None, ..ALL }, SynOptions::default()] {
        let mut first = Harness::new(RULES);
        serves(&mut first, 5000, options);
        for syn_options in [ALL, SynOptions { scale: None, ..ALL }] {
            let (_, offered) = answered(&mut first, syn_options);
            assert_eq!(offered.scale, syn_options.scale.map(|_| SCALE), "{options:?}");
            let mut second = Harness::new(RULES);
            (second.client, second.cookie) = (first.client, first.cookie);
            let outputs = second.data(0, GET);
            assert!(matches!(outputs[..], [Output::Server { flags: SYN, .. }]), "{options:?}: {outputs:?}");
        }
    }
}
