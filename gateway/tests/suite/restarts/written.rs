//! Batches that write every kind of state that the gateway saves. Other functions read the resulting state from the
//! driver and through P4Runtime.

use std::collections::{BTreeMap, BTreeSet};

use sluice_p4runtime::proto::p4::v1 as p4;
use sluice_tofino::proto::{TableData, TableKey, data_field, key_field};
use sluice_tofino::shadow::FIRST_OWN_ID;

use crate::campus::{self, ethertypes, group, id, limit, rule, session};
use crate::common::{Controller, call, direct, exact, lpm};
use crate::stand_in::{Driver, store};
use p4::entity::Entity;
use p4::packet_replication_engine_entry::Type as Replication;
use p4::update::Type;
use p4::write_request::Atomicity;

/// The updates of one request, with the atomicity of the request.
pub type Batch = (Atomicity, Vec<(Type, Entity)>);

pub fn host(last: u8, idle_timeout_ns: i64) -> Entity {
    Entity::TableEntry(campus::host(last, idle_timeout_ns))
}

fn entry(entry: p4::TableEntry) -> Entity {
    Entity::TableEntry(entry)
}

/// Returns an entry that forwards frames for the station `last` to a port.
fn station(last: u8, port: u8) -> Entity {
    entry(p4::TableEntry {
        table_id: id("stations"),
        r#match: vec![exact(1, &[2, 0, 0, 0, 0, last])],
        action: direct(call(id("forward"), &[&[port]])),
        controller_metadata: 77,
        metadata: vec![last, port],
        ..Default::default()
    })
}

/// Returns the default action of `stations`, which forwards all other frames to `port`; `None`: the program's own
/// default action.
fn default_port(port: Option<u8>) -> Entity {
    entry(p4::TableEntry {
        table_id: id("stations"),
        is_default_action: true,
        action: port.and_then(|port| direct(call(id("forward"), &[&[port]]))),
        ..Default::default()
    })
}

/// Returns a route to 10.0.`net`.0/24 with this action.
fn to(net: u8, action: p4::table_action::Type) -> Entity {
    entry(p4::TableEntry {
        table_id: id("routes"),
        r#match: vec![lpm(1, &[10, 0, net, 0], 24)],
        action: Some(p4::TableAction { r#type: Some(action) }),
        ..Default::default()
    })
}

/// Returns a route to 10.0.`net`.0/24 over several ports. Each element of `ports` is a pair of port and weight.
pub fn route(net: u8, ports: &[(u8, i32)]) -> Entity {
    let actions = ports.iter().map(|(port, weight)| p4::ActionProfileAction {
        action: Some(call(id("send"), &[&[*port]])),
        weight: *weight,
        watch_kind: None,
    });
    let set = p4::ActionProfileActionSet { action_profile_actions: actions.collect(), ..Default::default() };
    to(net, p4::table_action::Type::ActionProfileActionSet(set))
}

fn member(member_id: u32, port: u8) -> Entity {
    let action = Some(call(id("send"), &[&[port]]));
    Entity::ActionProfileMember(p4::ActionProfileMember { action_profile_id: id("ports"), member_id, action })
}

/// Returns a group of an action profile. Each element of `list` is a pair of member id and weight.
fn members(group_id: u32, list: &[(u32, i32)]) -> Entity {
    let members = list.iter().map(|(member_id, weight)| p4::action_profile_group::Member {
        member_id: *member_id,
        weight: *weight,
        ..Default::default()
    });
    Entity::ActionProfileGroup(p4::ActionProfileGroup {
        action_profile_id: id("ports"),
        group_id,
        members: members.collect(),
        ..Default::default()
    })
}

fn digest(max_list_size: i32) -> Entity {
    let config = p4::digest_entry::Config { max_timeout_ns: 1, max_list_size, ack_timeout_ns: 3 };
    Entity::DigestEntry(p4::DigestEntry { digest_id: id("new_host"), config: Some(config) })
}

/// Returns batches that write every kind of entity, by insertions, modifications and deletions. The driver refuses one
/// of the updates.
pub fn batches() -> Vec<Batch> {
    use Atomicity::{ContinueOnError, RollbackOnError};
    use Type::{Delete, Insert, Modify};
    let meter = |cir| Some(p4::MeterConfig { cir, cburst: 9000, pir: 2 * cir, pburst: 9000, ..Default::default() });
    vec![
        (ContinueOnError, vec![(Insert, host(1, 5_000_000_000)), (Insert, host(2, 0)), (Insert, station(1, 4))]),
        (
            RollbackOnError,
            vec![
                (Insert, route(1, &[(1, 3), (2, 1)])),
                (Insert, route(2, &[(2, 1)])),
                (Insert, entry(rule(10, "permit", &[]))),
            ],
        ),
        (ContinueOnError, vec![(Insert, group(7, &[(2, 5), (3, 5), (4, 6)])), (Insert, session(3, &[(2, 0)], 64))]),
        (ContinueOnError, vec![(Insert, digest(9)), (Modify, ethertypes(&[0x88a8, 0x9100]))]),
        (RollbackOnError, vec![(Modify, route(1, &[(1, 3), (2, 2)])), (Modify, route(2, &[(3, 1), (4, 1)]))]),
        (
            ContinueOnError,
            vec![(Insert, member(1, 8)), (Insert, member(2, 9)), (Insert, members(4, &[(1, 2), (2, 1)]))],
        ),
        (ContinueOnError, vec![(Insert, to(3, p4::table_action::Type::ActionProfileGroupId(4)))]),
        // The driver refuses to delete the group, because an entry refers to it.
        (RollbackOnError, vec![(Insert, station(9, 1)), (Modify, route(1, &[(5, 1)])), (Delete, members(4, &[]))]),
        (ContinueOnError, vec![(Insert, entry(limit(1, meter(1000)))), (Modify, default_port(Some(5)))]),
        (ContinueOnError, vec![(Modify, group(7, &[(1, 0)])), (Modify, session(3, &[(2, 0), (4, 1)], 0))]),
        (ContinueOnError, vec![(Modify, ethertypes(&[0x9100])), (Modify, digest(2)), (Delete, host(2, 0))]),
        (RollbackOnError, vec![(Modify, station(1, 6)), (Modify, entry(limit(1, meter(2000)))), (Insert, host(3, 0))]),
        (ContinueOnError, vec![(Delete, route(2, &[])), (Modify, default_port(None)), (Delete, group(7, &[]))]),
        (
            ContinueOnError,
            vec![(Modify, session(3, &[(4, 0)], 0)), (Delete, to(3, p4::table_action::Type::ActionProfileGroupId(4)))],
        ),
        (ContinueOnError, vec![(Delete, members(4, &[])), (Delete, member(2, 9)), (Delete, digest(2))]),
    ]
}

/// Reads all entities through P4Runtime.
pub async fn everything(controller: &mut Controller) -> Vec<Entity> {
    let entries = p4::TableEntry { meter_config: Some(p4::MeterConfig::default()), ..Default::default() };
    let defaults = p4::TableEntry { is_default_action: true, ..Default::default() };
    let copies = |kind| Entity::PacketReplicationEngineEntry(p4::PacketReplicationEngineEntry { r#type: Some(kind) });
    let mut entities = Vec::new();
    for pattern in [
        Entity::TableEntry(entries),
        Entity::TableEntry(defaults),
        Entity::ActionProfileMember(p4::ActionProfileMember::default()),
        Entity::ActionProfileGroup(p4::ActionProfileGroup::default()),
        Entity::DigestEntry(p4::DigestEntry::default()),
        Entity::ValueSetEntry(p4::ValueSetEntry::default()),
        copies(Replication::MulticastGroupEntry(p4::MulticastGroupEntry::default())),
        copies(Replication::CloneSessionEntry(p4::CloneSessionEntry::default())),
    ] {
        entities.extend(controller.read(pattern).await);
    }
    entities
}

/// The entries and the default action of each table in the driver, by the table's name.
pub type Holdings = BTreeMap<String, (Vec<(TableKey, TableData)>, Option<TableData>)>;

/// Returns the tables of the driver without the gateway's mark (a mirror session). Replaces the ids that the gateway
/// has assigned by 1, 2, ... in their order, because two gateways with equal state may have skipped different ids.
pub fn holdings(driver: &Driver) -> Holdings {
    let store = driver.store.lock();
    let is_numbered = |name: &str| ["Action", "Selector"].contains(&name) || name.starts_with("Pre");
    let numbered = store.all().filter(|(table, _)| is_numbered(&table.table_type));
    let keys = numbered.flat_map(|(_, rows)| rows.entries.values().map(|(key, _)| store::key_number(key)));
    let own: BTreeSet<u32> = keys.filter(|id| *id >= FIRST_OWN_ID).collect();
    let rank = |id: u32| own.iter().position(|assigned| *assigned == id).map_or(id, |index| index as u32 + 1);
    let bytes = |value: &mut Vec<u8>| {
        if let Ok(id) = <[u8; 4]>::try_from(value.as_slice()) {
            *value = rank(u32::from_be_bytes(id)).to_be_bytes().to_vec();
        }
    };
    let renumbered = |(key, data): &(TableKey, TableData)| {
        let (mut key, mut data) = (key.clone(), data.clone());
        for field in &mut key.fields {
            if let Some(key_field::MatchType::Exact(exact)) = &mut field.match_type {
                bytes(&mut exact.value);
            }
        }
        for field in &mut data.fields {
            match &mut field.value {
                Some(data_field::Value::Stream(value)) => bytes(value),
                Some(data_field::Value::IntArrVal(list)) => list.val.iter_mut().for_each(|id| *id = rank(*id)),
                _ => {}
            }
        }
        (key, data)
    };
    let is_mark = |table: &str, key: &TableKey| table == "MirrorCfg" && store::key_number(key) == 1023;
    let tables = store.all().map(|(table, rows)| {
        let entries = rows.entries.values().filter(|(key, _)| !is_mark(&table.table_type, key));
        let mut entries: Vec<_> = entries.map(renumbered).collect();
        entries.sort_by_key(|(key, _)| format!("{key:?}"));
        (table.name.clone(), (entries, rows.default.clone()))
    });
    tables.collect()
}
