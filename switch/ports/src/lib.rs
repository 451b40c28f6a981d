//! Packet input and output on Linux network interfaces.
//!
//! Frames come and go through `AF_PACKET` raw sockets, in batches (`recvmmsg`, `sendmmsg`) and through the
//! interface's queueing discipline, so that a link shaped by `tc` drops what a real link would drop. Nothing
//! here knows what the frames mean: the engine does, and the binary joins the two.
//!
//! All `unsafe` code of the workspace is in [`sys`] and [`batch`], each use next to the reason why it is sound.

pub mod batch;
pub mod counters;
pub mod interface;
pub mod pcap;
pub mod pcap_reader;
pub mod poller;
mod sys;

pub use batch::{BATCH, MAX_FRAME, RxBatch, TxBatch};
pub use counters::{CounterSnapshot, Counters};
pub use interface::{Interface, OpenError, Received};
pub use poller::{Event, Poller, Waker};
