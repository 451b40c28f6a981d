//! Limits the sizes of action profiles.

use super::{ProfileLimit, ProfileSize, Result};
use crate::engine::Engine;
use crate::error::ControlError;
use crate::profile::ProfileState;
use crate::program::ProfileId;

impl ProfileState {
    /// Returns an error if a change of groups would make the profile exceed its limit on weights or memberships. The
    /// change adds `added` to the groups and removes `removed` from them.
    pub(crate) fn has_room(&self, added: ProfileSize, removed: ProfileSize) -> Result<()> {
        let (size, limit, what) = match self.limit {
            Some(ProfileLimit::Weights(limit)) => {
                (self.size.weights + added.weights - removed.weights, limit, "weights together")
            }
            Some(ProfileLimit::Places(limit)) => {
                (self.size.places + added.places - removed.places, limit, "members of groups")
            }
            Some(ProfileLimit::Members(_)) | None => return Ok(()),
        };
        // A change that increases neither the weights nor the memberships is allowed although the profile already
        // exceeds its limit.
        let grows = added.weights > removed.weights || added.places > removed.places;
        if grows && size > limit {
            return Err(full(limit, what));
        }
        Ok(())
    }

    /// Returns an error if the profile already has as many members as its limit allows.
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
    /// Limits the size of an action profile; `None` removes the limit. If the profile already exceeds the limit, its
    /// members and groups remain.
    pub fn limit_profile(&mut self, profile: ProfileId, limit: Option<ProfileLimit>) {
        self.machine.profiles[profile.index()].limit = limit;
    }

    /// Returns the size of all groups of an action profile.
    pub fn profile_size(&self, profile: ProfileId) -> ProfileSize {
        self.machine.profiles[profile.index()].size
    }
}
