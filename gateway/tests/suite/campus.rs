//! Constructors of the entries of the test program `campus.p4`.

use sluice_p4runtime::parse_p4info;
use sluice_p4runtime::proto::p4::config::v1::{P4Info, Preamble};
use sluice_p4runtime::proto::p4::v1 as p4;

use crate::common::{Bench, Controller, call, direct, exact};
use crate::stand_in::CAMPUS;
use p4::entity::Entity;
use p4::field_match::FieldMatchType;

pub const P4INFO: &str = include_str!("../campus/campus.p4info.txtpb");

pub async fn ready() -> (Bench, Controller) {
    Bench::with(CAMPUS, P4INFO, &[0]).await
}

/// Returns the P4Info id of the object with this alias, or whose name ends with `alias`.
pub fn id(alias: &str) -> u32 {
    let P4Info { tables, actions, action_profiles, value_sets, registers, digests, .. } = parse_p4info(P4INFO).unwrap();
    let preambles = tables.into_iter().map(|table| table.preamble);
    let preambles = preambles.chain(actions.into_iter().map(|action| action.preamble));
    let preambles = preambles.chain(action_profiles.into_iter().map(|profile| profile.preamble));
    let preambles = preambles.chain(value_sets.into_iter().map(|set| set.preamble));
    let preambles = preambles.chain(registers.into_iter().map(|register| register.preamble));
    let mut preambles = preambles.chain(digests.into_iter().map(|digest| digest.preamble)).flatten();
    preambles
        .find(|preamble: &Preamble| preamble.alias == alias || preamble.name.ends_with(alias))
        .unwrap_or_else(|| panic!("{alias}"))
        .id
}

/// Returns an entry for a host at port 1. `last` is the last byte of the host's MAC address.
pub fn host(last: u8, idle_timeout_ns: i64) -> p4::TableEntry {
    p4::TableEntry {
        table_id: id("hosts"),
        r#match: vec![exact(1, &[2, 0, 0, 0, 0, last]), exact(2, &[1])],
        action: direct(call(id("known"), &[])),
        idle_timeout_ns,
        ..Default::default()
    }
}

/// Returns an entry that limits the rate of a host. `last` is the last byte of the host's IP address.
pub fn limit(last: u8, meter_config: Option<p4::MeterConfig>) -> p4::TableEntry {
    p4::TableEntry {
        table_id: id("limits"),
        r#match: vec![exact(1, &[10, 0, 0, last])],
        action: direct(call(id("limited"), &[])),
        meter_config,
        ..Default::default()
    }
}

/// Returns an access rule for IPv4 packets with source addresses in 10.0.0.0/8 and total lengths of 64 to 256 bytes.
pub fn rule(priority: i32, action: &str, params: &[&[u8]]) -> p4::TableEntry {
    let ternary = p4::field_match::Ternary { value: vec![10, 0, 0, 0], mask: vec![255, 0, 0, 0] };
    let range = p4::field_match::Range { low: vec![64], high: vec![1, 0] };
    let field = |field_id, kind| p4::FieldMatch { field_id, field_match_type: Some(kind) };
    p4::TableEntry {
        table_id: id("acl"),
        r#match: vec![field(1, FieldMatchType::Ternary(ternary)), field(3, FieldMatchType::Range(range))],
        priority,
        action: direct(call(id(action), params)),
        ..Default::default()
    }
}

/// Returns the value set of EtherTypes that the parser treats as IPv4.
pub fn ethertypes(members: &[u16]) -> Entity {
    let member = |value: &u16| {
        let ternary = p4::field_match::Ternary { value: value.to_be_bytes().to_vec(), mask: vec![255, 255] };
        let kind = FieldMatchType::Ternary(ternary);
        p4::ValueSetMember { r#match: vec![p4::FieldMatch { field_id: 1, field_match_type: Some(kind) }] }
    };
    let members = members.iter().map(member).collect();
    Entity::ValueSetEntry(p4::ValueSetEntry { value_set_id: id("ipv4_types"), members })
}

fn replicas(list: &[(u32, u32)]) -> Vec<p4::Replica> {
    let replica = |(port, instance): &(u32, u32)| p4::Replica {
        instance: *instance,
        port_kind: Some(p4::replica::PortKind::EgressPort(*port)),
        ..Default::default()
    };
    list.iter().map(replica).collect()
}

/// Returns a multicast group. Each replica is a pair of port and instance.
pub fn group(id: u32, list: &[(u32, u32)]) -> Entity {
    use p4::packet_replication_engine_entry::Type::MulticastGroupEntry;
    let group = p4::MulticastGroupEntry { multicast_group_id: id, replicas: replicas(list), ..Default::default() };
    Entity::PacketReplicationEngineEntry(p4::PacketReplicationEngineEntry { r#type: Some(MulticastGroupEntry(group)) })
}

/// Returns a clone session. Each replica is a pair of port and instance.
pub fn session(session_id: u32, list: &[(u32, u32)], packet_length_bytes: i32) -> Entity {
    use p4::packet_replication_engine_entry::Type::CloneSessionEntry;
    let class_of_service = 2;
    let session = p4::CloneSessionEntry { session_id, replicas: replicas(list), class_of_service, packet_length_bytes };
    Entity::PacketReplicationEngineEntry(p4::PacketReplicationEngineEntry { r#type: Some(CloneSessionEntry(session)) })
}
