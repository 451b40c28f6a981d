//! One copy of an array at a time: the driver refuses to read an array that it copies for another reader (`ALREADY_EXISTS`).

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::OwnedMutexGuard;

/// The arrays that are read, by the ids of their tables.
#[derive(Debug, Default)]
pub struct Turns(Mutex<HashMap<u32, Arc<tokio::sync::Mutex<()>>>>);

impl Turns {
    /// Waits until no other read of these arrays is under way, and keeps them for this read until the guards are dropped. Reads take
    /// arrays in the order of their ids, so that two never wait for each other. A driver that hangs frees them when its call times out.
    pub async fn of(&self, tables: &BTreeSet<u32>) -> Vec<OwnedMutexGuard<()>> {
        let mut turns = Vec::with_capacity(tables.len());
        for table in tables {
            let turn = self.0.lock().entry(*table).or_default().clone();
            turns.push(turn.lock_owned().await);
        }
        turns
    }
}
