//! Counts, for each interface, the frames received, sent and lost; losses are counted by cause.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// The counters of an interface. The data-plane thread writes them, any thread may read them, and they are
        /// never reset.
        #[derive(Debug, Default)]
        pub struct Counters { $($(#[$doc])* pub $name: Counter,)* }

        /// The values of the counters at one moment.
        #[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
        pub struct CounterSnapshot { $($(#[$doc])* pub $name: u64,)* }

        impl Counters {
            /// Reads every counter.
            pub fn snapshot(&self) -> CounterSnapshot {
                CounterSnapshot { $($name: self.$name.get(),)* }
            }
        }

        impl CounterSnapshot {
            /// Returns names and values in the order in which the counters are declared.
            pub fn entries(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$((stringify!($name), self.$name),)*].into_iter()
            }
        }
    };
}

counters! {
    /// Frames passed to the pipeline.
    rx_packets,
    /// Bytes of the frames passed to the pipeline, with VLAN tags, without the frame check sequence.
    rx_bytes,
    /// Frames that the kernel dropped because the switch did not receive them in time. The switch is the cause of this
    /// loss.
    rx_kernel_drops,
    /// Frames longer than the receive buffer, which are dropped.
    rx_oversize,
    /// Frames whose checksum the sender left to an offload engine. The switch forwards them unchanged, and receivers
    /// drop them. Remedy: `ethtool -K IFACE tx off` at the sender.
    rx_partial_checksum,
    /// Frames that the kernel accepted for sending.
    tx_packets,
    /// Bytes of the frames that the kernel accepted for sending.
    tx_bytes,
    /// Frames that the interface's queueing discipline refused (`ENOBUFS`). The link is the cause of this loss.
    tx_link_drops,
    /// Frames for which the kernel had no buffer (`EAGAIN`). The switch is the cause of this loss.
    tx_backlog_drops,
    /// Frames that could not be sent because the interface is down or does not exist.
    tx_down_drops,
    /// Frames that the kernel refused for another reason, such as a length above the interface's MTU.
    tx_refused,
}

/// A counter that one thread writes and any thread may read.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds `n`. Only one thread may call this function, because the addition is not atomic.
    pub fn add(&self, n: u64) {
        self.0.store(self.0.load(Relaxed) + n, Relaxed);
    }

    /// The current value.
    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}
