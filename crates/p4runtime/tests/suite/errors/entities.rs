//! Short constructors of the entities that the refused requests contain.

use crate::common::*;
use p4::entity::Entity::{self, *};
use p4::packet_replication_engine_entry::Type as Replication;
use sluice_p4runtime::proto::p4::v1 as p4;

pub fn table(fields: Vec<p4::FieldMatch>, action: Option<p4::TableAction>) -> p4::TableEntry {
    entry(EXACT, fields, action)
}

pub fn key() -> Vec<p4::FieldMatch> {
    vec![exact(1, &[1])]
}

pub fn to(port: u8) -> Option<p4::TableAction> {
    direct(forward(port))
}

pub fn default_of(table: u32, action: Option<p4::TableAction>) -> p4::TableEntry {
    p4::TableEntry { is_default_action: true, ..entry(table, vec![], action) }
}

pub fn ternary_entry(fields: Vec<p4::FieldMatch>) -> Entity {
    TableEntry(p4::TableEntry { priority: 1, ..entry(TERNARY, fields, to(1)) })
}

pub fn range(field_id: u32, low: &[u8], high: &[u8]) -> p4::FieldMatch {
    let range = p4::field_match::Range { low: low.to_vec(), high: high.to_vec() };
    p4::FieldMatch { field_id, field_match_type: Some(p4::field_match::FieldMatchType::Range(range)) }
}

pub fn pool_entry(kind: p4::table_action::Type) -> Entity {
    TableEntry(entry(POOL_TABLE, key(), Some(p4::TableAction { r#type: Some(kind) })))
}

pub fn set_of(weights: &[i32]) -> p4::ActionProfileActionSet {
    let member = |weight: &i32| p4::ActionProfileAction { action: Some(forward(1)), weight: *weight, watch_kind: None };
    p4::ActionProfileActionSet { action_profile_actions: weights.iter().map(member).collect(), ..Default::default() }
}

pub fn one_shot(set: p4::ActionProfileActionSet) -> Entity {
    pool_entry(p4::table_action::Type::ActionProfileActionSet(set))
}

pub fn watched(port: &[u8]) -> Entity {
    let mut set = set_of(&[1]);
    set.action_profile_actions[0].watch_kind = Some(p4::action_profile_action::WatchKind::WatchPort(port.to_vec()));
    one_shot(set)
}

pub fn member(profile: u32, id: u32, action: Option<p4::Action>) -> Entity {
    ActionProfileMember(p4::ActionProfileMember { action_profile_id: profile, member_id: id, action })
}

pub fn group(profile: u32, id: u32, members: &[(u32, i32)]) -> Entity {
    sized_group(profile, id, members, 0)
}

pub fn sized_group(profile: u32, id: u32, members: &[(u32, i32)], max_size: i32) -> Entity {
    let member = |(member_id, weight): &(u32, i32)| p4::action_profile_group::Member {
        member_id: *member_id,
        weight: *weight,
        watch_kind: None,
    };
    let members = members.iter().map(member).collect();
    ActionProfileGroup(p4::ActionProfileGroup { action_profile_id: profile, group_id: id, members, max_size })
}

pub fn multicast(id: u32, replicas: Vec<p4::Replica>) -> Entity {
    let group = p4::MulticastGroupEntry { multicast_group_id: id, replicas, ..Default::default() };
    let kind = Some(Replication::MulticastGroupEntry(group));
    PacketReplicationEngineEntry(p4::PacketReplicationEngineEntry { r#type: kind })
}

pub fn session(id: u32, packet_length_bytes: i32) -> Entity {
    let session = p4::CloneSessionEntry { session_id: id, packet_length_bytes, ..Default::default() };
    let kind = Some(Replication::CloneSessionEntry(session));
    PacketReplicationEngineEntry(p4::PacketReplicationEngineEntry { r#type: kind })
}

pub fn replica(port: &[u8], instance: u32) -> p4::Replica {
    let port_kind = Some(p4::replica::PortKind::Port(port.to_vec()));
    p4::Replica { port_kind, instance, ..Default::default() }
}

/// Returns a replica on port 1 with `port` as its backup.
pub fn backed_by(port: u8) -> p4::Replica {
    p4::Replica { backup_replicas: vec![p4::BackupReplica { port: vec![port], instance: 1 }], ..replica(&[1], 0) }
}

pub fn counter(id: u32, at: i64, packets: i64) -> Entity {
    let data = Some(p4::CounterData { byte_count: 0, packet_count: packets });
    CounterEntry(p4::CounterEntry { counter_id: id, index: index(at), data })
}

pub fn meter(id: u32, at: i64, config: p4::MeterConfig) -> Entity {
    MeterEntry(p4::MeterEntry { meter_id: id, index: index(at), config: Some(config), counter_data: None })
}

pub fn register(id: u32, at: i64, data: Option<p4::P4Data>) -> Entity {
    RegisterEntry(p4::RegisterEntry { register_id: id, index: index(at), data })
}

pub fn value_set(members: Vec<Vec<p4::FieldMatch>>) -> Entity {
    let members = members.into_iter().map(|r#match| p4::ValueSetMember { r#match }).collect();
    ValueSetEntry(p4::ValueSetEntry { value_set_id: LABELLED, members })
}

pub fn digest(digest_id: u32, max_list_size: i32) -> Entity {
    let config = Some(p4::digest_entry::Config { max_list_size, ..Default::default() });
    DigestEntry(p4::DigestEntry { digest_id, config })
}
