//! Packet input and output on Linux network interfaces.
//!
//! Frames are received and sent in batches through `AF_PACKET` raw sockets. The kernel delivers received frames through
//! a shared ring (or by `recvmmsg`). Frames are sent by `sendmmsg` through the interface's queueing discipline, so that
//! a link shaped by `tc` drops what a real link would drop. This crate does not interpret frames; the programs that use
//! the crate do.
//!
//! A comment next to each use of `unsafe` states why the use is sound.

pub mod backlog;
mod calls;
pub mod counters;
pub mod interface;
pub mod links;
pub mod pcap;
pub mod pcap_reader;
pub mod poller;
mod ring;
pub mod rx;
mod sys;
pub mod tx;
mod vlan;

pub use backlog::{Backlogs, Waiting};
pub use counters::{CounterSnapshot, Counters};
pub use interface::{Input, Interface, Loss, OpenError, Options, Received};
pub use links::LinkWatch;
pub use poller::{Event, Poller, Pulse, Waker};
pub use rx::{BATCH, MAX_FRAME, RxBatch};
pub use tx::TxBatch;
