//! Members and groups of an action profile in the form in which the control plane writes and reads them, and the size
//! of a profile.

use super::entry::{ActionCall, EntryAction, OneShotMember};

/// A member of an action profile: an action call with an id.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Member {
    pub id: u32,
    pub call: ActionCall,
}

/// The membership of a member in a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupMember {
    /// The member's id.
    pub member: u32,
    /// The member's relative share of the group's packets; at least 1.
    pub weight: u32,
    /// The port that the member depends on, if any. While this port is down, the member is not selected.
    pub watch_port: Option<u32>,
}

/// A group of an action profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// The group's id.
    pub id: u32,
    /// The members in the order in which the client wrote them. When a packet's hash selects a member, the members are
    /// ordered by their handles instead, which the engine assigns when members are created.
    pub members: Vec<GroupMember>,
    /// The group's declared maximum size. The engine only stores and returns this value and enforces no limit by it.
    pub max_size: u32,
}

/// A limit on the size of an action profile, in one of the units in which P4Runtime counts the size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProfileLimit {
    /// The maximum number of members that exist at the same time, not counting the members of one-shot groups.
    Members(u64),
    /// The maximum sum of the weights in all groups, including one-shot groups.
    Weights(u64),
    /// The maximum number of memberships in all groups, including one-shot groups. A member counts once for each group
    /// that contains it.
    Places(u64),
}

/// The size of one or more groups of an action profile in both units that a [`ProfileLimit`] can limit. The size of
/// the complete profile includes its one-shot groups.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProfileSize {
    /// The sum of the members' weights.
    pub weights: u64,
    /// The number of memberships: a member counts once for each group that contains it.
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
