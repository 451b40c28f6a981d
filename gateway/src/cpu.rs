//! The network interface for packets to and from the controllers, because BF Runtime cannot transport packets. Frames
//! on the interface begin with the packet-in or packet-out header of the program.

use std::collections::VecDeque;
use std::io;
use std::sync::OnceLock;
use std::time::Duration;

use parking_lot::Mutex;
use sluice_ports::{Event, Interface, Poller, RxBatch, TxBatch};
use thiserror::Error;

/// Limit on the number of queued frames from controllers. Further frames are refused.
const WAITING: usize = 1024;
/// Time between two attempts to open a lost interface again.
const RETRY: Duration = Duration::from_millis(500);

/// The error when the CPU interface cannot be opened or polled.
#[derive(Debug, Error)]
#[error("CPU interface {name}: {cause}")]
pub struct CpuError {
    name: String,
    cause: String,
}

/// The queue of frames from controllers to the CPU interface.
#[derive(Default)]
pub struct Port {
    waiting: Mutex<VecDeque<Vec<u8>>>,
    wake: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

impl Port {
    /// Queues a frame. Returns false when the queue is full.
    pub fn push(&self, frame: Vec<u8>) -> bool {
        let mut waiting = self.waiting.lock();
        if waiting.len() >= WAITING {
            return false;
        }
        waiting.push_back(frame);
        drop(waiting);
        if let Some(wake) = self.wake.get() {
            wake();
        }
        true
    }

    /// Removes and returns all queued frames, oldest first.
    pub fn take(&self) -> Vec<Vec<u8>> {
        self.waiting.lock().drain(..).collect()
    }

    /// Sends queued frames to the interface `name`, and calls `received` with each frame that arrives there. If the
    /// interface is lost, the method tries every `RETRY` to open it again. Returns only after an error.
    ///
    /// # Errors
    /// Fails when the interface cannot be opened at the start, or cannot be polled.
    pub fn run(&self, name: &str, mut received: impl FnMut(&[u8])) -> Result<(), CpuError> {
        let failed = |cause: &dyn std::fmt::Display| CpuError { name: name.to_owned(), cause: cause.to_string() };
        let mut interface = Interface::open(name).map_err(|error| failed(&error))?;
        let poller = Poller::new().map_err(|error| failed(&error))?;
        let waker = poller.waker();
        let _ = self.wake.set(Box::new(move || waker.wake()));
        watch(&poller, &interface).map_err(|error| failed(&error))?;
        let (mut events, mut input, mut output) = (Vec::<Event>::new(), RxBatch::default(), TxBatch::default());
        loop {
            let patience = (!interface.is_open()).then_some(RETRY);
            poller.wait(&mut events, patience).map_err(|error| failed(&error))?;
            if !interface.is_open() && interface.reopen().is_ok() {
                watch(&poller, &interface).map_err(|error| failed(&error))?;
            }
            self.take().iter().for_each(|frame| output.push(frame, &[]));
            interface.send(&mut output);
            interface.receive(&mut input);
            input.frames().for_each(&mut received);
        }
    }
}

fn watch(poller: &Poller, interface: &Interface) -> io::Result<()> {
    interface.raw_fd().map_or(Ok(()), |socket| poller.add(socket, 0))
}
