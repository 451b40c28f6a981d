//! Wraps the system calls of packet sockets in functions that return errors instead of return codes.

use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// The length in bytes of an Ethernet header, which an interface's MTU does not include.
const ETHERNET_HEADER: usize = 14;

/// Opens a packet socket that is not attached to any interface yet.
pub fn packet_socket() -> io::Result<OwnedFd> {
    let kind = libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: no pointers are involved; protocol 0 receives nothing until the socket is bound.
    let fd = unsafe { libc::socket(libc::AF_PACKET, kind, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: `fd` was just opened, and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Attaches the socket to an interface, for frames of every protocol.
pub fn bind_to_interface(fd: &OwnedFd, index: libc::c_int) -> io::Result<()> {
    // SAFETY: all-zero is a valid value of this plain structure.
    let mut address: libc::sockaddr_ll = unsafe { zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
    address.sll_ifindex = index;
    // SAFETY: pointer and length describe `address`, which outlives the call.
    check(unsafe {
        libc::bind(fd.as_raw_fd(), (&raw const address).cast(), size_of::<libc::sockaddr_ll>() as libc::socklen_t)
    })
}

/// Sets a socket option whose value is the plain structure or integer `value`.
pub fn set_option<T: Copy>(fd: &OwnedFd, level: i32, name: i32, value: &T) -> io::Result<()> {
    // SAFETY: pointer and length describe `value`, which outlives the call.
    check(unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            level,
            name,
            std::ptr::from_ref(value).cast(),
            size_of::<T>() as libc::socklen_t,
        )
    })
}

/// Makes the interface deliver frames for all destination addresses as long as the socket is open.
pub fn set_promiscuous(fd: &OwnedFd, index: libc::c_int) -> io::Result<()> {
    // SAFETY: all-zero is a valid value of this plain structure.
    let mut request: libc::packet_mreq = unsafe { zeroed() };
    request.mr_ifindex = index;
    request.mr_type = libc::PACKET_MR_PROMISC as u16;
    set_option(fd, libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &request)
}

/// Returns how many frames the kernel has dropped since the last call, because the socket had no buffer space for them.
pub fn take_kernel_drops(fd: &OwnedFd) -> io::Result<u64> {
    // SAFETY: all-zero is a valid value of this plain structure.
    let mut stats: libc::tpacket_stats = unsafe { zeroed() };
    let mut length = size_of::<libc::tpacket_stats>() as libc::socklen_t;
    // SAFETY: pointer and length describe `stats`, which outlives the call.
    check(unsafe {
        libc::getsockopt(
            fd.as_raw_fd(),
            libc::SOL_PACKET,
            libc::PACKET_STATISTICS,
            (&raw mut stats).cast(),
            &raw mut length,
        )
    })?;
    Ok(u64::from(stats.tp_drops))
}

/// Returns whether the socket's send buffer is full. If it is, the kernel must send frames before it accepts another
/// frame.
pub fn is_full(fd: &OwnedFd) -> io::Result<bool> {
    let (mut queued, mut room): (libc::c_int, libc::c_int) = (0, 0);
    let mut length = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: the pointer is to an integer, which this request fills.
    check(unsafe { libc::ioctl(fd.as_raw_fd(), libc::TIOCOUTQ, &raw mut queued) })?;
    // SAFETY: pointer and length describe `room`, which outlives the call.
    check(unsafe {
        libc::getsockopt(fd.as_raw_fd(), libc::SOL_SOCKET, libc::SO_SNDBUF, (&raw mut room).cast(), &raw mut length)
    })?;
    Ok(queued >= room)
}

/// Returns the index of the interface called `name`; returns `None` if there is no such interface.
pub fn interface_index(fd: &OwnedFd, name: &str) -> io::Result<Option<libc::c_int>> {
    let Some(mut request) = interface_request(name) else { return Ok(None) };
    // SAFETY: the pointer is to a complete `ifreq` with a terminated name, and the request fills the field that is
    // read.
    unsafe {
        match check(libc::ioctl(fd.as_raw_fd(), libc::SIOCGIFINDEX as _, &raw mut request)) {
            Ok(()) => Ok(Some(request.ifr_ifru.ifru_ifindex)),
            Err(error) if error.raw_os_error() == Some(libc::ENODEV) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Returns the length in bytes of the longest frame that the interface called `name` can send, including the Ethernet
/// header. Returns `None` while the interface is down, and for a name that no interface can have.
pub fn frame_limit(fd: &OwnedFd, name: &str) -> io::Result<Option<usize>> {
    let Some(mut request) = interface_request(name) else { return Ok(None) };
    // SAFETY: the pointer is to a complete `ifreq` with a terminated name. Each of the two requests fills the field
    // that is read after it.
    unsafe {
        check(libc::ioctl(fd.as_raw_fd(), libc::SIOCGIFFLAGS as _, &raw mut request))?;
        if i32::from(request.ifr_ifru.ifru_flags) & libc::IFF_UP == 0 {
            return Ok(None);
        }
        check(libc::ioctl(fd.as_raw_fd(), libc::SIOCGIFMTU as _, &raw mut request))?;
        Ok(Some(request.ifr_ifru.ifru_mtu as usize + ETHERNET_HEADER))
    }
}

/// Returns an `ifreq` for the interface called `name`; returns `None` if no interface can have this name.
fn interface_request(name: &str) -> Option<libc::ifreq> {
    // SAFETY: all-zero is a valid value of this plain structure.
    let mut request: libc::ifreq = unsafe { zeroed() };
    if name.len() >= request.ifr_name.len() || name.contains('\0') {
        return None;
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    Some(request)
}

/// Clears the socket's pending error and returns it as `Err`. Returns `Ok` if no error is pending.
pub fn take_error(fd: &OwnedFd) -> io::Result<()> {
    let (mut error, mut length): (libc::c_int, _) = (0, size_of::<libc::c_int>() as libc::socklen_t);
    // SAFETY: pointer and length describe `error`, which outlives the call.
    check(unsafe {
        libc::getsockopt(fd.as_raw_fd(), libc::SOL_SOCKET, libc::SO_ERROR, (&raw mut error).cast(), &raw mut length)
    })?;
    if error == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(error)) }
}

/// Turns a negative return code into the error in `errno`.
pub fn check(result: libc::c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
