//! Sends requests that no correct client sends: mutated, truncated, or of random bytes. The switch must reply to each
//! of them and continue to run.

use crate::common::*;
use bytes::{Buf, BufMut};
use p4::entity::Entity::{self, *};
use p4::stream_message_request::Update as ToSwitch;
use p4::update::Type::{Insert, Modify};
use proptest::prelude::*;
use proptest::test_runner::{Config as Cases, RngSeed, TestRunner};
use prost::Message;
use sluice_p4runtime::proto::p4::v1 as p4;
use tokio_stream::StreamExt;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::transport::Channel;
use tonic::{Code, Request, Status};

/// A gRPC codec that sends and receives the bytes of messages unchanged.
#[derive(Default)]
struct Raw;

impl Encoder for Raw {
    type Item = Vec<u8>;
    type Error = Status;
    fn encode(&mut self, item: Vec<u8>, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        buffer.put_slice(&item);
        Ok(())
    }
}

impl Decoder for Raw {
    type Item = Vec<u8>;
    type Error = Status;
    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<Vec<u8>>, Status> {
        let mut bytes = vec![0; buffer.remaining()];
        buffer.copy_to_slice(&mut bytes);
        Ok(Some(bytes))
    }
}

impl Codec for Raw {
    type Encode = Vec<u8>;
    type Decode = Vec<u8>;
    type Encoder = Self;
    type Decoder = Self;
    fn encoder(&mut self) -> Self {
        Self
    }
    fn decoder(&mut self) -> Self {
        Self
    }
}

const METHODS: [&str; 4] = ["Write", "Read", "SetForwardingPipelineConfig", "StreamChannel"];

/// Sends bytes as a request of a method, and waits for the end of the reply.
async fn send(mut grpc: tonic::client::Grpc<Channel>, method: usize, bytes: Vec<u8>) -> Result<(), Status> {
    grpc.ready().await.unwrap();
    let path = format!("/p4.v1.P4Runtime/{}", METHODS[method]).parse().unwrap();
    let mut answer = grpc.streaming(Request::new(tokio_stream::once(bytes)), path, Raw).await?.into_inner();
    while let Some(message) = answer.next().await {
        message?;
    }
    Ok(())
}

/// Returns valid requests of every method in [`METHODS`], each with the index of its method. The writes and the read
/// contain every kind of entity.
#[expect(clippy::too_many_lines, reason = "a list of cases")]
fn valid_requests() -> Vec<(usize, Vec<u8>)> {
    let config = p4::MeterConfig { cir: 1, cburst: 2, pir: 3, pburst: 4, eburst: 0 };
    let counts = Some(p4::CounterData { byte_count: 0, packet_count: 0 });
    let member = p4::ActionProfileMember { action_profile_id: POOL, member_id: 1, action: Some(forward(1)) };
    let in_group = p4::action_profile_group::Member { member_id: 1, weight: 2, watch_kind: None };
    let group = p4::ActionProfileGroup { action_profile_id: POOL, group_id: 1, members: vec![in_group], max_size: 0 };
    let set = p4::ActionProfileActionSet {
        action_profile_actions: vec![p4::ActionProfileAction {
            action: Some(forward(1)),
            weight: 3,
            watch_kind: Some(p4::action_profile_action::WatchKind::WatchPort(vec![1])),
        }],
        ..Default::default()
    };
    let set = p4::TableAction { r#type: Some(p4::table_action::Type::ActionProfileActionSet(set)) };
    let replica = p4::Replica {
        port_kind: Some(p4::replica::PortKind::Port(vec![1])),
        instance: 1,
        backup_replicas: vec![p4::BackupReplica { port: vec![2], instance: 1 }],
    };
    let multicast = p4::packet_replication_engine_entry::Type::MulticastGroupEntry(p4::MulticastGroupEntry {
        multicast_group_id: 1,
        replicas: vec![replica.clone()],
        metadata: vec![1],
    });
    let session = p4::packet_replication_engine_entry::Type::CloneSessionEntry(p4::CloneSessionEntry {
        session_id: 1,
        replicas: vec![replica],
        ..Default::default()
    });
    let digest = p4::digest_entry::Config { max_timeout_ns: 1, max_list_size: 2, ack_timeout_ns: 3 };
    let entities: Vec<(p4::update::Type, Entity)> = vec![
        (
            Insert,
            TableEntry(p4::TableEntry {
                counter_data: counts,
                meter_config: Some(config),
                metadata: vec![7; 9],
                idle_timeout_ns: 1_000_000_000,
                ..entry(EXACT, vec![exact(1, &[7])], direct(forward(2)))
            }),
        ),
        (
            Insert,
            TableEntry(p4::TableEntry {
                priority: 3,
                ..entry(TERNARY, vec![ternary(1, &[1], &[3]), optional(2, &[1])], direct(forward(2)))
            }),
        ),
        (Insert, TableEntry(entry(LPM, vec![lpm(1, &[10, 0, 0, 0], 8)], direct(forward(2))))),
        (Insert, TableEntry(entry(POOL_TABLE, vec![exact(1, &[1])], Some(set)))),
        (Modify, TableEntry(p4::TableEntry { is_default_action: true, ..entry(TERNARY, vec![], direct(forward(2))) })),
        (Insert, ActionProfileMember(member)),
        (Insert, ActionProfileGroup(group)),
        (Modify, CounterEntry(p4::CounterEntry { counter_id: BY_PORT, index: index(1), data: counts })),
        (
            Modify,
            MeterEntry(p4::MeterEntry {
                meter_id: LIMIT,
                index: index(1),
                config: Some(config),
                counter_data: Some(p4::MeterCounterData::default()),
            }),
        ),
        (Modify, RegisterEntry(p4::RegisterEntry { register_id: SEEN, index: index(1), data: bits(&[1]) })),
        (
            Modify,
            ValueSetEntry(p4::ValueSetEntry {
                value_set_id: LABELLED,
                members: vec![p4::ValueSetMember { r#match: vec![exact(1, &[1])] }],
            }),
        ),
        (Insert, DigestEntry(p4::DigestEntry { digest_id: id_of("learn_t"), config: Some(digest) })),
        (Insert, PacketReplicationEngineEntry(p4::PacketReplicationEngineEntry { r#type: Some(multicast) })),
        (Insert, PacketReplicationEngineEntry(p4::PacketReplicationEngineEntry { r#type: Some(session) })),
    ];
    let mut requests = Vec::new();
    for atomicity in 0..3 {
        let write = p4::WriteRequest {
            device_id: DEVICE,
            election_id: Some(p4::Uint128 { high: 0, low: 10 }),
            updates: entities.iter().map(|(kind, entity)| update(*kind, entity.clone())).collect(),
            atomicity,
            ..Default::default()
        };
        requests.push((0, write.encode_to_vec()));
    }
    let patterns = entities.into_iter().map(|(_, entity)| p4::Entity { entity: Some(entity) }).collect();
    requests.push((1, p4::ReadRequest { device_id: DEVICE, entities: patterns, ..Default::default() }.encode_to_vec()));
    let push = p4::SetForwardingPipelineConfigRequest {
        device_id: DEVICE,
        election_id: Some(p4::Uint128 { high: 0, low: 10 }),
        action: p4::set_forwarding_pipeline_config_request::Action::Verify as i32,
        config: Some(config_without_program()),
        ..Default::default()
    };
    requests.push((2, push.encode_to_vec()));
    let packet =
        p4::PacketOut { payload: vec![1; 60], metadata: vec![p4::PacketMetadata { metadata_id: 1, value: vec![1] }] };
    let bid = p4::MasterArbitrationUpdate { device_id: DEVICE, ..Default::default() };
    for update in [
        ToSwitch::Arbitration(bid),
        ToSwitch::Packet(packet),
        ToSwitch::DigestAck(p4::DigestListAck { digest_id: id_of("learn_t"), list_id: 1 }),
    ] {
        requests.push((3, p4::StreamMessageRequest { update: Some(update) }.encode_to_vec()));
    }
    requests
}

/// Returns a config whose program the switch refuses at once, so that only mutations of P4Info and of the message
/// matter.
fn config_without_program() -> p4::ForwardingPipelineConfig {
    p4::ForwardingPipelineConfig { p4_device_config: b"{}".to_vec(), ..config(1) }
}

/// A mutation of the bytes of a request: overwrites one byte, deletes some bytes, or inserts some.
#[derive(Debug, Clone)]
enum Change {
    Set(prop::sample::Index, u8),
    Cut(prop::sample::Index, usize),
    Put(prop::sample::Index, Vec<u8>),
}

fn change() -> impl Strategy<Value = Change> {
    let at = any::<prop::sample::Index>;
    prop_oneof![
        4 => (at(), any::<u8>()).prop_map(|(at, byte)| Change::Set(at, byte)),
        1 => (at(), 1usize..20).prop_map(|(at, length)| Change::Cut(at, length)),
        1 => (at(), proptest::collection::vec(any::<u8>(), 1..12)).prop_map(|(at, bytes)| Change::Put(at, bytes)),
    ]
}

fn apply(bytes: &mut Vec<u8>, change: &Change) {
    if bytes.is_empty() {
        return;
    }
    match change {
        Change::Set(at, byte) => *at.get_mut(bytes) = *byte,
        Change::Cut(at, length) => {
            let start = at.index(bytes.len());
            bytes.drain(start..(start + length).min(bytes.len()));
        }
        Change::Put(at, more) => {
            let start = at.index(bytes.len());
            bytes.splice(start..start, more.iter().copied());
        }
    }
}

#[test]
fn malformed_requests_are_answered_and_the_switch_keeps_running() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let (switch, mut controller) = runtime.block_on(Switch::ready());
    let channel = runtime.block_on(switch.channel());
    let grpc = tonic::client::Grpc::new(channel);
    let requests = valid_requests();
    let mutated = (0..requests.len(), proptest::collection::vec(change(), 0..6));
    let mut runner = TestRunner::new(Cases { cases: 1500, rng_seed: RngSeed::Fixed(7), ..Cases::default() });
    let result = runner.run(&mutated, |(which, changes)| {
        let (method, mut bytes) = requests[which].clone();
        changes.iter().for_each(|change| apply(&mut bytes, change));
        let answer = runtime.block_on(async {
            tokio::time::timeout(std::time::Duration::from_secs(60), send(grpc.clone(), method, bytes)).await
        });
        let answer = answer.expect("an answer within a minute");
        if let Err(status) = answer {
            // tonic reports `INTERNAL` for bytes that it cannot decode. The switch itself reports `INTERNAL` only after
            // a panic.
            let garbled = status.code() == Code::Internal && status.message().contains("decode");
            prop_assert!(garbled || !matches!(status.code(), Code::Internal | Code::Unavailable), "{status:?}");
        }
        // The switch must still process packets, whatever the request has changed.
        switch.packet(1, &frame(7, 1, 0x800));
        Ok(())
    });
    result.unwrap();
    runtime.block_on(async {
        controller
            .modify(RegisterEntry(p4::RegisterEntry { register_id: SEEN, index: index(1), data: bits(&[5]) }))
            .await;
        controller
            .push(p4::set_forwarding_pipeline_config_request::Action::VerifyAndCommit, Some(config(2)))
            .await
            .unwrap();
    });
}
