//! Counters that the P4Runtime server keeps in addition to those of the engine: of messages to and from controllers, of
//! updates and of lost packets.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use sluice_engine::Drops;

macro_rules! statistics {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// Counters of the messages to and from controllers, of updates and of lost packets. They are never reset.
        #[derive(Debug, Default)]
        pub struct Counters { $($(#[$doc])* pub $name: Counter,)* }

        impl Counters {
            /// Returns the names and values of all counters, in the order of their declaration.
            pub fn entries(&self) -> Vec<(&'static str, u64)> {
                vec![$((stringify!($name), self.$name.get()),)*]
            }
        }
    };
}

statistics! {
    /// Packets appended to the queue of a controller.
    packet_in,
    /// Packets dropped because the controller's queue was full.
    packet_in_queue_full,
    /// Packets for the controller, dropped because there was no primary.
    packet_in_no_primary,
    /// Packets for the controller, dropped because they had no complete packet_in header or there was no P4Info to
    /// parse it.
    packet_in_malformed,
    /// Packet-outs of controllers, accepted by the switch.
    packet_out,
    /// Packet-outs of controllers, refused by the switch.
    packet_out_refused,
    /// Digest lists appended to the queue of a controller.
    digest_lists,
    /// Digest lists dropped because there was no primary, or only primaries with full queues.
    digest_lists_dropped,
    /// Idle timeout notifications appended to the queue of a controller.
    idle_notifications,
    /// Idle timeout notifications dropped because there was no primary, or only primaries with full queues.
    idle_notifications_dropped,
    /// Applied updates of Write requests.
    updates,
    /// Refused updates of Write requests, and updates that were reverted or not attempted because another update of
    /// their batch was refused.
    updates_refused,
    /// Packets dropped because they arrived while there was no program.
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

/// Returns the counts of the engine, each with its name in the statistics and metrics.
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

/// Returns the sums of `past`, the counts of all earlier engines, and `now`, the counts of their successor.
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
