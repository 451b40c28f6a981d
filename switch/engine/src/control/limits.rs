//! How much an action profile holds, and how much it may hold.

use super::{EntryAction, Group, OneShotMember, Result};
use crate::engine::Engine;
use crate::error::ControlError;
use crate::profile::{Bound, ProfileState};
use crate::program::ProfileId;

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

    fn of_one_shot(members: &[OneShotMember]) -> Self {
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

    pub(crate) fn of_bound(bound: &Bound) -> Self {
        match bound {
            Bound::OneShot(group) => Self::of_one_shot(&group.written.members),
            Bound::Call(_) | Bound::Member(_) | Bound::Group(_) => Self::default(),
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

impl ProfileState {
    /// Refuses what would not fit when `more` has come and `less` has gone.
    pub(crate) fn has_room(&self, more: ProfileSize, less: ProfileSize) -> Result<()> {
        let (found, limit, what) = match self.limit {
            Some(ProfileLimit::Weights(limit)) => {
                (self.size.weights + more.weights - less.weights, limit, "weights together")
            }
            Some(ProfileLimit::Places(limit)) => {
                (self.size.places + more.places - less.places, limit, "members of groups")
            }
            Some(ProfileLimit::Members(_)) | None => return Ok(()),
        };
        // What makes groups smaller is welcome even while they are too large.
        let grows = more.weights > less.weights || more.places > less.places;
        if grows && found > limit {
            return Err(full(limit, what));
        }
        Ok(())
    }

    /// Refuses one more member when there are as many as there may be.
    pub(crate) fn has_room_for_member(&self) -> Result<()> {
        match self.limit {
            Some(ProfileLimit::Members(limit)) if self.member_at.len() as u64 >= limit => Err(full(limit, "members")),
            _ => Ok(()),
        }
    }
}

fn full(limit: u64, what: &str) -> ControlError {
    ControlError::ResourceExhausted(format!(
        "the action profile holds {limit} {what}; make room, or declare a larger size"
    ))
}

impl Engine {
    /// Sets what an action profile may hold; what it holds already stays.
    pub fn limit_profile(&mut self, profile: ProfileId, limit: Option<ProfileLimit>) {
        self.machine.profiles[profile.index()].limit = limit;
    }

    /// What the groups of an action profile hold.
    pub fn profile_size(&self, profile: ProfileId) -> ProfileSize {
        self.machine.profiles[profile.index()].size
    }
}
