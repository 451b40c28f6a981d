//! Tests the stream: arbitration, packets to and from controllers, digests, idle entries, and clients that do not read.

use std::time::Duration;

use crate::common::*;
use p4::entity::Entity::{DigestEntry, PacketReplicationEngineEntry, TableEntry};
use p4::stream_message_request::Update as ToSwitch;
use p4::stream_message_response::Update as FromSwitch;
use sluice_engine::TraceEvent;
use sluice_p4runtime::proto::p4::v1 as p4;
use tonic::Code;

fn metadata(values: &[(u32, &[u8])]) -> Vec<p4::PacketMetadata> {
    values.iter().map(|(id, value)| p4::PacketMetadata { metadata_id: *id, value: value.to_vec() }).collect()
}

/// Inserts a table entry that applies this action to all packets.
async fn send_all_to(controller: &mut Controller, action: p4::Action) {
    controller.insert(TableEntry(p4::TableEntry { priority: 1, ..entry(TERNARY, vec![], direct(action)) })).await;
}

/// Waits until `done` returns true, because the switch processes stream messages asynchronously. `what` describes the
/// condition in the failure message.
async fn until(what: &str, mut done: impl FnMut() -> bool) {
    for _ in 0..6000 {
        if done() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("not within a minute: {what}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_takes_over_when_the_primary_leaves() {
    let switch = Switch::start().await;
    let mut first = Controller::connect(&switch, 10).await;
    first.bid(Some(10)).await;
    assert_eq!(first.next_arbitration().await, (Code::Ok, 10));
    let mut second = Controller::connect(&switch, 9).await;
    second.bid(Some(9)).await;
    assert_eq!(second.next_arbitration().await, (Code::AlreadyExists, 10));
    drop(first);
    assert_eq!(second.next_arbitration().await, (Code::NotFound, 10));
    second.bid(Some(11)).await;
    assert_eq!(second.next_arbitration().await, (Code::Ok, 11));
    let mut third = Controller::connect(&switch, 12).await;
    third.bid(Some(12)).await;
    assert_eq!(third.next_arbitration().await, (Code::Ok, 12));
    assert_eq!(second.next_arbitration().await, (Code::AlreadyExists, 12));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_bid_ends_the_stream() {
    let switch = Switch::start().await;
    let _primary = switch.controller(10).await;
    let mut same = Controller::connect(&switch, 10).await;
    same.bid(Some(10)).await;
    assert_eq!(same.try_next().await.unwrap_err().code(), Code::InvalidArgument);
    let mut stranger = Controller::connect(&switch, 10).await;
    stranger.send(ToSwitch::Arbitration(p4::MasterArbitrationUpdate { device_id: 77, ..Default::default() })).await;
    assert_eq!(stranger.try_next().await.unwrap_err().code(), Code::NotFound);
}

#[tokio::test(flavor = "multi_thread")]
async fn packets_come_in_with_their_metadata() {
    let (switch, mut controller) = Switch::ready().await;
    send_all_to(&mut controller, action(TO_CONTROLLER, &[&[0x55]])).await;
    assert_eq!(switch.packet(257, &frame(1, 2, 0x800)), []);
    let packet = p4::PacketIn { payload: frame(1, 2, 0x800), metadata: metadata(&[(1, &[1, 1]), (2, &[0x55])]) };
    assert_eq!(controller.next().await, FromSwitch::Packet(packet));
    assert_eq!(switch.device.counters().packet_in.get(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn packet_outs_run_through_the_program() {
    let (switch, mut controller) = Switch::ready().await;
    let good = metadata(&[(1, &[4]), (2, &[0]), (3, &[0])]);
    let packet = |metadata: &[p4::PacketMetadata]| {
        ToSwitch::Packet(p4::PacketOut { payload: frame(1, 2, 0x800), metadata: metadata.to_vec() })
    };
    controller.send(packet(&good)).await;
    until("the packet is queued", || switch.device.counters().packet_out.get() == 1).await;
    assert_eq!(switch.packet_outs(), [(4, frame(1, 2, 0x800))]);

    // The switch must accept a packet-out without the padding fields, which ONOS omits.
    controller.send(packet(&good[..1])).await;
    until("the packet is queued", || switch.device.counters().packet_out.get() == 2).await;
    assert_eq!(switch.packet_outs(), [(4, frame(1, 2, 0x800))]);

    controller.send(packet(&[&good[..], &good[2..]].concat())).await;
    match controller.next().await {
        FromSwitch::Error(error) => {
            assert_eq!(error.canonical_code, Code::InvalidArgument as i32);
            assert_eq!(error.message, "packet_out field 3 (pad) is given twice; give it once");
            assert!(matches!(error.details, Some(p4::stream_error::Details::PacketOut(_))));
        }
        other => panic!("{other:?}"),
    }
    let mut backup = switch.controller(5).await;
    backup.send(packet(&good)).await;
    match backup.next().await {
        FromSwitch::Error(error) => assert_eq!(error.canonical_code, Code::PermissionDenied as i32),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn digests_come_in_lists_and_once() {
    let (switch, mut controller) = Switch::ready().await;
    send_all_to(&mut controller, action(LEARN, &[])).await;
    let digest_id = id_of("learn_t");
    let config =
        p4::digest_entry::Config { max_timeout_ns: 50_000_000, max_list_size: 2, ack_timeout_ns: 60_000_000_000 };
    controller.insert(DigestEntry(p4::DigestEntry { digest_id, config: Some(config) })).await;
    for source in [1, 1, 2] {
        switch.packet(9, &frame(1, source, 0x800));
    }
    let learnt = |source: u8| {
        let members = vec![bits(&[source]).unwrap(), bits(&[9]).unwrap()];
        p4::P4Data { data: Some(p4::p4_data::Data::Struct(p4::P4StructLike { members })) }
    };
    let FromSwitch::Digest(full) = controller.next().await else { panic!("no digest") };
    assert_eq!((full.digest_id, full.data), (digest_id, vec![learnt(1), learnt(2)]));
    // A message that does not fill a list is sent after the timeout. A message that is not yet acknowledged is not
    // repeated.
    switch.packet(9, &frame(1, 1, 0x800));
    switch.packet(9, &frame(1, 3, 0x800));
    let FromSwitch::Digest(late) = controller.next().await else { panic!("no digest") };
    assert_eq!(late.data, [learnt(3)]);
    assert_ne!(late.list_id, full.list_id);
    controller.send(ToSwitch::DigestAck(p4::DigestListAck { digest_id, list_id: full.list_id })).await;
    controller.send(ToSwitch::DigestAck(p4::DigestListAck { digest_id: 1, list_id: 1 })).await;
    let FromSwitch::Error(error) = controller.next().await else { panic!("no error") };
    assert_eq!(error.message, "there is no digest with id 0x1; give one that P4Info has");
    switch.packet(9, &frame(1, 1, 0x800));
    let FromSwitch::Digest(repeated) = controller.next().await else { panic!("no digest") };
    assert_eq!(repeated.data, [learnt(1)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_entries_are_reported() {
    let (switch, mut controller) = Switch::ready().await;
    let idle = p4::TableEntry {
        idle_timeout_ns: 300_000_000,
        metadata: b"m".to_vec(),
        ..entry(EXACT, vec![exact(1, &[7])], direct(forward(2)))
    };
    let inserted = std::time::Instant::now();
    controller.insert(TableEntry(idle.clone())).await;
    let pattern = p4::TableEntry {
        time_since_last_hit: Some(p4::table_entry::IdleTimeout::default()),
        ..entry(EXACT, vec![], None)
    };
    let TableEntry(read) = controller.read(TableEntry(pattern)).await.remove(0) else { panic!("no entry") };
    let elapsed = u128::try_from(read.time_since_last_hit.unwrap().elapsed_ns).unwrap();
    assert!(elapsed <= inserted.elapsed().as_nanos());
    let FromSwitch::IdleTimeoutNotification(notification) = controller.next().await else { panic!("no notification") };
    assert_eq!(notification.table_entry, [p4::TableEntry { action: None, ..idle }]);
    assert!(switch.device.counters().idle_notifications.get() >= 1);
    let FromSwitch::IdleTimeoutNotification(repeated) = controller.next().await else { panic!("no notification") };
    assert_eq!(repeated.table_entry, notification.table_entry, "reported again after every timeout without a hit");
    assert!(repeated.timestamp - notification.timestamp >= 300_000_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_idle_entries_are_reported_in_several_notifications() {
    let (_switch, mut controller) = Switch::ready().await;
    let entries = 0..4;
    for key in entries.clone() {
        let idle = p4::TableEntry {
            idle_timeout_ns: 1,
            metadata: vec![key; 600_000],
            ..entry(EXACT, vec![exact(1, &[key])], direct(forward(2)))
        };
        controller.insert(TableEntry(idle)).await;
    }
    let mut reported = std::collections::HashSet::new();
    while reported.len() < entries.len() {
        let FromSwitch::IdleTimeoutNotification(notification) = controller.next().await else {
            panic!("no notification")
        };
        assert!(prost::Message::encoded_len(&notification) < (1 << 20) + 610_000);
        reported.extend(notification.table_entry.into_iter().map(|entry| entry.metadata[0]));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_does_not_read_delays_no_other() {
    let (switch, mut controller) = Switch::ready().await;
    send_all_to(&mut controller, action(TO_CONTROLLER, &[&[1]])).await;
    let packet = frame(1, 2, 0x800);
    let sent = 200_000;
    for _ in 0..sent {
        switch.packet(1, &packet);
    }
    let counters = switch.device.counters();
    assert_eq!(counters.packet_in.get() + counters.packet_in_queue_full.get(), sent);
    assert!(counters.packet_in_queue_full.get() > 0);
    // The switch must still reply to requests and to other controllers.
    assert_eq!(controller.read(TableEntry(entry(TERNARY, vec![], None))).await.len(), 1);
    let mut next = Controller::connect(&switch, 11).await;
    next.bid(Some(11)).await;
    assert_eq!(next.next_arbitration().await, (Code::Ok, 11));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_primary_that_leaves_its_notices_unread_loses_its_stream_and_its_role() {
    let (switch, mut silent) = Switch::ready().await;
    send_all_to(&mut silent, action(TO_CONTROLLER, &[&[1]])).await;
    let mut next = Controller::connect(&switch, 9).await;
    next.bid(Some(9)).await;
    assert_eq!(next.next_arbitration().await, (Code::AlreadyExists, 10));
    // The packets fill the buffers of the connection, and then the stream's queue, from which the server fills these
    // buffers.
    until("packets are dropped", || {
        (0..100).for_each(|_| drop(switch.packet(1, &frame(1, 2, 0x800))));
        switch.device.counters().packet_in_queue_full.get() > 0
    })
    .await;
    for bids in 0.. {
        assert!(bids < 200, "still primary");
        silent.bid(Some(10)).await;
        match next.next_arbitration().await {
            (Code::NotFound, 10) => break,
            notice => assert_eq!(notice, (Code::AlreadyExists, 10)),
        }
    }
    next.bid(Some(10)).await;
    assert_eq!(next.next_arbitration().await, (Code::Ok, 10));
    let end = loop {
        if let Err(status) = silent.try_next().await {
            break status;
        }
    };
    assert_eq!(
        (end.code(), end.message()),
        (Code::ResourceExhausted, "64 arbitration messages are unread; read the stream")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_controller_packets_are_counted() {
    let (switch, mut controller) = Switch::ready().await;
    send_all_to(&mut controller, action(TO_CONTROLLER, &[&[1]])).await;
    drop(controller);
    until("the switch has noticed", || {
        switch.packet(1, &frame(1, 2, 0x800));
        switch.device.counters().packet_in_no_primary.get() > 0
    })
    .await;
}

/// Sends one packet, and returns the losses that its trace reports.
fn reasons(switch: &Switch) -> Vec<String> {
    let mut trace = Vec::new();
    switch.device.receive(1, std::iter::once(&frame(1, 2, 0x800)[..]), &mut Vec::new(), Some(&mut trace));
    let reason = |event| if let TraceEvent::Drop(reason) = event { Some(reason) } else { None };
    trace.into_iter().filter_map(reason).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_does_not_hide_why_the_packet_is_dropped() {
    let (switch, mut controller) = Switch::traced().await;
    let replicas = vec![p4::Replica { port_kind: Some(p4::replica::PortKind::Port(vec![3])), ..Default::default() }];
    let session = p4::CloneSessionEntry { session_id: 7, replicas, ..Default::default() };
    let session = Some(p4::packet_replication_engine_entry::Type::CloneSessionEntry(session));
    controller.insert(PacketReplicationEngineEntry(p4::PacketReplicationEngineEntry { r#type: session })).await;
    send_all_to(&mut controller, action(MIRROR, &[&[1, 0xff]])).await;
    assert_eq!(reasons(&switch), ["drop port 511 at the end of ingress, since action everything127"]);
    assert_eq!(switch.device.engine_counts().emitted, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_trace_reports_losses_on_the_way_to_controllers() {
    let (switch, mut controller) = Switch::traced().await;
    let reasons = || reasons(&switch);
    let none = [""; 0];
    let config = p4::digest_entry::Config { max_timeout_ns: 0, max_list_size: 1, ack_timeout_ns: 0 };
    controller.insert(DigestEntry(p4::DigestEntry { digest_id: id_of("learn_t"), config: Some(config) })).await;
    send_all_to(&mut controller, action(TO_CONTROLLER, &[&[1]])).await;
    assert_eq!(reasons(), none);
    // The client does not read, so its queue becomes full.
    let full = (0..100_000).map(|_| reasons()).find(|reasons| *reasons != none);
    assert_eq!(full.unwrap(), ["packet-in: the primary controller's queue is full"]);
    let all_learnt = p4::TableEntry { priority: 1, ..entry(TERNARY, vec![], direct(action(LEARN, &[]))) };
    controller.modify(TableEntry(all_learnt)).await;
    let dropped = "drop port 511 at the end of ingress, since action everything127";
    let full = (0..100_000).map(|_| reasons()).find(|reasons| reasons.len() > 1);
    assert_eq!(full.unwrap(), [dropped, "list of digests: the primary controller's queue is full"]);
    drop(controller);
    until("the switch has noticed", || reasons() == [dropped, "list of digests: there is no primary controller"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_get_their_turn_under_full_load() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
    let (switch, mut controller) = Switch::ready().await;
    send_all_to(&mut controller, forward(2)).await;
    let (device, stop) = (Arc::clone(&switch.device), Arc::new(AtomicBool::new(false)));
    let stopped = Arc::clone(&stop);
    let load = std::thread::spawn(move || {
        let frames = vec![frame(1, 2, 0x800); 64];
        while !stopped.load(Relaxed) {
            device.receive(1, frames.iter().map(Vec::as_slice), &mut Vec::new(), None);
        }
    });
    for port in 0..200 {
        let entry = entry(EXACT, vec![exact(1, &[9])], direct(forward(port)));
        let kind = if port == 0 { p4::update::Type::Insert } else { p4::update::Type::Modify };
        let write = controller.try_write(kind, TableEntry(entry));
        tokio::time::timeout(Duration::from_secs(60), write).await.expect("an answer within a minute").unwrap();
    }
    stop.store(true, Relaxed);
    load.join().unwrap();
}

/// Applies the action [`LEARN`] to all packets, and configures its digest to be sent in lists of one message. Equal
/// messages are suppressed as duplicates for a minute.
async fn learn_one_by_one(controller: &mut Controller) {
    send_all_to(controller, action(LEARN, &[])).await;
    let config = p4::digest_entry::Config { max_timeout_ns: 0, max_list_size: 1, ack_timeout_ns: 60_000_000_000 };
    let digest_id = id_of("learn_t");
    controller.insert(DigestEntry(p4::DigestEntry { digest_id, config: Some(config) })).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn undelivered_digests_are_reported_again() {
    let (switch, mut controller) = Switch::ready().await;
    learn_one_by_one(&mut controller).await;
    // The client does not read, so its queue becomes full. Further lists are dropped and counted.
    let counters = || switch.device.counters();
    for source in 0..=255 {
        for port in 0..=255 {
            switch.packet(port, &frame(1, source, 0x800));
        }
    }
    assert!(counters().digest_lists_dropped.get() > 0);
    assert_eq!(counters().digest_lists.get() + counters().digest_lists_dropped.get(), 65_536);
    let (source, port) = (255, 255);
    let last = vec![bits(&[source]).unwrap(), bits(&[port]).unwrap()];
    let last = p4::P4Data { data: Some(p4::p4_data::Data::Struct(p4::P4StructLike { members: last })) };
    for _ in 0..counters().digest_lists.get() {
        let FromSwitch::Digest(list) = controller.next().await else { panic!("no digest") };
        assert_ne!(list.data, std::slice::from_ref(&last), "the last message did not fit");
    }
    // The list was not delivered, so the switch may report its values again without an acknowledgement.
    switch.packet(port.into(), &frame(1, source, 0x800));
    let FromSwitch::Digest(list) = controller.next().await else { panic!("no digest") };
    assert_eq!(list.data, [last]);
}

#[tokio::test(flavor = "multi_thread")]
async fn digest_lists_are_limited_in_size_and_in_number_per_client() {
    let (switch, mut controller) = Switch::ready().await;
    send_all_to(&mut controller, action(LEARN, &[])).await;
    let config = p4::digest_entry::Config { max_timeout_ns: i64::MAX, max_list_size: 65_536, ack_timeout_ns: 0 };
    let digest_id = id_of("learn_t");
    controller.insert(DigestEntry(p4::DigestEntry { digest_id, config: Some(config) })).await;
    let counters = || switch.device.counters();
    let mut source = u64::MAX;
    while counters().digest_lists_dropped.get() == 0 {
        assert!(counters().digest_lists.get() < 8, "4 MiB in the queue, and what the connection takes");
        let frames: Vec<Vec<u8>> = (0..1000)
            .map(|_| {
                source -= 1;
                [&[0; 6][..], &source.to_be_bytes()[2..], &[8, 0], &[0; 46]].concat()
            })
            .collect();
        switch.device.receive(257, frames.iter().map(Vec::as_slice), &mut Vec::new(), None);
    }
    for _ in 0..counters().digest_lists.get() {
        // A message above 4 MB would end the stream of this client.
        let FromSwitch::Digest(list) = controller.next().await else { panic!("no digest") };
        let bytes = prost::Message::encoded_len(&list);
        assert!((1 << 20..(1 << 20) + 100).contains(&bytes), "{} messages, {bytes} bytes", list.data.len());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_primary_receives_digests_that_the_last_one_did_not_acknowledge() {
    let (switch, mut controller) = Switch::ready().await;
    learn_one_by_one(&mut controller).await;
    switch.packet(9, &frame(1, 1, 0x800));
    let FromSwitch::Digest(first) = controller.next().await else { panic!("no digest") };
    switch.packet(9, &frame(1, 1, 0x800));
    let mut next = switch.controller(11).await;
    switch.packet(9, &frame(1, 1, 0x800));
    let FromSwitch::Digest(repeated) = next.next().await else { panic!("no digest") };
    assert_eq!(repeated.data, first.data);
    assert_eq!(switch.device.counters().digest_lists.get(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_digest_configuration_applies_at_once() {
    let (switch, mut controller) = Switch::ready().await;
    send_all_to(&mut controller, action(LEARN, &[])).await;
    let configured = |max_timeout_ns, ack_timeout_ns| {
        let config = p4::digest_entry::Config { max_timeout_ns, max_list_size: 100, ack_timeout_ns };
        DigestEntry(p4::DigestEntry { digest_id: id_of("learn_t"), config: Some(config) })
    };
    let (patient, short) = (1 << 50, 1_000_000);
    let learn = |source| switch.packet(9, &frame(1, source, 0x800));
    controller.insert(configured(patient, patient)).await;
    learn(1);
    // The new list timeout applies to a message that is already waiting.
    controller.modify(configured(short, patient)).await;
    let FromSwitch::Digest(first) = controller.next().await else { panic!("no digest") };
    // The new acknowledgement timeout applies to a list that was already sent.
    controller.modify(configured(short, 1)).await;
    learn(1);
    let FromSwitch::Digest(repeated) = controller.next().await else { panic!("no digest") };
    assert_eq!(repeated.data, first.data);
    // A reverted deletion must preserve the waiting messages; an effective deletion discards them.
    controller.modify(configured(patient, patient)).await;
    learn(2);
    let delete = || update(p4::update::Type::Delete, configured(0, 0));
    let rollback = p4::write_request::Atomicity::RollbackOnError as i32;
    controller.write_batch(rollback, vec![delete(), delete()]).await.unwrap_err();
    controller.modify(configured(short, patient)).await;
    let FromSwitch::Digest(list) = controller.next().await else { panic!("no digest") };
    assert_eq!(list.data.len(), 1);
    controller.modify(configured(patient, patient)).await;
    learn(3);
    controller.delete(configured(0, 0)).await;
    controller.insert(configured(short, patient)).await;
    learn(4);
    let FromSwitch::Digest(list) = controller.next().await else { panic!("no digest") };
    assert_eq!(list.data.len(), 1, "source 4 alone");
}
