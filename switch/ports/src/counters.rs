//! What an interface has carried and what it has lost, by cause.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// Written by the data-plane thread, read by anyone; never reset.
        #[derive(Debug, Default)]
        pub struct Counters { $($(#[$doc])* pub $name: Counter,)* }

        /// The counters at one moment.
        #[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
        pub struct CounterSnapshot { $($(#[$doc])* pub $name: u64,)* }

        impl Counters {
            /// Reads every counter.
            pub fn snapshot(&self) -> CounterSnapshot {
                CounterSnapshot { $($name: self.$name.get(),)* }
            }
        }

        impl CounterSnapshot {
            /// Names and values, in order of declaration.
            pub fn entries(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$((stringify!($name), self.$name),)*].into_iter()
            }
        }
    };
}

counters! {
    /// Frames handed to the pipeline.
    rx_packets,
    /// Bytes of those frames, VLAN tags included, frame check sequence not.
    rx_bytes,
    /// Frames the kernel dropped because the switch did not fetch them in time: the switch's own loss.
    rx_kernel_drops,
    /// Frames longer than the receive buffer, dropped.
    rx_oversize,
    /// Frames whose checksum the sender left to an offload engine. They are forwarded as they are; receivers
    /// behind the switch will drop them. Remedy: `ethtool -K IFACE tx off` at the sending end.
    rx_partial_checksum,
    /// Frames the kernel took for sending.
    tx_packets,
    /// Bytes of those frames.
    tx_bytes,
    /// Frames the interface's queueing discipline refused (`ENOBUFS`): the link's loss, not the switch's.
    tx_link_drops,
    /// Frames the kernel had no buffer for (`EAGAIN`): the switch's own loss.
    tx_backlog_drops,
    /// Frames for an interface that is down or gone.
    tx_down_drops,
    /// Frames the kernel refused for another reason, such as a length above the interface's MTU.
    tx_refused,
}

/// A counter with one writer.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds `n`. Only one thread may call this.
    pub fn add(&self, n: u64) {
        self.0.store(self.0.load(Relaxed) + n, Relaxed);
    }

    /// The current value.
    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}
