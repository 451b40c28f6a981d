//! Tests the stream between controller and gateway: digests, packets, and bids while the driver does not reply.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use sluice_p4runtime::proto::p4::v1 as p4;
use tokio::sync::Notify;

use crate::common::{Bench, Controller, id, server};
use p4::entity::Entity;
use p4::stream_message_request::Update as ToSwitch;
use p4::stream_message_response::Update as FromSwitch;
use p4::update::Type;

pub const FILTER: &str = "arp_sender_t";

fn digest(config: p4::digest_entry::Config) -> Entity {
    Entity::DigestEntry(p4::DigestEntry { digest_id: id(FILTER), config: Some(config) })
}

/// Returns a digest message, whose fields are in another order than in P4Info.
fn message(port: u8) -> Vec<(u32, Vec<u8>)> {
    vec![(3, vec![2, 0, 0, 0, 0, 1]), (1, vec![0, port]), (2, vec![10, 0, 0, 1])]
}

async fn list(controller: &mut Controller) -> p4::DigestList {
    match controller.next().await {
        FromSwitch::Digest(list) => list,
        other => panic!("{other:?}"),
    }
}

/// Returns the ports that the messages of a digest list contain.
fn ports(list: &p4::DigestList) -> Vec<Vec<u8>> {
    let port = |data: &p4::P4Data| match &data.data {
        Some(p4::p4_data::Data::Struct(fields)) => match &fields.members[0].data {
            Some(p4::p4_data::Data::Bitstring(port)) => port.clone(),
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    };
    list.data.iter().map(port).collect()
}

#[tokio::test]
async fn digests_are_collected_in_lists_and_not_acknowledged_to_the_driver() {
    let (bench, mut controller) = Bench::ready().await;
    let hour = 3_600_000_000_000;
    let config = p4::digest_entry::Config { max_timeout_ns: hour, max_list_size: 2, ack_timeout_ns: hour };
    controller.insert(digest(config)).await;
    assert_eq!(controller.read(Entity::DigestEntry(p4::DigestEntry::default())).await, [digest(config)]);
    // The gateway must suppress duplicate messages.
    bench.driver.report(FILTER, vec![message(1), message(1), message(2)]).await;
    let first = list(&mut controller).await;
    assert_eq!(ports(&first), [[1], [2]]);
    let ack = p4::DigestListAck { digest_id: id(FILTER), list_id: first.list_id };
    controller.send(ToSwitch::DigestAck(ack)).await;
    // After the acknowledgement, the gateway must report equal messages again. It must not forward the acknowledgement
    // to the driver, because the driver would end its stream to the gateway.
    loop {
        bench.driver.report(FILTER, vec![message(1), message(2)]).await;
        let waiting = tokio::time::timeout(std::time::Duration::from_millis(200), list(&mut controller)).await;
        if let Ok(second) = waiting {
            assert_eq!(ports(&second), [[1], [2]]);
            break;
        }
    }
    assert_eq!(bench.driver.acknowledgements.load(Relaxed), 0);
}

#[tokio::test]
async fn a_list_is_sent_after_its_timeout() {
    let (bench, mut controller) = Bench::ready().await;
    let config = p4::digest_entry::Config { max_timeout_ns: 1_000_000, max_list_size: 100, ack_timeout_ns: 0 };
    controller.insert(digest(config)).await;
    bench.driver.report(FILTER, vec![message(4)]).await;
    assert_eq!(ports(&list(&mut controller).await), [[4]]);
}

#[tokio::test]
async fn packets_carry_the_headers_of_p4info() {
    let (bench, mut controller) = Bench::ready().await;
    let metadata = |fields: &[(u32, &[u8])]| {
        let field = |(metadata_id, value): &(u32, &[u8])| p4::PacketMetadata {
            metadata_id: *metadata_id,
            value: value.to_vec(),
        };
        fields.iter().map(field).collect::<Vec<_>>()
    };
    bench.gateway.packet_in(&[0, 3, 5, 0, 9, 0xaa, 0xbb]);
    let FromSwitch::Packet(packet) = controller.next().await else { panic!() };
    assert_eq!(packet.payload, [0xaa, 0xbb]);
    assert_eq!(packet.metadata, metadata(&[(1, &[3]), (2, &[5]), (3, &[9])]));
    let packet = p4::PacketOut { payload: vec![0xcc], metadata: metadata(&[(1, &[7])]) };
    controller.send(ToSwitch::Packet(packet)).await;
    let wrong = p4::PacketOut { payload: vec![0xcc], metadata: metadata(&[(9, &[7])]) };
    controller.send(ToSwitch::Packet(wrong)).await;
    let FromSwitch::Error(error) = controller.next().await else { panic!() };
    assert!(error.message.contains("no metadata field 9"), "{}", error.message);
    assert_eq!(bench.port.take(), [vec![0, 7, 0xcc]]);
}

#[tokio::test]
async fn bids_and_packets_do_not_wait_for_the_driver() {
    let (bench, mut controller) = Bench::ready().await;
    let stuck = Arc::new(Notify::new());
    *bench.driver.stuck.lock() = Some(Arc::clone(&stuck));
    let write = tokio::spawn(async move {
        let outcome = controller.write(Type::Insert, server(1)).await;
        (controller, outcome)
    });
    // Another controller becomes primary while the write waits for the driver.
    let mut next = bench.controller(11).await;
    next.send(ToSwitch::Packet(p4::PacketOut { payload: vec![1], metadata: Vec::new() })).await;
    while bench.port.take().is_empty() {
        tokio::task::yield_now().await;
    }
    *bench.driver.stuck.lock() = None;
    stuck.notify_one();
    let (mut old, outcome) = write.await.unwrap();
    outcome.unwrap();
    // The write that had begun must succeed. Later writes of the former primary are refused.
    assert_eq!(next.entries("servers").await.len(), 1);
    let refused = old.batch(p4::write_request::Atomicity::ContinueOnError, vec![(Type::Delete, server(1))]).await;
    assert_eq!(refused.unwrap_err().code(), tonic::Code::PermissionDenied);
}
