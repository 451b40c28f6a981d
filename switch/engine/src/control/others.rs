//! Lets the control plane read and write multicast groups, clone sessions, digests and value sets.

use std::collections::HashSet;

use super::{CloneSession, Digest, DigestConfig, Replica, Result, bytes, words};
use crate::engine::Engine;
use crate::error::ControlError;
use crate::program::{DigestId, ValueSetId};
use crate::table::key::all_ones;

/// The largest id of a clone session. BMv2 stores the id in 15 bits.
const MAX_SESSION: u32 = 0x7fff;

impl Engine {
    /// Creates or replaces (`Some`), or deletes (`None`) a multicast group.
    ///
    /// # Errors
    /// `InvalidArgument` if the id is not in 1 to 65535 or a replica appears twice; `NotFound` if the group to be
    /// deleted does not exist.
    pub fn multicast_set(&mut self, group: u32, replicas: Option<&[Replica]>) -> Result<()> {
        let groups = &mut self.machine.multicast;
        match replicas {
            None => groups.remove(&group).map(|_| ()).ok_or_else(|| {
                ControlError::NotFound(format!("multicast group {group} does not exist; read those that do"))
            }),
            Some(_) if group == 0 || group > 0xffff => Err(ControlError::InvalidArgument(format!(
                "multicast group {group}: ids end at 65535; give 1 to 65535"
            ))),
            Some(replicas) => {
                distinct(replicas)?;
                groups.insert(group, replicas.to_vec());
                Ok(())
            }
        }
    }
    /// Returns all multicast groups, ordered by id.
    pub fn multicast_groups(&self) -> Vec<(u32, Vec<Replica>)> {
        self.machine.multicast.iter().map(|(&id, replicas)| (id, replicas.clone())).collect()
    }
    /// Creates or replaces (`Some`), or deletes (`None`) a clone session.
    ///
    /// # Errors
    /// `InvalidArgument` if the id is too large or a replica appears twice; `NotFound` if the session to be deleted
    /// does not exist.
    pub fn clone_session_set(&mut self, session: u32, config: Option<&CloneSession>) -> Result<()> {
        let sessions = &mut self.machine.clones;
        match config {
            None => sessions.remove(&session).map(|_| ()).ok_or_else(|| {
                ControlError::NotFound(format!("clone session {session} does not exist; read those that do"))
            }),
            Some(_) if session > MAX_SESSION => Err(ControlError::InvalidArgument(format!(
                "clone session {session}: ids end at {MAX_SESSION}; give 1 to {MAX_SESSION}"
            ))),
            Some(config) => {
                distinct(&config.replicas)?;
                sessions.insert(session, config.clone());
                Ok(())
            }
        }
    }
    /// Returns all clone sessions, ordered by id.
    pub fn clone_sessions(&self) -> Vec<(u32, CloneSession)> {
        self.machine.clones.iter().map(|(&id, config)| (id, config.clone())).collect()
    }
    /// Starts a digest or replaces its configuration (`Some`), or stops the digest and discards its queued messages
    /// (`None`).
    pub fn digest_configure(&mut self, digest: DigestId, config: Option<DigestConfig>) {
        match config {
            Some(config) => {
                self.machine.digest_configs.insert(digest.0, config);
            }
            None => {
                self.machine.digest_configs.remove(&digest.0);
                self.machine.digests.retain(|d| d.digest != digest);
            }
        }
    }
    /// Returns a digest's configuration, or `None` if the digest is stopped.
    pub fn digest_config(&self, digest: DigestId) -> Option<DigestConfig> {
        self.machine.digest_configs.get(&digest.0).copied()
    }
    /// Returns the queued digest messages, oldest first, and empties the queue.
    pub fn take_digests(&mut self) -> Vec<Digest> {
        self.machine.digests.drain(..).collect()
    }
    /// Replaces the values of a parser value set by the given pairs of value and mask. An empty mask means a mask of
    /// ones.
    ///
    /// # Errors
    /// `InvalidArgument` if a value or mask is too wide; `ResourceExhausted` if there are more values than the program
    /// declares.
    pub fn value_set_write(&mut self, set: ValueSetId, values: &[(Vec<u8>, Vec<u8>)]) -> Result<()> {
        let info = self.program.value_set_info(set);
        if info.size > 0 && values.len() as u64 > info.size {
            return Err(ControlError::ResourceExhausted(format!(
                "value set '{}' holds {} values; give fewer",
                info.name, info.size
            )));
        }
        let mut stored = Vec::new();
        for (value, mask) in values {
            let value = bytes(&words(value, info.width, "value")?, info.width);
            let mask = if mask.is_empty() {
                bytes(&all_ones(info.width), info.width)
            } else {
                bytes(&words(mask, info.width, "mask")?, info.width)
            };
            stored.push((value, mask));
        }
        self.machine.value_sets[set.index()] = stored;
        Ok(())
    }
    /// Returns the pairs of value and mask of a parser value set, each as `ceil(width / 8)` bytes.
    pub fn value_set_read(&self, set: ValueSetId) -> Vec<(Vec<u8>, Vec<u8>)> {
        self.machine.value_sets[set.index()].clone()
    }
}

fn distinct(replicas: &[Replica]) -> Result<()> {
    let mut distinct_replicas = HashSet::new();
    match replicas.iter().find(|r| !distinct_replicas.insert(**r)) {
        Some(r) => Err(ControlError::InvalidArgument(format!(
            "port {}, instance {} is given twice; give it once",
            r.port, r.instance
        ))),
        None => Ok(()),
    }
}
