//! The shadow: what clients wrote, in a form from which the gateway can answer reads. The driver itself returns only a
//! part of these data: it lacks, for example, metadata, one-shot groups (action sets), weights, parameters that the
//! compiled program does not use, and rates before rounding.
//!
//! The shadow is a map from places to values. A place ([`Place`]) identifies an object, for example a table entry by
//! its key. A batch is a list of changes, each with a place and its old and new value. The list suffices to revert the
//! batch, and is written to the [`journal`](crate::journal).

use std::collections::BTreeMap;
use std::ops::Bound;

use sluice_engine::{DigestConfig, DigestId, MeterId, ProfileId, TableId, ValueSetId};
use sluice_p4runtime::proto::p4::v1 as p4;

use crate::proto::{TableData, TableKey};

/// The key of a value in the shadow.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// A table entry, by its encoded key in the driver.
    Entry(TableId, Vec<u8>),
    /// A default action that a client has set.
    Default(TableId),
    /// A member, by its id in P4Runtime.
    Member(ProfileId, u32),
    /// A group, by its id in P4Runtime.
    Group(ProfileId, u32),
    /// A member that one-shot groups share, by its encoded action.
    Shared(ProfileId, Vec<u8>),
    /// The configuration of a digest that a client has enabled.
    Digest(DigestId),
    /// The configuration of one cell of a meter, by the index of the cell.
    Meter(MeterId, u64),
    /// The members of a value set.
    ValueSet(ValueSetId),
    /// A multicast group, by its id in P4Runtime.
    Multicast(u32),
    /// A clone session, by its id in P4Runtime.
    Clone(u32),
}

/// An entry or a default action.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The entry in the form in which clients read it.
    pub wire: p4::TableEntry,
    /// The entry's key in the driver.
    pub key: TableKey,
    /// The entry's data in the driver.
    pub data: TableData,
    /// The group that the gateway has created for this entry, because the client wrote an action set.
    pub own: Option<OwnGroup>,
}

/// A group that the gateway has created for an action set.
#[derive(Debug, Clone, PartialEq)]
pub struct OwnGroup {
    /// The id of the group in the driver.
    pub id: u32,
    /// The places of the group's members in the shadow, without repetitions.
    pub members: Vec<Place>,
    /// The data of the group in the driver.
    pub data: TableData,
}

/// The objects of the driver that make the copies of a packet.
#[derive(Debug, Clone, PartialEq)]
pub struct Copies {
    /// The ids of the nodes in the driver, with the data of each node.
    pub nodes: Vec<(u32, TableData)>,
    /// The id of the group of these nodes in the driver.
    pub group: u32,
}

/// A value in the shadow.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// The value at [`Place::Entry`] and [`Place::Default`].
    Entry(Box<Entry>),
    /// The value at [`Place::Member`], with the member's data in the driver.
    Member(p4::ActionProfileMember, TableData),
    /// The value at [`Place::Group`], with the group's data in the driver.
    Group(p4::ActionProfileGroup, TableData),
    /// The value at [`Place::Shared`]: the id and data of the member in the driver, and the number of groups that use
    /// it.
    Shared(u32, TableData, usize),
    /// The value at [`Place::Digest`].
    Digest(DigestConfig),
    /// The value at [`Place::Meter`].
    Meter(p4::MeterConfig),
    /// The value at [`Place::ValueSet`], with the key of each member in the driver.
    ValueSet(p4::ValueSetEntry, Vec<TableKey>),
    /// The value at [`Place::Multicast`].
    Multicast(p4::MulticastGroupEntry, Copies),
    /// The value at [`Place::Clone`], with the session's data in the driver, and the objects for the session's copies
    /// if the session needs a group.
    Clone(p4::CloneSessionEntry, TableData, Option<Copies>),
}

/// A change of one value in the shadow.
#[derive(Debug, Clone)]
pub struct Change {
    /// The place of the value.
    pub place: Place,
    old: Option<Value>,
    /// The new value.
    pub new: Option<Value>,
}

/// All values that clients wrote, indexed by place.
#[derive(Debug, Default)]
pub struct Shadow {
    values: BTreeMap<Place, Value>,
    /// Number of ids that the gateway has assigned: to the groups and members of action sets, and to multicast nodes.
    ids: u32,
}

/// The first driver id of the groups, members and multicast nodes that the gateway creates. The ids that clients choose
/// for groups and members are lower.
pub const FIRST_OWN_ID: u32 = 0x4000_0000;

impl Shadow {
    /// Returns the value at a place.
    pub fn get(&self, place: &Place) -> Option<&Value> {
        self.values.get(place)
    }

    /// Returns the entry at a place.
    pub fn entry(&self, place: &Place) -> Option<&Entry> {
        match self.get(place) {
            Some(Value::Entry(entry)) => Some(entry),
            _ => None,
        }
    }

    /// Stores the value `new` at a place, or removes the place's value if `new` is `None`. Returns the change.
    pub fn put(&mut self, place: Place, new: Option<Value>) -> Change {
        let old = match new.clone() {
            Some(value) => self.values.insert(place.clone(), value),
            None => self.values.remove(&place),
        };
        Change { place, old, new }
    }

    /// Reverts a change. All later changes must have been reverted before.
    pub fn undo(&mut self, change: &Change) {
        self.put(change.place.clone(), change.old.clone());
    }

    /// Makes a reverted change again.
    pub fn redo(&mut self, change: &Change) {
        self.put(change.place.clone(), change.new.clone());
    }

    /// Returns a new driver id for a member, group or multicast node that the gateway creates.
    pub fn new_id(&mut self) -> u32 {
        self.ids = (self.ids + 1) % (u32::MAX - FIRST_OWN_ID);
        FIRST_OWN_ID + self.ids
    }

    /// Returns the entries of a table, in the order of their keys.
    pub fn entries(&self, table: TableId) -> impl Iterator<Item = &Entry> {
        let places = self.values.range((Bound::Included(Place::Entry(table, Vec::new())), Bound::Unbounded));
        places.map_while(move |(place, value)| match (place, value) {
            (Place::Entry(owner, _), Value::Entry(entry)) if *owner == table => Some(&**entry),
            _ => None,
        })
    }

    /// Returns the values after a place, in the order of places; all values for `None`.
    pub fn after(&self, place: Option<&Place>) -> impl Iterator<Item = (&Place, &Value)> {
        let start = place.map_or(Bound::Unbounded, Bound::Excluded);
        self.values.range((start, Bound::Unbounded))
    }

    /// Returns the number of ids that the gateway has assigned: to the groups and members of action sets, and to
    /// multicast nodes.
    pub fn ids(&self) -> u32 {
        self.ids
    }

    /// Continues the sequence of ids as if `ids` ids were already assigned, so that no id is assigned twice.
    pub fn resume_ids_after(&mut self, ids: u32) {
        self.ids = ids;
    }

    /// Returns all values with their places.
    pub fn iter(&self) -> impl Iterator<Item = (&Place, &Value)> {
        self.values.iter()
    }

    /// Removes all values, but continues the sequence of ids, so that no id is assigned twice.
    pub fn clear(&mut self) {
        self.values.clear();
    }
}
