//! Whether the links behind interfaces are up, and when that changes.

use std::ffi::c_short;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use crate::sys;

/// Hears of every change of a link in the network namespace it was opened in.
pub struct LinkWatch {
    socket: OwnedFd,
}

impl LinkWatch {
    /// Listens from now on; states are to be asked for after this.
    ///
    /// # Errors
    /// When the kernel refuses a netlink socket.
    pub fn new() -> io::Result<Self> {
        let kind = libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        // SAFETY: no pointers are involved.
        let fd = unsafe { libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_ROUTE) };
        sys::check(fd)?;
        // SAFETY: `fd` was just opened and belongs to nobody else.
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

    /// Forgets the changes heard of so far; what they say is asked for with [`LinkWatch::is_up`], so that none that got
    /// lost is missed.
    pub fn drain(&self) {
        let mut buffer = [0u8; 4096];
        loop {
            // SAFETY: pointer and length describe `buffer`, which outlives the call.
            let got = unsafe { libc::recv(self.socket.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), 0) };
            // A queue that overflowed says so once (ENOBUFS) and goes on.
            if got < 0 && io::Error::last_os_error().raw_os_error() != Some(libc::ENOBUFS) {
                return;
            }
        }
    }

    /// Whether there is an interface of this name, and it and its link are up.
    pub fn is_up(&self, interface: &str) -> bool {
        // SAFETY: all-zero is a valid value of this plain structure.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        if interface.len() >= request.ifr_name.len() {
            return false;
        }
        for (to, from) in request.ifr_name.iter_mut().zip(interface.bytes()) {
            *to = from as libc::c_char;
        }
        // SAFETY: `request` is a whole `ifreq`, as this call wants it, and outlives the call.
        let result = unsafe { libc::ioctl(self.socket.as_raw_fd(), libc::SIOCGIFFLAGS as _, &raw mut request) };
        // SAFETY: every bit pattern is a valid `c_short`, and the structure was zero at first.
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
