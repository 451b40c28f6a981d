//! Members and groups of an action profile as they are written and read, and how much a profile holds.

use super::entry::{ActionCall, EntryAction, OneShotMember};

/// A member of an action profile.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Member {
    pub id: u32,
    pub call: ActionCall,
}

/// A member's place in a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupMember {
    /// The member's id.
    pub member: u32,
    /// Share; at least 1.
    pub weight: u32,
    /// While this port is down, the member is left out of the choice.
    pub watch_port: Option<u32>,
}

/// A group of an action profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// Its id.
    pub id: u32,
    /// As written; the choice goes by the order in which members were made, not by this one.
    pub members: Vec<GroupMember>,
    /// Kept and returned; what it counts is the caller's to know.
    pub max_size: u32,
}

/// The most that an action profile may hold; P4Runtime has a way to count for each of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProfileLimit {
    /// Members made by `member_insert`.
    Members(u64),
    /// The weights in all groups together, one-shot ones included.
    Weights(u64),
    /// The members of all groups together, one-shot ones included.
    Places(u64),
}

/// What groups hold, one-shot ones included.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProfileSize {
    /// Weights together.
    pub weights: u64,
    /// Members together.
    pub places: u64,
}

impl ProfileSize {
    fn of(weights: impl Iterator<Item = u32>) -> Self {
        weights.fold(Self::default(), |size, weight| Self {
            weights: size.weights + u64::from(weight),
            places: size.places + 1,
        })
    }

    pub(crate) fn of_one_shot(members: &[OneShotMember]) -> Self {
        Self::of(members.iter().map(|m| m.weight))
    }

    pub(crate) fn of_group(group: &Group) -> Self {
        Self::of(group.members.iter().map(|m| m.weight))
    }

    pub(crate) fn of_action(action: &EntryAction) -> Self {
        match action {
            EntryAction::OneShot(group) => Self::of_one_shot(&group.members),
            EntryAction::Call(_) | EntryAction::Member(_) | EntryAction::Group(_) => Self::default(),
        }
    }

    pub(crate) fn add(&mut self, more: Self) {
        self.weights += more.weights;
        self.places += more.places;
    }

    pub(crate) fn remove(&mut self, less: Self) {
        self.weights -= less.weights;
        self.places -= less.places;
    }
}
