//! Counters of what the switch carried and lost, outside of the engine.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use sluice_engine::Drops;

macro_rules! statistics {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// Counters of the exchange with controllers; never reset.
        #[derive(Debug, Default)]
        pub struct Counters { $($(#[$doc])* pub $name: Counter,)* }

        impl Counters {
            /// Returns names and values, in order of declaration.
            pub fn entries(&self) -> Vec<(&'static str, u64)> {
                vec![$((stringify!($name), self.$name.get()),)*]
            }
        }
    };
}

statistics! {
    /// Packets handed to a controller's queue.
    packet_in,
    /// Packets for a controller whose queue was full; dropped.
    packet_in_queue_full,
    /// Packets for the controller while there was no primary; dropped.
    packet_in_no_primary,
    /// Packets for the controller without a complete packet_in header, or without P4Info to parse it; dropped.
    packet_in_malformed,
    /// Packets from controllers, accepted.
    packet_out,
    /// Packets from controllers, refused.
    packet_out_refused,
    /// Digest lists handed to a controller's queue.
    digest_lists,
    /// Digest lists for which there was no primary, or only primaries with full queues; dropped.
    digest_lists_dropped,
    /// Idle timeout notifications handed to a controller's queue.
    idle_notifications,
    /// Idle timeout notifications for which there was no primary, or only primaries with full queues; dropped.
    idle_notifications_dropped,
    /// Updates of Write requests that were made.
    updates,
    /// Updates of Write requests that were refused, or taken back with their batch.
    updates_refused,
    /// Packets that arrived before there was a program; dropped.
    no_program,
}

/// A counter that any thread may increase.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds `n`.
    pub fn add(&self, n: u64) {
        self.0.fetch_add(n, Relaxed);
    }

    /// Returns the current value.
    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// Returns the engine's counts with their names in output.
pub fn engine_entries(drops: &Drops) -> Vec<(&'static str, u64)> {
    let Drops {
        received,
        emitted,
        ingress,
        egress,
        empty_multicast,
        unknown_clone_session,
        too_many_passes,
        digests_lost,
        assertions,
        endless_loops,
    } = *drops;
    vec![
        ("received", received),
        ("emitted", emitted),
        ("dropped_in_ingress", ingress),
        ("dropped_in_egress", egress),
        ("empty_multicast", empty_multicast),
        ("unknown_clone_session", unknown_clone_session),
        ("too_many_passes", too_many_passes),
        ("digests_lost", digests_lost),
        ("assertions", assertions),
        ("endless_loops", endless_loops),
    ]
}

/// Returns the sum of two engines' counts, of which the second engine replaced the first.
pub fn sum(past: &Drops, now: &Drops) -> Drops {
    Drops {
        received: past.received + now.received,
        emitted: past.emitted + now.emitted,
        ingress: past.ingress + now.ingress,
        egress: past.egress + now.egress,
        empty_multicast: past.empty_multicast + now.empty_multicast,
        unknown_clone_session: past.unknown_clone_session + now.unknown_clone_session,
        too_many_passes: past.too_many_passes + now.too_many_passes,
        digests_lost: past.digests_lost + now.digests_lost,
        assertions: past.assertions + now.assertions,
        endless_loops: past.endless_loops + now.endless_loops,
    }
}
