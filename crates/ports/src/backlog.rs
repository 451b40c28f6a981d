//! Reads how many frames wait in an interface's queueing discipline. `tc -s qdisc` shows the same number as backlog.

use std::cell::Cell;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use crate::sys;

/// The lengths in bytes of `nlmsghdr` and `tcmsg`, with which requests and answers begin.
const HEADER: usize = 16;
const TC: usize = 20;
/// `TC_H_ROOT`: the discipline at the root of the interface.
const ROOT: u32 = u32::MAX;
/// `TCA_STATS_BASIC` and `TCA_STATS_QUEUE`, two attributes within `TCA_STATS2`.
const BASIC: u16 = 1;
const QUEUE: u16 = 3;

/// The state of the discipline at the root of an interface.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Waiting {
    /// The number of frames that wait in the discipline, in its classes and in its child disciplines.
    pub frames: u32,
    /// The number of frames that have left the discipline, modulo 2^32.
    pub departed: u32,
}

/// Queries the kernel about queueing disciplines, in the network namespace of the thread that called [`Backlogs::new`].
pub struct Backlogs {
    socket: OwnedFd,
    /// The number of the last request. The kernel's answer to the request contains the same number. An answer with
    /// another number belongs to an earlier request that failed.
    last_request: Cell<u32>,
}

impl Backlogs {
    /// Opens a netlink socket for the queries.
    ///
    /// # Errors
    /// If the kernel refuses a netlink socket.
    pub fn new() -> io::Result<Self> {
        let kind = libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        // SAFETY: no pointers are involved.
        let fd = unsafe { libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_ROUTE) };
        sys::check(fd)?;
        // SAFETY: `fd` was just opened, and nothing else owns it.
        Ok(Self { socket: unsafe { OwnedFd::from_raw_fd(fd) }, last_request: Cell::new(0) })
    }

    /// Returns the state of the discipline at the interface with this index. The state is all zero if the interface has
    /// no discipline.
    ///
    /// # Errors
    /// If there is no such interface, or the kernel does not answer.
    pub fn of(&self, interface: libc::c_int) -> io::Result<Waiting> {
        let number = self.last_request.get().wrapping_add(1);
        self.last_request.set(number);
        let request = request(interface, number);
        // SAFETY: pointer and length describe `request`, which outlives the call.
        let sent = unsafe { libc::send(self.socket.as_raw_fd(), request.as_ptr().cast(), request.len(), 0) };
        if sent < 0 {
            return Err(io::Error::last_os_error());
        }
        let (mut buffer, mut waiting) = ([0u8; 16_384], Waiting::default());
        // When `send` returns, the kernel has already queued its answer: the discipline's description, if there is a
        // discipline, and then the acknowledgement.
        loop {
            // SAFETY: pointer and length describe `buffer`, which outlives the call.
            let received = unsafe { libc::recv(self.socket.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), 0) };
            let Ok(received) = usize::try_from(received) else { return Err(io::Error::last_os_error()) };
            if let Some(end) = read(&buffer[..received], number, &mut waiting) {
                return end.map(|()| waiting);
            }
        }
    }
}

/// Builds the request RTM_GETQDISC for the discipline at the root of an interface, with a request for acknowledgement.
///
/// The kernel sends the answer to the multicast group `RTNLGRP_TC`. `NLM_F_ECHO` makes the kernel send the answer to
/// the requesting socket too.
fn request(interface: libc::c_int, number: u32) -> [u8; HEADER + TC] {
    let mut request = [0; HEADER + TC];
    let mut put_bytes = |at: usize, bytes: &[u8]| request[at..at + bytes.len()].copy_from_slice(bytes);
    put_bytes(0, &((HEADER + TC) as u32).to_ne_bytes());
    put_bytes(4, &libc::RTM_GETQDISC.to_ne_bytes());
    let flags = libc::NLM_F_REQUEST | libc::NLM_F_ACK | libc::NLM_F_ECHO;
    put_bytes(6, &(flags as u16).to_ne_bytes());
    put_bytes(8, &number.to_ne_bytes());
    put_bytes(HEADER + 4, &interface.to_ne_bytes());
    put_bytes(HEADER + 12, &ROOT.to_ne_bytes());
    request
}

/// Reads the messages that answer the request with this number. Returns the request's result, or `None` if the messages
/// do not contain the acknowledgement that ends the answer.
fn read(mut messages: &[u8], number: u32, waiting: &mut Waiting) -> Option<io::Result<()>> {
    while let Some(length) = u32_at(messages, 0).map(|length| length as usize) {
        let message = messages.get(..length).filter(|_| length >= HEADER)?;
        match u16_at(message, 4) {
            _ if u32_at(message, 8) != Some(number) => {}
            Some(libc::RTM_NEWQDISC) => *waiting = statistics(message.get(HEADER + TC..)?),
            Some(kind) if kind == libc::NLMSG_ERROR as u16 => {
                let code = u32_at(message, HEADER)? as i32;
                return Some(if code == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(-code)) });
            }
            _ => {}
        }
        messages = messages.get(align(length)..)?;
    }
    None
}

/// Reads the state of a discipline's queue from the discipline's attributes.
fn statistics(attributes: &[u8]) -> Waiting {
    let all = attribute(attributes, libc::TCA_STATS2).unwrap_or(&[]);
    // In `gnet_stats_queue` the queue's length is the first field. In `gnet_stats_basic` the number of packets follows
    // the eight-byte number of bytes.
    let frames = attribute(all, QUEUE).and_then(|queue| u32_at(queue, 0));
    let departed = attribute(all, BASIC).and_then(|basic| u32_at(basic, 8));
    Waiting { frames: frames.unwrap_or(0), departed: departed.unwrap_or(0) }
}

/// Returns the value of the first attribute that has this type; `None` if there is no such attribute.
fn attribute(mut attributes: &[u8], attribute_type: u16) -> Option<&[u8]> {
    loop {
        let length = usize::from(u16_at(attributes, 0)?);
        let value = attributes.get(4..length)?;
        // The two highest bits of the type are flags.
        if u16_at(attributes, 2)? & 0x3fff == attribute_type {
            return Some(value);
        }
        attributes = attributes.get(align(length)..)?;
    }
}

/// Rounds a length up to a multiple of four bytes, because messages and attributes begin at such multiples.
fn align(length: usize) -> usize {
    length.next_multiple_of(4)
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_interface_is_an_error() {
        let error = Backlogs::new().unwrap().of(libc::c_int::MAX).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENODEV), "{error}");
    }

    #[test]
    fn the_answer_to_an_earlier_request_is_ignored() {
        // The beginning of an `nlmsgerr` message that acknowledges an earlier request (number 7) without an error.
        let mut message = [0; HEADER + 4];
        message[..4].copy_from_slice(&((HEADER + 4) as u32).to_ne_bytes());
        message[4..6].copy_from_slice(&(libc::NLMSG_ERROR as u16).to_ne_bytes());
        message[8..12].copy_from_slice(&7u32.to_ne_bytes());
        assert!(read(&message, 8, &mut Waiting::default()).is_none());
        assert!(matches!(read(&message, 7, &mut Waiting::default()), Some(Ok(()))));
    }

    #[test]
    fn no_answer_causes_a_panic() {
        let bytes: Vec<u8> = (0..64).flat_map(|number: u16| [(number % 5) as u8, 0, 36, (number % 3) as u8]).collect();
        for length in 0..bytes.len() {
            for start in 0..length {
                read(&bytes[start..length], 0, &mut Waiting::default());
                statistics(&bytes[start..length]);
            }
        }
    }
}
