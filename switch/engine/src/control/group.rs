//! Members and groups of an action profile as they are written and read, and the size of a profile.

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
    /// The member's share of the group's packets; at least 1.
    pub weight: u32,
    /// A port; while it is down, the member is not selected.
    pub watch_port: Option<u32>,
}

/// A group of an action profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// The group's id.
    pub id: u32,
    /// The members in the order in which they were written. The order of selection is that in which the members were
    /// created.
    pub members: Vec<GroupMember>,
    /// Stored and returned; the engine enforces no limit by it.
    pub max_size: u32,
}

/// A limit on the size of an action profile, in one of the ways in which P4Runtime counts it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProfileLimit {
    /// The most members created by `member_insert`.
    Members(u64),
    /// The largest sum of the weights in all groups, one-shot groups included.
    Weights(u64),
    /// The most members in all groups together, one-shot groups included. A member counts once for each group.
    Places(u64),
}

/// The size of an action profile's groups, one-shot groups included.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProfileSize {
    /// The sum of the members' weights in all groups.
    pub weights: u64,
    /// The number of members, where a member counts once for each group.
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

    pub(crate) fn add(&mut self, added: Self) {
        self.weights += added.weights;
        self.places += added.places;
    }

    pub(crate) fn remove(&mut self, removed: Self) {
        self.weights -= removed.weights;
        self.places -= removed.places;
    }
}
