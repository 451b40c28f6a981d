//! Sizes of action profiles, and limits on them.

use super::{ProfileLimit, ProfileSize, Result};
use crate::engine::Engine;
use crate::error::ControlError;
use crate::profile::ProfileState;
use crate::program::ProfileId;

impl ProfileState {
    /// Refuses a change that adds `added` to the groups and removes `removed` if the profile would then exceed its
    /// limit.
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
        // A change that makes groups smaller is allowed even while the profile exceeds its limit.
        let grows = added.weights > removed.weights || added.places > removed.places;
        if grows && size > limit {
            return Err(full(limit, what));
        }
        Ok(())
    }

    /// Refuses one more member if the profile has as many as its limit allows.
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
    /// Limits the size of an action profile. Members and groups that exceed the limit already stay.
    pub fn limit_profile(&mut self, profile: ProfileId, limit: Option<ProfileLimit>) {
        self.machine.profiles[profile.index()].limit = limit;
    }

    /// The size of an action profile's groups.
    pub fn profile_size(&self, profile: ProfileId) -> ProfileSize {
        self.machine.profiles[profile.index()].size
    }
}
