//! What is behind a port: a network interface, or files.

use std::os::fd::RawFd;
use std::sync::Arc;

use sluice_ports::{Counters, Interface, Loss, OpenError, Poller, Received, TxBatch};

use crate::files::Output;

/// Where a port's packets go, and where they come from.
pub enum Link {
    /// A network interface.
    Interface(Interface),
    /// A capture that is written; what comes in is read elsewhere, for all ports together.
    Files(Output),
}

impl Link {
    /// The interface's name.
    pub fn name(&self) -> &str {
        match self {
            Self::Interface(interface) => interface.name(),
            Self::Files(output) => output.interface(),
        }
    }

    /// The port's counters.
    pub fn counters(&self) -> &Arc<Counters> {
        match self {
            Self::Interface(interface) => interface.counters(),
            Self::Files(output) => output.counters(),
        }
    }

    /// The socket to wait on, if there is one.
    pub fn raw_fd(&self) -> Option<RawFd> {
        match self {
            Self::Interface(interface) => interface.raw_fd(),
            Self::Files(_) => None,
        }
    }

    /// The interface's number, while there is one.
    pub fn index(&self) -> Option<i32> {
        match self {
            Self::Interface(interface) => interface.index(),
            Self::Files(_) => None,
        }
    }

    /// Whether it is there.
    pub fn is_open(&self) -> bool {
        match self {
            Self::Interface(interface) => interface.is_open(),
            Self::Files(_) => true,
        }
    }

    /// Whether it is there, but down: the kernel then does not report that it goes away.
    pub fn was_down(&self) -> bool {
        match self {
            Self::Interface(interface) => interface.was_down(),
            Self::Files(_) => false,
        }
    }

    /// Whether one that was there still is.
    pub fn is_still_there(&mut self) -> bool {
        match self {
            Self::Interface(interface) => interface.check() != Received::Lost,
            Self::Files(_) => true,
        }
    }

    /// Whether frames may wait to be received.
    pub fn may_have_frames(&self) -> bool {
        match self {
            Self::Interface(interface) => interface.may_have_frames(),
            Self::Files(_) => false,
        }
    }

    /// Tries to open a lost interface again, for `poller` to wait on under the name of `place`.
    ///
    /// # Errors
    /// While it is not there, or the kernel refuses what it takes; it stays lost then.
    pub fn reopen(&mut self, poller: &Poller, place: usize) -> Result<(), OpenError> {
        let Self::Interface(interface) = self else { return Ok(()) };
        interface.reopen()?;
        let Some(socket) = interface.raw_fd() else { return Ok(()) };
        poller.add(socket, place).map_err(|error| {
            interface.close();
            OpenError::Kernel { name: interface.name().to_owned(), action: "wait for frames", error }
        })
    }

    /// Sends and forgets the frames of `batch`; calls `lost` for each that could not be sent.
    pub fn send(&mut self, batch: &mut TxBatch, lost: impl FnMut(Loss)) {
        match self {
            Self::Interface(interface) => interface.send_with(batch, lost),
            Self::Files(output) => output.send(batch, lost),
        }
    }

    /// Adds what the kernel has dropped since the last call to the counters.
    pub fn update_kernel_drops(&mut self) {
        if let Self::Interface(interface) = self {
            interface.update_kernel_drops();
        }
    }
}
