//! What clients wrote, as far as the driver does not give it back: metadata, one-shot groups, weights, parameters that the
//! compiled program does not use, rates before they were rounded.
//!
//! It is one map from places to values, so that a batch is a list of places with what was there before: that list takes a batch
//! back, and is written to the [`journal`](crate::journal).

use std::collections::BTreeMap;
use std::ops::Bound;

use sluice_engine::{DigestConfig, DigestId, MeterId, ProfileId, TableId, ValueSetId};
use sluice_p4runtime::proto::p4::v1 as p4;

use crate::proto::{TableData, TableKey};

/// Where a value is kept.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// An entry, by its encoded key.
    Entry(TableId, Vec<u8>),
    /// A default action that a client has set.
    Default(TableId),
    /// A member, by P4Runtime's id.
    Member(ProfileId, u32),
    /// A group, by P4Runtime's id.
    Group(ProfileId, u32),
    /// A member that one-shot groups share, by its encoded action.
    Shared(ProfileId, Vec<u8>),
    /// A digest that is reported.
    Digest(DigestId),
    /// A meter's cell that is configured.
    Meter(MeterId, u64),
    /// A value set that has members.
    ValueSet(ValueSetId),
    /// A multicast group, by P4Runtime's id.
    Multicast(u32),
    /// A clone session, by P4Runtime's id.
    Clone(u32),
}

/// An entry, or a default action.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// As a client reads it.
    pub wire: p4::TableEntry,
    /// As the driver has it.
    pub key: TableKey,
    /// As the driver has it.
    pub data: TableData,
    /// The group that is this entry's own, because the client wrote an action set.
    pub own: Option<OwnGroup>,
}

/// A group made of an action set.
#[derive(Debug, Clone, PartialEq)]
pub struct OwnGroup {
    /// The driver's id.
    pub id: u32,
    /// The places of its members in the shadow, each once.
    pub members: Vec<Place>,
    /// As the driver has it.
    pub data: TableData,
}

/// Copies that the traffic manager makes.
#[derive(Debug, Clone, PartialEq)]
pub struct Copies {
    /// The driver's nodes, with their data.
    pub nodes: Vec<(u32, TableData)>,
    /// The driver's group of these nodes.
    pub group: u32,
}

/// What is kept.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// At [`Place::Entry`] and [`Place::Default`].
    Entry(Box<Entry>),
    /// At [`Place::Member`], with the driver's data.
    Member(p4::ActionProfileMember, TableData),
    /// At [`Place::Group`], with the driver's data.
    Group(p4::ActionProfileGroup, TableData),
    /// At [`Place::Shared`]: the driver's id, its data, and how many groups have it.
    Shared(u32, TableData, usize),
    /// At [`Place::Digest`].
    Digest(DigestConfig),
    /// At [`Place::Meter`].
    Meter(p4::MeterConfig),
    /// At [`Place::ValueSet`], with the driver's key of each member.
    ValueSet(p4::ValueSetEntry, Vec<TableKey>),
    /// At [`Place::Multicast`].
    Multicast(p4::MulticastGroupEntry, Copies),
    /// At [`Place::Clone`], with the driver's data; the copies of a session that has more than one.
    Clone(p4::CloneSessionEntry, TableData, Option<Copies>),
}

/// A place, what was there, and what is there now.
#[derive(Debug, Clone)]
pub struct Change {
    /// Where.
    pub place: Place,
    old: Option<Value>,
    /// Now.
    pub new: Option<Value>,
}

/// Everything that clients wrote.
#[derive(Debug, Default)]
pub struct Shadow {
    values: BTreeMap<Place, Value>,
    /// Ids given to groups and members of one-shot groups.
    ids: u32,
}

/// The driver's ids of groups and members that the gateway makes begin here; clients' own are below.
pub const FIRST_OWN_ID: u32 = 0x4000_0000;

impl Shadow {
    /// What is kept at a place.
    pub fn get(&self, place: &Place) -> Option<&Value> {
        self.values.get(place)
    }

    /// The entry at a place.
    pub fn entry(&self, place: &Place) -> Option<&Entry> {
        match self.get(place) {
            Some(Value::Entry(entry)) => Some(entry),
            _ => None,
        }
    }

    /// Keeps a value, or nothing; the result takes it back.
    pub fn put(&mut self, place: Place, new: Option<Value>) -> Change {
        let old = match new.clone() {
            Some(value) => self.values.insert(place.clone(), value),
            None => self.values.remove(&place),
        };
        Change { place, old, new }
    }

    /// Takes a change back; later ones have been taken back before.
    pub fn take_back(&mut self, change: &Change) {
        self.put(change.place.clone(), change.old.clone());
    }

    /// Makes a change that has been taken back.
    pub fn make_again(&mut self, change: &Change) {
        self.put(change.place.clone(), change.new.clone());
    }

    /// A new id for a member or group of the gateway's own.
    pub fn new_id(&mut self) -> u32 {
        self.ids = (self.ids + 1) % (u32::MAX - FIRST_OWN_ID);
        FIRST_OWN_ID + self.ids
    }

    /// The entries of a table, in the order of their keys.
    pub fn entries(&self, table: TableId) -> impl Iterator<Item = &Entry> {
        let places = self.values.range((Bound::Included(Place::Entry(table, Vec::new())), Bound::Unbounded));
        places.map_while(move |(place, value)| match (place, value) {
            (Place::Entry(of, _), Value::Entry(entry)) if *of == table => Some(&**entry),
            _ => None,
        })
    }

    /// What is kept behind a place, in the order of places; `None` is in front of all.
    pub fn after(&self, place: Option<&Place>) -> impl Iterator<Item = (&Place, &Value)> {
        let start = place.map_or(Bound::Unbounded, Bound::Excluded);
        self.values.range((start, Bound::Unbounded))
    }

    /// How many ids have been given to groups and members of one-shot groups.
    pub fn ids(&self) -> u32 {
        self.ids
    }

    /// Gives no id again of so many.
    pub fn give_ids_after(&mut self, ids: u32) {
        self.ids = ids;
    }

    /// Everything that is kept.
    pub fn iter(&self) -> impl Iterator<Item = (&Place, &Value)> {
        self.values.iter()
    }

    /// Forgets everything; ids are not given twice.
    pub fn clear(&mut self) {
        self.values.clear();
    }
}
