//! A network interface as a port of the switch. The port can be opened, lose its interface, and be opened again.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::Arc;

use thiserror::Error;

use crate::counters::Counters;
use crate::ring::Ring;
use crate::rx::RxBatch;
use crate::sys;
use crate::tx::{Sent, TxBatch};

/// The size in bytes of the kernel buffer that is requested for each direction of a socket. The buffer is so large that
/// no burst is lost while the switch is not scheduled. A shaped link's queue is then limited by the link's queueing
/// discipline, and not by this buffer.
const SOCKET_BUFFER: libc::c_int = 16 << 20;

/// The reason why an interface could not be opened.
#[derive(Debug, Error)]
pub enum OpenError {
    /// There is no interface with this name in the network namespace.
    #[error("there is no interface {name}; `ip link` lists those of this network namespace")]
    Missing {
        /// The interface's name.
        name: String,
    },
    /// The process has no permission to open packet sockets.
    #[error("opening interface {name} needs root or CAP_NET_RAW: {error}")]
    Forbidden {
        /// The interface's name.
        name: String,
        /// The kernel's error.
        error: io::Error,
    },
    /// Any other error of the kernel.
    #[error("cannot {action} on interface {name}: {error}")]
    Kernel {
        /// The interface's name.
        name: String,
        /// The operation that failed.
        action: &'static str,
        /// The kernel's error.
        error: io::Error,
    },
}

/// The result of a receive call.
#[derive(Debug, PartialEq, Eq)]
pub enum Received {
    /// The batch contains the frames that were waiting; it is empty if none was.
    Frames,
    /// The interface went down; the batch may contain frames that were received before it went down. When the interface
    /// is up again, frames arrive again. The kernel does not report the removal of an interface that is down, so call
    /// [`Interface::check`] from time to time.
    Down,
    /// The interface was removed, or another interface has its name now. The socket is closed.
    Lost,
}

/// The reason why a frame could not be sent.
#[derive(Debug, Error)]
pub enum Loss {
    /// The interface is down or does not exist.
    #[error("the interface is down")]
    Down,
    /// The interface's queueing discipline refused the frame. The link is the cause of this loss.
    #[error("the interface's queueing discipline is full")]
    Link,
    /// The kernel had no buffer for the frame. The switch is the cause of this loss.
    #[error("the kernel has no buffer")]
    Backlog,
    /// Any other error of the kernel.
    #[error("refused: {0}")]
    Refused(io::Error),
}

impl From<io::Error> for Loss {
    fn from(error: io::Error) -> Self {
        match error.raw_os_error() {
            Some(libc::ENOBUFS) => Self::Link,
            Some(libc::EAGAIN) => Self::Backlog,
            Some(libc::ENETDOWN | libc::ENXIO | libc::ENODEV) => Self::Down,
            _ => Self::Refused(error),
        }
    }
}

/// The method by which frames are transferred from the kernel to this process.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum Input {
    /// The kernel writes frames into a ring in memory that it shares with this process. Frames are not copied, and a
    /// batch needs no system call.
    #[default]
    Ring,
    /// The system call `recvmmsg` copies frames into memory of this process.
    Calls,
}

/// Options with which an interface is opened.
#[derive(Debug, Default, Clone, Copy)]
pub struct Options {
    /// The method by which frames are received.
    pub input: Input,
    /// Whether sent frames bypass the interface's queueing discipline. If they do, `tc` does not shape the link.
    pub bypass_qdisc: bool,
}

/// A network interface that is used as a port.
pub struct Interface {
    name: String,
    options: Options,
    socket: Option<Socket>,
    counters: Arc<Counters>,
}

struct Socket {
    fd: OwnedFd,
    ring: Option<Arc<Ring>>,
    index: libc::c_int,
    /// Whether the kernel has reported that the interface went down, and no later check has found the interface up.
    was_down: bool,
}

impl Socket {
    /// Returns whether the kernel would accept a frame of this length now, unless the link's queueing discipline
    /// refuses it.
    fn accepts(&self, name: &str, length: usize) -> bool {
        let full = sys::is_full(&self.fd).unwrap_or(true);
        !full && matches!(sys::frame_limit(&self.fd, name), Ok(Some(limit)) if length <= limit)
    }
}

impl Interface {
    /// Opens the interface called `name` with the default options. The port receives frames that arrive from now on.
    ///
    /// # Errors
    /// The reasons are listed at [`OpenError`].
    pub fn open(name: &str) -> Result<Self, OpenError> {
        Self::open_with(name, Options::default())
    }

    /// Opens the interface called `name`. The port receives frames that arrive from now on.
    ///
    /// # Errors
    /// The reasons are listed at [`OpenError`].
    pub fn open_with(name: &str, options: Options) -> Result<Self, OpenError> {
        let socket = open_socket(name, options)?;
        Ok(Self { name: name.to_owned(), options, socket: Some(socket), counters: Arc::default() })
    }

    /// The interface's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The interface's counters. They keep their values when the interface vanishes and is opened again.
    pub fn counters(&self) -> &Arc<Counters> {
        &self.counters
    }

    /// Whether the interface is open, which means that it existed at the last check.
    pub fn is_open(&self) -> bool {
        self.socket.is_some()
    }

    /// Whether the interface is open and went down. The interface may be up again if [`Self::check`] was not called
    /// since.
    pub fn was_down(&self) -> bool {
        self.socket.as_ref().is_some_and(|socket| socket.was_down)
    }

    /// The file descriptor of the socket to poll; `None` while the interface is not open.
    pub fn raw_fd(&self) -> Option<RawFd> {
        self.socket.as_ref().map(|socket| socket.fd.as_raw_fd())
    }

    /// The interface's index; `None` while the interface is not open.
    pub fn index(&self) -> Option<libc::c_int> {
        self.socket.as_ref().map(|socket| socket.index)
    }

    /// Tries to open an interface again after it has vanished.
    ///
    /// # Errors
    /// The reasons are listed at [`OpenError`].
    pub fn reopen(&mut self) -> Result<(), OpenError> {
        if self.socket.is_none() {
            self.socket = Some(open_socket(&self.name, self.options)?);
        }
        Ok(())
    }

    /// Whether [`Self::receive`] may return frames. With a ring the check only reads memory and needs no system call.
    /// Without a ring the result is true as long as the interface is open.
    pub fn may_have_frames(&self) -> bool {
        self.socket.as_ref().is_some_and(|socket| socket.ring.as_ref().is_none_or(|ring| ring.is_ready()))
    }

    /// Replaces the batch's content by the oldest frames that wait at this interface, at most
    /// [`BATCH`](crate::BATCH) of them.
    pub fn receive(&mut self, batch: &mut RxBatch) -> Received {
        let Some(socket) = &mut self.socket else {
            batch.clear();
            return Received::Lost;
        };
        let result = batch.receive(&socket.fd, socket.ring.as_ref()).and_then(|oddities| {
            // A ring cannot report that the interface went down, so the error is read from the socket.
            if batch.is_empty() && socket.ring.is_some() {
                sys::take_error(&socket.fd)?
            }
            Ok(oddities)
        });
        match result {
            Ok(oddities) => {
                let counters = &self.counters;
                if !batch.is_empty() {
                    counters.rx_packets.add(batch.len() as u64);
                    counters.rx_bytes.add(batch.frames().map(|frame| frame.len() as u64).sum());
                }
                if oddities.oversize > 0 {
                    counters.rx_oversize.add(oddities.oversize);
                }
                if oddities.partial_checksum > 0 {
                    counters.rx_partial_checksum.add(oddities.partial_checksum);
                }
                if oddities.dropped > 0 {
                    counters.rx_kernel_drops.add(oddities.dropped);
                }
                socket.was_down |= oddities.went_down;
                if oddities.went_down { Received::Down } else { Received::Frames }
            }
            Err(_) => {
                batch.clear();
                socket.was_down = true;
                self.check()
            }
        }
    }

    /// Sends the frames of `batch` and removes them from it. Frames that cannot be sent are only counted.
    pub fn send(&mut self, batch: &mut TxBatch) {
        self.send_with(batch, |_| {});
    }

    /// Sends the frames of `batch` and removes them from it; calls `lost` for each frame that could not be sent.
    pub fn send_with(&mut self, batch: &mut TxBatch, mut lost: impl FnMut(Loss)) {
        if batch.is_empty() {
            return;
        }
        let counters = &self.counters;
        let mut count = |loss| {
            match loss {
                Loss::Down => counters.tx_down_drops.add(1),
                Loss::Link => counters.tx_link_drops.add(1),
                Loss::Backlog => counters.tx_backlog_drops.add(1),
                Loss::Refused(_) => counters.tx_refused.add(1),
            }
            lost(loss);
        };
        match &self.socket {
            None => (0..batch.len()).for_each(|_| count(Loss::Down)),
            Some(socket) => {
                let is_lost_at_link = |length| socket.accepts(&self.name, length);
                batch.send(&socket.fd, is_lost_at_link, |sent| match sent {
                    Sent::Taken { frames, bytes } => {
                        counters.tx_packets.add(frames);
                        counters.tx_bytes.add(bytes);
                    }
                    Sent::Refused(error) => count(Loss::from(error)),
                });
            }
        }
        batch.clear();
    }

    /// Queries how many frames the kernel has dropped since the last query, and adds this number to the counters.
    pub fn update_kernel_drops(&mut self) {
        if let Some(socket) = &self.socket
            && let Ok(drops) = sys::take_kernel_drops(&socket.fd)
        {
            self.counters.rx_kernel_drops.add(drops);
        }
    }

    /// Checks whether an interface that went down has been removed or is up again. Returns [`Received::Lost`] and
    /// closes the socket if the interface was removed or another interface has its name now. Returns [`Received::Down`]
    /// otherwise, even if the interface is up again; [`Self::was_down`] then returns whether it is still down.
    pub fn check(&mut self) -> Received {
        let Some(socket) = &mut self.socket else { return Received::Lost };
        if matches!(sys::interface_index(&socket.fd, &self.name), Ok(Some(index)) if index == socket.index) {
            let is_up = matches!(sys::frame_limit(&socket.fd, &self.name), Ok(Some(_)));
            socket.was_down = !is_up;
            return Received::Down;
        }
        self.close();
        Received::Lost
    }

    /// Closes the socket, as if the interface had vanished. [`Self::reopen`] opens the interface again.
    pub fn close(&mut self) {
        self.update_kernel_drops();
        self.socket = None;
    }
}

fn open_socket(name: &str, options: Options) -> Result<Socket, OpenError> {
    let kernel = |action| {
        let name = name.to_owned();
        move |error| OpenError::Kernel { name, action, error }
    };
    let fd = sys::packet_socket().map_err(|error| match error.kind() {
        io::ErrorKind::PermissionDenied => OpenError::Forbidden { name: name.to_owned(), error },
        _ => kernel("open a packet socket")(error),
    })?;
    let index = sys::interface_index(&fd, name)
        .map_err(kernel("query the index"))?
        .ok_or_else(|| OpenError::Missing { name: name.to_owned() })?;
    let enabled: libc::c_int = 1;
    sys::set_option(&fd, libc::SOL_PACKET, libc::PACKET_AUXDATA, &enabled).map_err(kernel("request VLAN tags"))?;
    sys::set_option(&fd, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, &enabled)
        .map_err(kernel("ignore own frames (needs Linux 4.20 or later)"))?;
    for (forced, plain) in [(libc::SO_RCVBUFFORCE, libc::SO_RCVBUF), (libc::SO_SNDBUFFORCE, libc::SO_SNDBUF)] {
        sys::set_option(&fd, libc::SOL_SOCKET, forced, &SOCKET_BUFFER)
            .or_else(|_| sys::set_option(&fd, libc::SOL_SOCKET, plain, &SOCKET_BUFFER))
            .map_err(kernel("set the buffer size"))?;
    }
    if options.bypass_qdisc {
        sys::set_option(&fd, libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, &enabled)
            .map_err(kernel("bypass the queueing discipline"))?;
    }
    let ring = match options.input {
        Input::Ring => Some(Arc::new(Ring::new(&fd).map_err(kernel("make a receive ring"))?)),
        Input::Calls => None,
    };
    sys::bind_to_interface(&fd, index).map_err(kernel("receive frames"))?;
    sys::set_promiscuous(&fd, index).map_err(kernel("receive frames addressed to others"))?;
    Ok(Socket { fd, ring, index, was_down: false })
}
