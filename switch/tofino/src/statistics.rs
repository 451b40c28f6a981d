//! What the gateway counts beside what every P4Runtime server does.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use sluice_p4runtime::statistics::Counter;

use crate::shadow::{Place, Shadow};

/// Calls of one kind, and the time that they have taken.
#[derive(Debug, Default)]
pub struct Calls {
    count: AtomicU64,
    nanoseconds: AtomicU64,
}

/// A call that is under way: it is counted when this is dropped.
pub struct UnderWay<'c> {
    calls: &'c Calls,
    start: Instant,
}

impl Calls {
    /// Begins a call.
    pub fn begin(&self) -> UnderWay<'_> {
        UnderWay { calls: self, start: Instant::now() }
    }

    /// How many have ended, and how long they took in all.
    pub fn ended(&self) -> (u64, Duration) {
        (self.count.load(Relaxed), Duration::from_nanos(self.nanoseconds.load(Relaxed)))
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        let nanoseconds = u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.calls.nanoseconds.fetch_add(nanoseconds, Relaxed);
        self.calls.count.fetch_add(1, Relaxed);
    }
}

/// Calls of the driver.
#[derive(Debug, Default)]
pub struct DriverCalls {
    /// Writes.
    pub write: Calls,
    /// Reads.
    pub read: Calls,
}

/// Requests of one kind, by what became of them.
#[derive(Debug, Default)]
pub struct Requests {
    /// Answered; updates or patterns among it may be refused.
    pub answered: Counter,
    /// Refused as a whole.
    pub refused: Counter,
}

impl Requests {
    /// Counts a request, and hands its outcome on.
    pub fn count<T, E>(&self, outcome: Result<T, E>) -> Result<T, E> {
        if outcome.is_ok() { &self.answered } else { &self.refused }.add(1);
        outcome
    }
}

/// Counters of the gateway; never reset.
#[derive(Debug, Default)]
pub struct Statistics {
    /// Write requests.
    pub write: Requests,
    /// Read requests.
    pub read: Requests,
    /// Programs that were pushed.
    pub set_pipeline: Requests,
    /// Times that the driver has answered anew. Each after the first follows a restart, or a connection that broke.
    pub connections: Counter,
    /// Messages in the driver's digests.
    pub digest_messages: Counter,
}

/// How much the shadow keeps, by kind.
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
