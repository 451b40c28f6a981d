//! Prevents concurrent copies of one array. While the driver copies an array for one reader, it refuses another read of
//! the array (`ALREADY_EXISTS`).

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::OwnedMutexGuard;

/// A lock for each array that was read, by the id of the array's table in BF Runtime.
#[derive(Debug, Default)]
pub struct ArrayLocks(Mutex<HashMap<u32, Arc<tokio::sync::Mutex<()>>>>);

impl ArrayLocks {
    /// Waits until no other read uses these arrays, and reserves the arrays until the returned guards are dropped. All
    /// reads lock arrays in the order of their ids, so that no deadlock occurs. If the driver hangs, the read fails
    /// after its time limit and releases the locks.
    pub async fn lock(&self, tables: &BTreeSet<u32>) -> Vec<OwnedMutexGuard<()>> {
        let mut locks = Vec::with_capacity(tables.len());
        for table in tables {
            let lock = self.0.lock().entry(*table).or_default().clone();
            locks.push(lock.lock_owned().await);
        }
        locks
    }
}
