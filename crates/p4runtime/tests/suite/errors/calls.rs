//! Requests that the server refuses as a whole: writes, reads, pipeline requests, streams and stream messages.

use super::Golden;
use super::entities::*;
use crate::common::*;
use crate::pipelines::with_meters;
use crate::translation::metadata;
use p4::entity::Entity::*;
use p4::set_forwarding_pipeline_config_request::Action;
use p4::stream_message_request::Update as ToSwitch;
use p4::stream_message_response::Update as FromSwitch;
use p4::update::Type::Insert;
use sluice_p4runtime::proto::p4::v1 as p4;
use tonic::Code;

/// Sends write and read requests that the server refuses as a whole.
pub async fn requests(controller: &mut Controller, golden: &mut Golden) {
    let election_id = Some(p4::Uint128 { high: 0, low: controller.election });
    let good = p4::WriteRequest { device_id: DEVICE, election_id, ..Default::default() };
    #[allow(deprecated)]
    let wrong = [
        ("another device", p4::WriteRequest { device_id: 77, ..good.clone() }),
        ("a role id", p4::WriteRequest { role_id: 1, ..good.clone() }),
        ("an unknown role", p4::WriteRequest { role: "x".to_owned(), ..good.clone() }),
        ("no election id", p4::WriteRequest { election_id: None, ..good.clone() }),
        ("not the primary", p4::WriteRequest { election_id: Some(p4::Uint128 { high: 0, low: 1 }), ..good.clone() }),
        ("an unknown atomicity", p4::WriteRequest { atomicity: 9, ..good.clone() }),
    ];
    for (what, request) in wrong {
        golden.status(&format!("write request: {what}"), &controller.client.write(request).await.unwrap_err());
    }
    let updates = vec![p4::Update { r#type: Insert as i32, entity: None }];
    let status = controller.write_all(updates).await.unwrap_err();
    golden.line("write: no entity", errors(&status)[0].0, &errors(&status)[0].1);
    let batch = vec![
        update(Insert, TableEntry(table(vec![exact(1, &[2])], to(1)))),
        update(Insert, TableEntry(table(vec![], to(1)))),
        update(Insert, TableEntry(table(vec![exact(1, &[3])], to(1)))),
    ];
    let atomicity = p4::write_request::Atomicity::RollbackOnError as i32;
    let status = controller.write_batch(atomicity, batch).await.unwrap_err();
    golden.status("batch: one of three is wrong", &status);
    for (place, (code, text)) in errors(&status).iter().enumerate() {
        golden.line(&format!("batch: update {}", place + 1), *code, text);
    }
    let empty = Switch::start().await;
    let mut early = empty.controller(1).await;
    golden.status("write request: no pipeline", &early.write_all(vec![]).await.unwrap_err());
    let pattern = TableEntry(p4::TableEntry::default());
    golden.status("read request: no pipeline", &early.try_read(vec![pattern]).await.unwrap_err());
}

/// Sends pipeline requests that the server refuses.
pub async fn pipelines(controller: &mut Controller, golden: &mut Golden) {
    let without = |json: bool, info: bool| {
        let mut config = config(1);
        config.p4_device_config = if json { config.p4_device_config } else { vec![] };
        config.p4info = config.p4info.filter(|_| info);
        Some(config)
    };
    let mut garbage = config(1);
    garbage.p4_device_config = b"{}".to_vec();
    let wrong = [
        ("no config", Action::Verify, None),
        ("no P4Info", Action::Verify, without(true, false)),
        ("no program", Action::Verify, without(false, true)),
        ("a program of nothing", Action::Verify, Some(garbage)),
        ("arrays too large", Action::Verify, Some(with_meters(1 << 28))),
        ("no action", Action::Unspecified, Some(config(1))),
        ("commit of nothing", Action::Commit, None),
        ("commit with a config", Action::Commit, Some(config(1))),
    ];
    for (what, action, config) in wrong {
        golden.status(&format!("pipeline: {what}"), &controller.push(action, config).await.unwrap_err());
    }
}

pub async fn streams(switch: &Switch, golden: &mut Golden) {
    let bid = |device_id, low| {
        let election_id = Some(p4::Uint128 { high: 0, low });
        ToSwitch::Arbitration(p4::MasterArbitrationUpdate { device_id, election_id, ..Default::default() })
    };
    let role = |role| {
        let role = Some(role);
        ToSwitch::Arbitration(p4::MasterArbitrationUpdate { device_id: DEVICE, role, ..Default::default() })
    };
    #[allow(deprecated)]
    let numbered = p4::Role { id: 4, ..Default::default() };
    let configured = p4::Role { name: "x".to_owned(), config: Some(prost_types::Any::default()), ..Default::default() };
    for (what, bid) in [
        ("another device", bid(77, 1)),
        ("an election id in use", bid(DEVICE, 10)),
        ("a role id", role(numbered)),
        ("a role config", role(configured)),
    ] {
        let mut controller = Controller::connect(switch, 1).await;
        controller.send(bid).await;
        golden.status(&format!("bid: {what}"), &controller.try_next().await.unwrap_err());
    }
    let second_role = p4::Role { name: "x".to_owned(), ..Default::default() };
    for (election, what, bid) in [(1, "another device later", bid(77, 1)), (2, "another role later", role(second_role))]
    {
        let mut controller = switch.controller(election).await;
        controller.send(bid).await;
        golden.status(&format!("bid: {what}"), &controller.try_next().await.unwrap_err());
    }
    let mut controller = Controller::connect(switch, 1).await;
    controller.send_nothing().await;
    golden.status("stream: an empty message", &controller.try_next().await.unwrap_err());
    let mut primary = switch.controller(12).await;
    let twice = vec![p4::PacketMetadata { metadata_id: 1, value: vec![4] }; 2];
    let messages = [
        ("a packet with metadata twice", ToSwitch::Packet(p4::PacketOut { payload: vec![1; 60], metadata: twice })),
        ("an acknowledgement of no digest", { ToSwitch::DigestAck(p4::DigestListAck { digest_id: 1, list_id: 1 }) }),
        ("a message of another type", ToSwitch::Other(prost_types::Any::default())),
    ];
    for (what, message) in messages {
        primary.send(message).await;
        let FromSwitch::Error(error) = primary.next().await else { panic!("no error: {what}") };
        golden.line(&format!("stream: {what}"), Code::from_i32(error.canonical_code), &error.message);
    }
    let mut backup = switch.controller(5).await;
    backup.send(ToSwitch::Packet(p4::PacketOut::default())).await;
    golden.stream_error("stream: a packet of a backup", &mut backup).await;
    open_too_many(switch, golden).await;
}

/// Opens streams until the server refuses one because too many are open.
pub async fn open_too_many(switch: &Switch, golden: &mut Golden) {
    // A connection may have at most 128 concurrent calls, so the streams need several connections.
    let clients = [switch.client().await, switch.client().await, switch.client().await];
    let mut open = Vec::new();
    loop {
        let mut client = clients[open.len() / 100].clone();
        match client.stream_channel(tokio_stream::pending()).await {
            Ok(stream) => open.push(stream),
            Err(status) => break golden.status("stream: too many", &status),
        }
    }
}

/// Sends packet-outs that the server refuses.
pub async fn packet_outs(golden: &mut Golden) {
    let packet = || ToSwitch::Packet(p4::PacketOut { payload: vec![1; 60], metadata: metadata(&[&[4], &[0], &[0]]) });
    let switch = Switch::start_with(None).await;
    let mut controller = switch.controller(1).await;
    controller.send(packet()).await;
    golden.stream_error("stream: a packet without a CPU port", &mut controller).await;
    let switch = Switch::start().await;
    let mut controller = switch.controller(1).await;
    controller.send(packet()).await;
    golden.stream_error("stream: a packet without a pipeline", &mut controller).await;
    controller.push(Action::VerifyAndCommit, Some(config(1))).await.unwrap();
    while switch.device.counters().packet_out_refused.get() < 2 {
        controller.send(packet()).await;
    }
    golden.stream_error("stream: a packet too many", &mut controller).await;
}
