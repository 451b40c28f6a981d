//! Tests ports that go down and up: group members that watch ports, and replicas with backups.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::common::*;
use p4::entity::Entity::{self, ActionProfileGroup, ActionProfileMember, PacketReplicationEngineEntry, TableEntry};
use p4::packet_replication_engine_entry::Type as Replication;
use p4::set_forwarding_pipeline_config_request::Action;
use p4::update::Type::{Insert, Modify};
use sluice_p4runtime::proto::p4::v1 as p4;
use tonic::Code;

/// Starts a switch whose ports 1 to 4 are up.
async fn with_ports() -> (Switch, Controller) {
    let (switch, controller) = Switch::ready().await;
    for port in 1..=4 {
        switch.device.set_port(port, true);
    }
    (switch, controller)
}

/// Returns the ports by which 256 packets to `dst` from different sources leave, each port once.
fn used_ports(switch: &Switch, dst: u8) -> Vec<u32> {
    let mut ports = Vec::new();
    for source in 0..=255 {
        let mut packet = frame(dst, source, 0x800);
        packet[9..11].fill(source);
        ports.extend(switch.packet(1, &packet).iter().map(|(port, _)| *port));
    }
    ports.sort_unstable();
    ports.dedup();
    ports
}

fn watching(port: u8, watched: &[u8]) -> p4::ActionProfileAction {
    let watch_kind = Some(p4::action_profile_action::WatchKind::WatchPort(watched.to_vec()));
    p4::ActionProfileAction { action: Some(forward(port)), weight: 1, watch_kind }
}

fn one_shot(dst: u8, members: Vec<p4::ActionProfileAction>) -> Entity {
    let set = p4::ActionProfileActionSet { action_profile_actions: members, ..Default::default() };
    let action = p4::TableAction { r#type: Some(p4::table_action::Type::ActionProfileActionSet(set)) };
    TableEntry(entry(POOL_TABLE, vec![exact(1, &[dst])], Some(action)))
}

#[tokio::test(flavor = "multi_thread")]
async fn members_follow_their_watch_ports() {
    let (switch, mut controller) = with_ports().await;
    controller.insert(one_shot(5, vec![watching(1, &[1]), watching(2, &[0, 2]), watching(3, &[])])).await;
    // A read returns entries in canonical form, independent of the ports' link states.
    let canonical = one_shot(5, vec![watching(1, &[1]), watching(2, &[2]), plain(3)]);
    assert_eq!(controller.read(TableEntry(entry(POOL_TABLE, vec![], None))).await, std::slice::from_ref(&canonical));
    assert_eq!(used_ports(&switch, 5), [1, 2, 3]);
    switch.device.set_port(2, false);
    assert_eq!(used_ports(&switch, 5), [1, 3]);
    assert_eq!(controller.read(TableEntry(entry(POOL_TABLE, vec![], None))).await, [canonical]);
    switch.device.set_port(1, false);
    assert_eq!(used_ports(&switch, 5), [3]);
    switch.device.set_port(2, true);
    assert_eq!(used_ports(&switch, 5), [2, 3]);

    // Groups with ids behave like one-shot groups. A group that is written while a port is down already excludes this
    // port.
    for id in [1, 2] {
        let member =
            p4::ActionProfileMember { action_profile_id: POOL, member_id: id, action: Some(forward(id as u8)) };
        controller.insert(ActionProfileMember(member)).await;
    }
    let group = |watched: [u8; 2]| {
        let member = |(id, port): (u32, u8)| p4::action_profile_group::Member {
            member_id: id,
            weight: 1,
            watch_kind: Some(p4::action_profile_group::member::WatchKind::WatchPort(vec![port])),
        };
        let members = [1, 2].into_iter().zip(watched).map(member).collect();
        ActionProfileGroup(p4::ActionProfileGroup { action_profile_id: POOL, group_id: 1, members, max_size: 0 })
    };
    controller.insert(group([1, 2])).await;
    let to_group = p4::TableAction { r#type: Some(p4::table_action::Type::ActionProfileGroupId(1)) };
    controller.insert(TableEntry(entry(POOL_TABLE, vec![exact(1, &[6])], Some(to_group)))).await;
    assert_eq!(used_ports(&switch, 6), [2]);
    // When port 2 is down too, no member is available. The group then runs no action, and the program drops the packet.
    switch.device.set_port(2, false);
    assert_eq!(used_ports(&switch, 6), Vec::<u32>::new());
    // A program that is pushed while a port is down also excludes this port.
    switch.device.set_port(1, true);
    controller.push(Action::VerifyAndCommit, Some(config(2))).await.unwrap();
    controller.insert(one_shot(5, vec![watching(1, &[1]), watching(2, &[2])])).await;
    assert_eq!(used_ports(&switch, 5), [1]);

    let text = "action set, member 0: watch_port: there is no port 9; give one of [1, 2, 3, 4]";
    controller.refused(Insert, one_shot(7, vec![watching(1, &[9])]), Code::InvalidArgument, text).await;
}

fn plain(port: u8) -> p4::ActionProfileAction {
    p4::ActionProfileAction { action: Some(forward(port)), weight: 1, watch_kind: None }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_packet_is_lost_to_a_port_that_is_known_to_be_down() {
    let (switch, mut controller) = with_ports().await;
    controller.insert(one_shot(5, vec![watching(1, &[1]), watching(2, &[2])])).await;
    let (device, stop) = (Arc::clone(&switch.device), Arc::new(AtomicBool::new(false)));
    let stopped = Arc::clone(&stop);
    let flapping = std::thread::spawn(move || {
        while !stopped.load(Relaxed) {
            for (port, up) in [(1, false), (1, true), (2, false), (2, true)] {
                device.set_port(port, up);
            }
        }
    });
    for source in 0..=255 {
        for _ in 0..8 {
            assert_eq!(switch.packet(3, &frame(5, source, 0x800)).len(), 1, "one of the two ports is always up");
        }
    }
    stop.store(true, Relaxed);
    flapping.join().unwrap();
}

fn replica(port: u8, instance: u32, backups: &[(u8, u32)]) -> p4::Replica {
    let backup = |(port, instance): &(u8, u32)| p4::BackupReplica { port: vec![*port], instance: *instance };
    p4::Replica {
        port_kind: Some(p4::replica::PortKind::Port(vec![port])),
        instance,
        backup_replicas: backups.iter().map(backup).collect(),
    }
}

fn multicast(replicas: Vec<p4::Replica>) -> Entity {
    let group = p4::MulticastGroupEntry { multicast_group_id: 6, replicas, ..Default::default() };
    let kind = Some(Replication::MulticastGroupEntry(group));
    PacketReplicationEngineEntry(p4::PacketReplicationEngineEntry { r#type: kind })
}

fn clone_session(replicas: Vec<p4::Replica>) -> Entity {
    let session = p4::CloneSessionEntry { session_id: 7, replicas, ..Default::default() };
    let kind = Some(Replication::CloneSessionEntry(session));
    PacketReplicationEngineEntry(p4::PacketReplicationEngineEntry { r#type: kind })
}

/// Sends one packet, and returns the ports by which its copies leave.
fn copies(switch: &Switch) -> Vec<u32> {
    let mut ports: Vec<_> = switch.packet(1, &frame(1, 1, 0x800)).iter().map(|(port, _)| *port).collect();
    ports.sort_unstable();
    ports
}

#[tokio::test(flavor = "multi_thread")]
async fn backup_replicas_take_over() {
    let (switch, mut controller) = with_ports().await;
    let to_all = |action| TableEntry(p4::TableEntry { priority: 1, ..entry(TERNARY, vec![], direct(action)) });
    controller.insert(to_all(action(BROADCAST, &[&[6]]))).await;
    let group = || multicast(vec![replica(1, 0, &[(2, 0), (3, 0)]), replica(4, 0, &[])]);
    controller.insert(group()).await;
    assert_eq!(copies(&switch), [1, 4]);
    switch.device.set_port(1, false);
    assert_eq!(copies(&switch), [2, 4]);
    switch.device.set_port(2, false);
    assert_eq!(copies(&switch), [3, 4]);
    // If no port is up, the copy is sent to the replica's own port, like the copy of a replica without backups.
    switch.device.set_port(3, false);
    assert_eq!(copies(&switch), [1, 4]);
    switch.device.set_port(2, true);
    assert_eq!(copies(&switch), [2, 4]);
    switch.device.set_port(1, true);
    assert_eq!(copies(&switch), [1, 4]);
    assert_eq!(controller.read(multicast(vec![])).await, [group()]);

    controller.modify(to_all(action(MIRROR, &[&[2]]))).await;
    controller.insert(clone_session(vec![replica(1, 0, &[(4, 0)])])).await;
    assert_eq!(copies(&switch), [1, 2]);
    switch.device.set_port(1, false);
    assert_eq!(copies(&switch), [2, 4]);

    let own = multicast(vec![replica(1, 0, &[(1, 1)])]);
    controller.refused(Modify, own, Code::InvalidArgument, "port 1 is its own backup").await;
    let twice = multicast(vec![replica(1, 0, &[(2, 0)]), replica(2, 0, &[])]);
    controller.refused(Modify, twice, Code::InvalidArgument, "port 2 with instance 0 is given twice").await;
}
