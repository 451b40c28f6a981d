//! The source and destination of a port's packets: a network interface, or files.

use std::os::fd::RawFd;
use std::sync::Arc;

use sluice_ports::{Counters, Interface, Loss, OpenError, Poller, Received, TxBatch};

use crate::files::Output;

/// The source and destination of a port's packets.
pub enum Link {
    /// A network interface.
    Interface(Interface),
    /// A capture file to which the switch writes. [`crate::files::Inputs`] reads the input files of all ports together.
    Files(Output),
}

impl Link {
    /// Returns the name of the interface.
    pub fn name(&self) -> &str {
        match self {
            Self::Interface(interface) => interface.name(),
            Self::Files(output) => output.interface(),
        }
    }

    /// Returns the counters of the port.
    pub fn counters(&self) -> &Arc<Counters> {
        match self {
            Self::Interface(interface) => interface.counters(),
            Self::Files(output) => output.counters(),
        }
    }

    /// Returns the socket on which the thread waits for frames; `None` for files, and while the interface is not open.
    pub fn raw_fd(&self) -> Option<RawFd> {
        match self {
            Self::Interface(interface) => interface.raw_fd(),
            Self::Files(_) => None,
        }
    }

    /// Returns the index by which the kernel identifies the interface; `None` for files, and while the interface is not
    /// open.
    pub fn index(&self) -> Option<i32> {
        match self {
            Self::Interface(interface) => interface.index(),
            Self::Files(_) => None,
        }
    }

    /// Returns whether the interface is open. Files are always open.
    pub fn is_open(&self) -> bool {
        match self {
            Self::Interface(interface) => interface.is_open(),
            Self::Files(_) => true,
        }
    }

    /// Returns whether the interface is open but went down. The kernel does not report when such an interface is
    /// removed.
    pub fn was_down(&self) -> bool {
        match self {
            Self::Interface(interface) => interface.was_down(),
            Self::Files(_) => false,
        }
    }

    /// Returns whether an interface that was open still exists.
    pub fn is_still_there(&mut self) -> bool {
        match self {
            Self::Interface(interface) => interface.check() != Received::Lost,
            Self::Files(_) => true,
        }
    }

    /// Returns whether frames may wait to be received.
    pub fn may_have_frames(&self) -> bool {
        match self {
            Self::Interface(interface) => interface.may_have_frames(),
            Self::Files(_) => false,
        }
    }

    /// Tries to open a vanished interface again, and adds its socket to `poller` with the token `place`.
    ///
    /// # Errors
    /// Fails if the interface does not exist, or if the kernel refuses to open it or to wait for it. The interface then
    /// remains closed.
    pub fn reopen(&mut self, poller: &Poller, place: usize) -> Result<(), OpenError> {
        let Self::Interface(interface) = self else { return Ok(()) };
        interface.reopen()?;
        let Some(socket) = interface.raw_fd() else { return Ok(()) };
        poller.add(socket, place).map_err(|error| {
            interface.close();
            OpenError::Kernel { name: interface.name().to_owned(), action: "wait for frames", error }
        })
    }

    /// Sends the frames of `batch`, and empties `batch`. Calls `lost` for each frame that could not be sent.
    pub fn send(&mut self, batch: &mut TxBatch, lost: impl FnMut(Loss)) {
        match self {
            Self::Interface(interface) => interface.send_with(batch, lost),
            Self::Files(output) => output.send(batch, lost),
        }
    }

    /// Adds to the counters the number of frames that the kernel has dropped since the last call of this method.
    pub fn update_kernel_drops(&mut self) {
        if let Self::Interface(interface) = self {
            interface.update_kernel_drops();
        }
    }
}
