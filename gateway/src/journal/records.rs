//! Encodes the shadow (the gateway's copy of what clients wrote) as messages of the journal, and decodes them. The
//! shadow maps places to values.

use prost::Message;
use sluice_engine::{DigestConfig, DigestId, MeterId, ProfileId, TableId, ValueSetId};
use sluice_p4runtime::translation::AssignedName;

use super::proto::{self, place, value};
use crate::proto::{TableData, TableKey};
use crate::shadow::{Copies, Entry, OwnGroup, Place, Value};

/// Encodes a place (a key of the shadow) with its current value. A place that was removed has no value.
pub fn change(changed: &Place, value: Option<&Value>) -> proto::Change {
    proto::Change { place: Some(encode_place(changed)), value: value.map(encode_value) }
}

/// Decodes a place (a key of the shadow) with its value. Returns `None` when the message is incomplete, or when the
/// kinds of place and value differ.
pub fn read_change(change: proto::Change) -> Option<(Place, Option<Value>)> {
    let place = decode_place(change.place?)?;
    let value = match change.value {
        Some(value) => Some(decode_value(&place, value)?),
        None => None,
    };
    Some((place, value))
}

/// Encodes a name of a translated value with its assigned number.
pub fn name(assigned: AssignedName) -> proto::Name {
    proto::Name { uri: assigned.uri, name: assigned.name, number: assigned.number }
}

/// Decodes a name of a translated value with its assigned number.
pub fn read_name(name: proto::Name) -> AssignedName {
    AssignedName { uri: name.uri, name: name.name, number: name.number }
}

fn encode_place(place: &Place) -> proto::Place {
    use place::Kind;
    let keyed = |object: u32, key: &Vec<u8>| proto::Keyed { object, key: key.clone() };
    let numbered = |object: u32, number: u64| proto::Numbered { object, number };
    let kind = match place {
        Place::Entry(table, key) => Kind::Entry(keyed(table.0, key)),
        Place::Default(table) => Kind::DefaultAction(table.0),
        Place::Member(profile, id) => Kind::Member(numbered(profile.0, u64::from(*id))),
        Place::Group(profile, id) => Kind::Group(numbered(profile.0, u64::from(*id))),
        Place::Shared(profile, data) => Kind::Shared(keyed(profile.0, data)),
        Place::Digest(digest) => Kind::Digest(digest.0),
        Place::Meter(meter, cell) => Kind::Meter(numbered(meter.0, *cell)),
        Place::ValueSet(set) => Kind::ValueSet(set.0),
        Place::Multicast(id) => Kind::Multicast(*id),
        Place::Clone(id) => Kind::Clone(*id),
    };
    proto::Place { kind: Some(kind) }
}

fn decode_place(place: proto::Place) -> Option<Place> {
    use place::Kind;
    let id = |numbered: &proto::Numbered| u32::try_from(numbered.number).ok();
    Some(match place.kind? {
        Kind::Entry(keyed) => Place::Entry(TableId(keyed.object), keyed.key),
        Kind::DefaultAction(table) => Place::Default(TableId(table)),
        Kind::Member(numbered) => Place::Member(ProfileId(numbered.object), id(&numbered)?),
        Kind::Group(numbered) => Place::Group(ProfileId(numbered.object), id(&numbered)?),
        Kind::Shared(keyed) => Place::Shared(ProfileId(keyed.object), keyed.key),
        Kind::Digest(digest) => Place::Digest(DigestId(digest)),
        Kind::Meter(numbered) => Place::Meter(MeterId(numbered.object), numbered.number),
        Kind::ValueSet(set) => Place::ValueSet(ValueSetId(set)),
        Kind::Multicast(id) => Place::Multicast(id),
        Kind::Clone(id) => Place::Clone(id),
    })
}

fn encode_value(value: &Value) -> proto::Value {
    use value::Kind;
    let kind = match value {
        Value::Entry(entry) => Kind::Entry(proto::Entry {
            wire: Some(entry.wire.clone()),
            data: Some(entry.data.clone()),
            own: entry.own.as_ref().map(encode_group),
        }),
        Value::Member(wire, data) => Kind::Member(proto::Member { wire: Some(wire.clone()), data: Some(data.clone()) }),
        Value::Group(wire, data) => Kind::Group(proto::Group { wire: Some(wire.clone()), data: Some(data.clone()) }),
        Value::Shared(id, _, uses) => Kind::Shared(proto::Shared { id: *id, uses: *uses as u64 }),
        Value::Digest(config) => Kind::Digest(proto::Digest {
            max_timeout_ns: config.max_timeout_ns,
            max_list_size: config.max_list_size,
            ack_timeout_ns: config.ack_timeout_ns,
        }),
        Value::Meter(config) => Kind::Meter(*config),
        Value::ValueSet(wire, keys) => Kind::ValueSet(proto::ValueSet { wire: Some(wire.clone()), keys: keys.clone() }),
        Value::Multicast(wire, copies) => {
            Kind::Multicast(proto::Multicast { wire: Some(wire.clone()), copies: Some(encode_copies(copies)) })
        }
        Value::Clone(wire, data, copies) => Kind::Clone(proto::Clone {
            wire: Some(wire.clone()),
            data: Some(data.clone()),
            copies: copies.as_ref().map(encode_copies),
        }),
    };
    proto::Value { kind: Some(kind) }
}

fn decode_value(place: &Place, value: proto::Value) -> Option<Value> {
    use value::Kind;
    Some(match (place, value.kind?) {
        (Place::Entry(_, key), Kind::Entry(entry)) => {
            Value::Entry(Box::new(decode_entry(TableKey::decode(key.as_slice()).ok()?, entry)?))
        }
        (Place::Default(_), Kind::Entry(entry)) => Value::Entry(Box::new(decode_entry(TableKey::default(), entry)?)),
        (Place::Member(..), Kind::Member(member)) => Value::Member(member.wire?, member.data?),
        (Place::Group(..), Kind::Group(group)) => Value::Group(group.wire?, group.data?),
        (Place::Shared(_, data), Kind::Shared(shared)) => {
            let uses = usize::try_from(shared.uses).ok()?;
            Value::Shared(shared.id, TableData::decode(data.as_slice()).ok()?, uses)
        }
        (Place::Digest(_), Kind::Digest(config)) => Value::Digest(DigestConfig {
            max_timeout_ns: config.max_timeout_ns,
            max_list_size: config.max_list_size,
            ack_timeout_ns: config.ack_timeout_ns,
        }),
        (Place::Meter(..), Kind::Meter(config)) => Value::Meter(config),
        (Place::ValueSet(_), Kind::ValueSet(set)) => Value::ValueSet(set.wire?, set.keys),
        (Place::Multicast(_), Kind::Multicast(group)) => Value::Multicast(group.wire?, decode_copies(group.copies?)?),
        (Place::Clone(_), Kind::Clone(session)) => {
            let copies = match session.copies {
                Some(copies) => Some(decode_copies(copies)?),
                None => None,
            };
            Value::Clone(session.wire?, session.data?, copies)
        }
        _ => return None,
    })
}

fn decode_entry(key: TableKey, entry: proto::Entry) -> Option<Entry> {
    let own = match entry.own {
        Some(own) => Some(decode_group(own)?),
        None => None,
    };
    Some(Entry { wire: entry.wire?, key, data: entry.data?, own })
}

fn encode_group(own: &OwnGroup) -> proto::OwnGroup {
    let members = own.members.iter().filter_map(|member| match encode_place(member).kind {
        Some(place::Kind::Shared(keyed)) => Some(keyed),
        _ => None,
    });
    proto::OwnGroup { id: own.id, members: members.collect(), data: Some(own.data.clone()) }
}

fn decode_group(own: proto::OwnGroup) -> Option<OwnGroup> {
    let members = own.members.into_iter().map(|keyed| Place::Shared(ProfileId(keyed.object), keyed.key));
    Some(OwnGroup { id: own.id, members: members.collect(), data: own.data? })
}

fn encode_copies(copies: &Copies) -> proto::Copies {
    let node = |(id, data): &(u32, TableData)| proto::Node { id: *id, data: Some(data.clone()) };
    proto::Copies { nodes: copies.nodes.iter().map(node).collect(), group: copies.group }
}

fn decode_copies(copies: proto::Copies) -> Option<Copies> {
    let nodes = copies.nodes.into_iter().map(|node| Some((node.id, node.data?)));
    Some(Copies { nodes: nodes.collect::<Option<_>>()?, group: copies.group })
}
