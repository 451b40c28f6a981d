//! Tests roles: each role has its own primary, and the server does not restrict the entities that a role may access.

use crate::common::*;
use p4::entity::Entity::TableEntry;
use p4::stream_message_request::Update as ToSwitch;
use p4::stream_message_response::Update as FromSwitch;
use p4::update::Type::Insert;
use sluice_p4runtime::proto::p4::v1 as p4;
use tonic::{Code, Status};

fn bid(role: &str, election: u64) -> p4::MasterArbitrationUpdate {
    p4::MasterArbitrationUpdate {
        device_id: DEVICE,
        role: Some(p4::Role { name: role.to_owned(), ..Default::default() }),
        election_id: Some(p4::Uint128 { high: 0, low: election }),
        ..Default::default()
    }
}

async fn with_role(switch: &Switch, role: &str, election: u64) -> Controller {
    let controller = Controller::connect(switch, election).await;
    controller.send(ToSwitch::Arbitration(bid(role, election))).await;
    controller
}

async fn write(controller: &mut Controller, role: &str, election: u64, dst: u8) -> Result<(), Status> {
    let entry = entry(EXACT, vec![exact(1, &[dst])], direct(forward(2)));
    let request = p4::WriteRequest {
        device_id: DEVICE,
        role: role.to_owned(),
        election_id: Some(p4::Uint128 { high: 0, low: election }),
        updates: vec![update(Insert, TableEntry(entry))],
        ..Default::default()
    };
    controller.client.write(request).await.map(|_| ())
}

#[tokio::test(flavor = "multi_thread")]
async fn every_role_has_a_primary_of_its_own() {
    let (switch, _default) = Switch::ready().await;
    let mut first = with_role(&switch, "routing", 5).await;
    assert_eq!(first.next_arbitration().await, (Code::Ok, 5));
    let mut second = with_role(&switch, "routing", 4).await;
    assert_eq!(second.next_arbitration().await, (Code::AlreadyExists, 5));
    let mut monitor = with_role(&switch, "monitoring", 1).await;
    match monitor.next().await {
        FromSwitch::Arbitration(answer) => {
            assert_eq!(answer.role.unwrap().name, "monitoring");
            assert_eq!(answer.status.unwrap().code, Code::Ok as i32);
        }
        answer => panic!("{answer:?}"),
    }
    // A primary writes with its own election id. The server refuses the ids of other roles and of backups.
    write(&mut first, "routing", 5, 1).await.unwrap();
    write(&mut monitor, "monitoring", 1, 2).await.unwrap();
    assert_eq!(write(&mut second, "routing", 4, 3).await.unwrap_err().code(), Code::PermissionDenied);
    assert_eq!(write(&mut monitor, "routing", 1, 3).await.unwrap_err().code(), Code::PermissionDenied);
    assert_eq!(write(&mut monitor, "unknown", 1, 3).await.unwrap_err().code(), Code::NotFound);
    // The server does not report a new primary of one role to the controllers of other roles.
    drop(first);
    assert_eq!(second.next_arbitration().await, (Code::NotFound, 5));
    second.send(ToSwitch::Arbitration(bid("routing", 6))).await;
    assert_eq!(second.next_arbitration().await, (Code::Ok, 6));
    write(&mut second, "routing", 6, 3).await.unwrap();
    write(&mut monitor, "monitoring", 1, 4).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn every_role_reads_everything() {
    let (switch, mut default) = Switch::ready().await;
    write(&mut default, "", 10, 1).await.unwrap();
    let mut monitor = with_role(&switch, "monitoring", 1).await;
    assert_eq!(monitor.next_arbitration().await, (Code::Ok, 1));
    for role in ["monitoring", "", "unknown"] {
        let pattern = p4::Entity { entity: Some(TableEntry(entry(EXACT, vec![], None))) };
        let request = p4::ReadRequest { device_id: DEVICE, entities: vec![pattern], role: role.to_owned() };
        let mut responses = monitor.client.read(request).await.unwrap().into_inner();
        assert_eq!(responses.message().await.unwrap().unwrap().entities.len(), 1, "{role}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn packets_go_to_the_primary_of_every_role() {
    let (switch, mut default) = Switch::ready().await;
    let mut monitor = with_role(&switch, "monitoring", 1).await;
    assert_eq!(monitor.next_arbitration().await, (Code::Ok, 1));
    let to_controller = direct(action(TO_CONTROLLER, &[&[1]]));
    default.insert(TableEntry(p4::TableEntry { priority: 1, ..entry(TERNARY, vec![], to_controller) })).await;
    switch.packet(1, &frame(1, 2, 0x800));
    assert!(matches!(default.next().await, FromSwitch::Packet(_)));
    assert!(matches!(monitor.next().await, FromSwitch::Packet(_)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_role_config_or_another_role_ends_the_stream() {
    let switch = Switch::start().await;
    let mut config = bid("routing", 1);
    let any = prost_types::Any { type_url: "type.googleapis.com/x.Scheme".to_owned(), value: vec![] };
    config.role.as_mut().unwrap().config = Some(any);
    let mut controller = Controller::connect(&switch, 1).await;
    controller.send(ToSwitch::Arbitration(config)).await;
    let status = controller.try_next().await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
    assert!(status.message().starts_with("no scheme of role configs is agreed upon"), "{status:?}");

    let mut controller = with_role(&switch, "routing", 1).await;
    assert_eq!(controller.next_arbitration().await, (Code::Ok, 1));
    controller.send(ToSwitch::Arbitration(bid("monitoring", 1))).await;
    assert_eq!(controller.try_next().await.unwrap_err().code(), Code::FailedPrecondition);

    // A bid with the deprecated numeric role id must be refused.
    let mut old = bid("", 1);
    #[allow(deprecated)]
    let number = p4::Role { id: 4, ..Default::default() };
    old.role = Some(number);
    let mut controller = Controller::connect(&switch, 1).await;
    controller.send(ToSwitch::Arbitration(old)).await;
    assert_eq!(controller.try_next().await.unwrap_err().code(), Code::InvalidArgument);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_controller_without_an_election_id_never_becomes_primary() {
    let (switch, _primary) = Switch::ready().await;
    let mut backup = Controller::connect(&switch, 0).await;
    backup.bid(None).await;
    assert_eq!(backup.next_arbitration().await, (Code::AlreadyExists, 10));
    assert_eq!(backup.read(TableEntry(entry(EXACT, vec![], None))).await, []);
    let status = backup.write_all(vec![]).await.unwrap_err();
    assert_eq!(status.code(), Code::PermissionDenied);
}
