//! Tests of how the agent forwards the windows of client and server: shifted, closed, and opened late.

use sluice_agent::wire::flags::{ACK, RST, SYN};
use sluice_agent::wire::{SegmentHeader, SynOptions};

use crate::support::harness::{EACH, GET, Harness, ISN, Output, RULES, SERVER_ISN, connected, order};

/// Returns a connection whose request waits in the agent: the server's SYN-ACK has a window of 0, as that of a SYNPROXY
/// does.
fn blocked_request(get: &[u8]) -> Harness {
    let mut harness = connected();
    harness.data(0, get);
    let (source, destination) = (harness.service.address, harness.client);
    let head = SegmentHeader { source, destination, seq: SERVER_ISN, ack: ISN + 1, flags: SYN | ACK, window: 0 };
    let (options, length) = SynOptions { mss: Some(1460), scale: Some(7), sack: true }.write();
    let outputs = harness.sends(head, &options[..length], b"");
    let [Output::Client { ack, .. }, Output::Server { data, flags: ACK, .. }] = &outputs[..] else {
        panic!("{outputs:?}")
    };
    assert_eq!((*ack, data.len()), (ISN + 1 + get.len() as u32, 0), "the agent has it, and no splice is ordered");
    harness
}

fn forwarded(outputs: &[Output]) -> &[u8] {
    let data: Vec<_> =
        outputs.iter().filter(|output| matches!(output, Output::Server { .. })).map(Output::data).collect();
    assert!(data.len() <= 1, "{outputs:?}");
    data.first().copied().unwrap_or_default()
}

#[test]
fn a_request_waits_in_the_agent_for_the_servers_window() {
    for get in [GET, EACH] {
        let mut harness = blocked_request(get);
        // The client need not retransmit its request; if it does, the agent answers by an ACK.
        let outputs = harness.data(0, get);
        assert!(matches!(outputs[..], [Output::Client { flags: ACK, .. }]), "{outputs:?}");
        let outputs = harness.server(0, 0, ACK, b"");
        assert!(forwarded(&outputs) == get && outputs.len() == 1, "{outputs:?}");
        let outputs = harness.server(0, get.len() as u32, ACK, b"");
        assert_eq!(outputs.iter().any(|output| matches!(output, Output::Order(_))), get == GET, "{outputs:?}");
    }
}

#[test]
fn a_window_whose_opening_is_lost_is_probed() {
    let mut harness = blocked_request(GET);
    let outputs = harness.waits(200);
    assert_eq!(forwarded(&outputs), &GET[..1], "{outputs:?}");
    let outputs = harness.server(0, 1, ACK, b"");
    assert_eq!(forwarded(&outputs), &GET[1..], "the server has taken the probe: {outputs:?}");
    let mut harness = blocked_request(GET);
    harness.waits(200);
    let outputs = harness.server(0, 0, ACK, b"");
    assert_eq!(forwarded(&outputs), GET, "it has not: {outputs:?}");
}

#[test]
fn a_window_that_never_opens_ends_the_connection() {
    let mut harness = blocked_request(GET);
    let outputs = harness.waits(60_000);
    let resets = outputs.iter().filter(|output| output.flags() & RST != 0).count();
    assert_eq!((resets, harness.engine.connections(), harness.service.counters.lost.get()), (2, 0, 1), "{outputs:?}");
}

#[test]
fn windows_of_servers_with_other_scales() {
    // The agent has offered the client a window scale of 7.
    for (scale, field, passed_on) in
        [(Some(10), 500, 4000), (Some(10), 60_000, 65_535), (Some(3), 5, 1), (Some(3), 0, 0), (None, 640, 5)]
    {
        let mut harness = connected();
        harness.data(0, GET);
        let order = order(&harness.opens(0, scale));
        assert_eq!(i16::from(order.shift), i16::from(scale.unwrap_or(0)) - 7);
        let head = SegmentHeader {
            source: harness.service.address,
            destination: harness.client,
            seq: SERVER_ISN + 1,
            ack: ISN + 1 + GET.len() as u32,
            flags: ACK,
            window: field,
        };
        let outputs = harness.sends(head, &[], b"");
        // The agent's buffer in units of 2^7 bytes. While the agent forwards, it announces no larger window.
        let room = 768;
        assert!(
            matches!(outputs[..], [Output::Client { window, .. }] if window == passed_on.min(room)),
            "{scale:?}: {outputs:?}"
        );
    }
}

/// The client scales its windows, because the agent has offered it a scale; a server that does not scale reads the
/// window field unshifted. So the agent shifts the field.
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
        let mut harness = Harness::new(RULES);
        harness.syn_options.scale = client_scale;
        harness.handshake();
        harness.data(0, GET);
        let order = order(&harness.opens(0, scale));
        let client_shift = if scale.is_none() { client_scale.unwrap_or(0) } else { 0 };
        assert_eq!(order.client_shift, client_shift, "{client_scale:?} {scale:?}");
        let (source, destination, seq) = (harness.client, harness.own(), ISN + 1 + GET.len() as u32);
        let head = SegmentHeader { source, destination, seq, ack: harness.cookie + 1, flags: ACK, window: field };
        let outputs = harness.sends(head, &[], b"");
        assert!(
            matches!(outputs[..], [Output::Server { window, .. }] if window == passed_on),
            "{client_scale:?}: {outputs:?}"
        );
    }
}

#[test]
fn without_a_scale_of_the_client_there_is_none() {
    let mut harness = Harness::new(RULES);
    harness.syn_options = SynOptions { mss: Some(1000), scale: None, sack: false };
    harness.handshake();
    harness.data(0, GET);
    assert_eq!(order(&harness.opens(0, None)).shift, 0);
}
