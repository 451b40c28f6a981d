//! How much an action profile holds, and how much it may hold.

use super::{ProfileLimit, ProfileSize, Result};
use crate::engine::Engine;
use crate::error::ControlError;
use crate::profile::ProfileState;
use crate::program::ProfileId;

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
