//! The counters of the gateway, in addition to those of every P4Runtime server.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use sluice_p4runtime::statistics::Counter;

use crate::shadow::{Place, Shadow};

/// The number of calls of one kind, and the sum of their durations.
#[derive(Debug, Default)]
pub struct Calls {
    count: AtomicU64,
    nanoseconds: AtomicU64,
}

/// A call in progress. The call is counted when this value is dropped.
pub struct CallTimer<'c> {
    calls: &'c Calls,
    start: Instant,
}

impl Calls {
    /// Begins to measure a call.
    pub fn begin(&self) -> CallTimer<'_> {
        CallTimer { calls: self, start: Instant::now() }
    }

    /// Returns the number of completed calls, and the sum of their durations.
    pub fn ended(&self) -> (u64, Duration) {
        (self.count.load(Relaxed), Duration::from_nanos(self.nanoseconds.load(Relaxed)))
    }
}

impl Drop for CallTimer<'_> {
    fn drop(&mut self) {
        let nanoseconds = u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.calls.nanoseconds.fetch_add(nanoseconds, Relaxed);
        self.calls.count.fetch_add(1, Relaxed);
    }
}

/// Counts and durations of the read and write calls to the driver.
#[derive(Debug, Default)]
pub struct DriverCalls {
    /// The write calls.
    pub write: Calls,
    /// The read calls.
    pub read: Calls,
}

/// Requests of one kind, by their outcome.
#[derive(Debug, Default)]
pub struct Requests {
    /// Number of requests that were processed. Single updates or patterns of such a request may have been refused.
    pub answered: Counter,
    /// Number of requests that were refused as a whole.
    pub refused: Counter,
}

impl Requests {
    /// Counts a request as answered or refused, and returns its outcome unchanged.
    pub fn count<T, E>(&self, outcome: Result<T, E>) -> Result<T, E> {
        if outcome.is_ok() { &self.answered } else { &self.refused }.add(1);
        outcome
    }
}

/// The counters of the gateway, which are never reset.
#[derive(Debug, Default)]
pub struct Statistics {
    /// The write requests of controllers.
    pub write: Requests,
    /// The read requests of controllers.
    pub read: Requests,
    /// The requests by which controllers push or verify programs.
    pub set_pipeline: Requests,
    /// Number of connections to the driver. Each connection after the first follows a restart of the driver or a loss
    /// of the previous connection.
    pub connections: Counter,
    /// Number of messages in the digests that the driver sent.
    pub digest_messages: Counter,
}

/// Returns the number of values in the shadow (the gateway's copy of what clients wrote), by kind.
pub fn sizes(shadow: &Shadow) -> BTreeMap<&'static str, u64> {
    let mut sizes = BTreeMap::new();
    for (place, _) in shadow.iter() {
        let kind = match place {
            Place::Entry(..) => "entries",
            Place::Default(_) => "default_actions",
            Place::Member(..) => "members",
            Place::Group(..) => "groups",
            Place::Shared(..) => "shared_members",
            Place::Digest(_) => "digests",
            Place::Meter(..) => "meters",
            Place::ValueSet(_) => "value_sets",
            Place::Multicast(_) => "multicast_groups",
            Place::Clone(_) => "clone_sessions",
        };
        *sizes.entry(kind).or_default() += 1;
    }
    sizes
}
