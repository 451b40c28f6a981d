//! Reports whether the links of interfaces are up, and notifies of changes.

use std::ffi::c_short;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use crate::sys;

/// Receives a notification for every change of a link in the network namespace in which the watch was created.
pub struct LinkWatch {
    socket: OwnedFd,
}

impl LinkWatch {
    /// Subscribes to changes. Query states with [`LinkWatch::is_up`] after the subscription, so that no change is
    /// missed.
    ///
    /// # Errors
    /// If the kernel refuses a netlink socket.
    pub fn new() -> io::Result<Self> {
        let kind = libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        // SAFETY: no pointers are involved.
        let fd = unsafe { libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_ROUTE) };
        sys::check(fd)?;
        // SAFETY: `fd` was just opened, and nothing else owns it.
        let socket = unsafe { OwnedFd::from_raw_fd(fd) };
        // SAFETY: all-zero is a valid value of this plain structure.
        let mut address: libc::sockaddr_nl = unsafe { std::mem::zeroed() };
        address.nl_family = libc::AF_NETLINK as u16;
        address.nl_groups = libc::RTMGRP_LINK as u32;
        // SAFETY: pointer and length describe `address`, which outlives the call.
        sys::check(unsafe {
            libc::bind(fd, (&raw const address).cast(), size_of::<libc::sockaddr_nl>() as libc::socklen_t)
        })?;
        Ok(Self { socket })
    }

    /// Discards all notifications received so far. Call [`LinkWatch::is_up`] afterwards to query the current states:
    /// the socket may lose notifications, whereas the queried states are always current.
    pub fn drain(&self) {
        let mut buffer = [0u8; 4096];
        loop {
            // SAFETY: pointer and length describe `buffer`, which outlives the call.
            let received = unsafe { libc::recv(self.socket.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), 0) };
            // A socket whose queue overflowed reports ENOBUFS once; after this error the remaining notifications can be
            // read.
            if received < 0 && io::Error::last_os_error().raw_os_error() != Some(libc::ENOBUFS) {
                return;
            }
        }
    }

    /// Whether an interface with this name exists, and both the interface and its link are up.
    pub fn is_up(&self, interface: &str) -> bool {
        // SAFETY: all-zero is a valid value of this plain structure.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        if interface.len() >= request.ifr_name.len() {
            return false;
        }
        for (to, from) in request.ifr_name.iter_mut().zip(interface.bytes()) {
            *to = from as libc::c_char;
        }
        // SAFETY: `request` is a complete `ifreq`, which this `ioctl` requires, and outlives the call.
        let result = unsafe { libc::ioctl(self.socket.as_raw_fd(), libc::SIOCGIFFLAGS as _, &raw mut request) };
        // SAFETY: every bit pattern is a valid `c_short`, and the structure was initialized with zeros.
        let flags = unsafe { request.ifr_ifru.ifru_flags };
        let up = (libc::IFF_UP | libc::IFF_RUNNING) as c_short;
        result == 0 && flags & up == up
    }
}

impl AsRawFd for LinkWatch {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interfaces_that_do_not_exist_are_down() {
        let watch = LinkWatch::new().unwrap();
        watch.drain();
        assert!(!watch.is_up("no-such-iface"));
        assert!(!watch.is_up("a-name-that-is-longer-than-any-interface"));
        assert!(!watch.is_up(""));
    }
}
