//! Prevents concurrent copies of one array: the driver refuses to read an array that it is copying for another reader
//! (`ALREADY_EXISTS`).

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::OwnedMutexGuard;

/// A lock for each array that was read, by the id of its table.
#[derive(Debug, Default)]
pub struct ArrayLocks(Mutex<HashMap<u32, Arc<tokio::sync::Mutex<()>>>>);

impl ArrayLocks {
    /// Waits until no other read uses these arrays, and reserves them until the guards are dropped. All reads lock
    /// arrays in the order of their ids, so that no two wait for each other. If the driver hangs, the locks are
    /// released when the read's call times out.
    pub async fn lock(&self, tables: &BTreeSet<u32>) -> Vec<OwnedMutexGuard<()>> {
        let mut locks = Vec::with_capacity(tables.len());
        for table in tables {
            let lock = self.0.lock().entry(*table).or_default().clone();
            locks.push(lock.lock_owned().await);
        }
        locks
    }
}
