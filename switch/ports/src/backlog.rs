//! How many frames wait at an interface: in its queueing discipline, as `tc -s qdisc` shows it.

use std::cell::Cell;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use crate::sys;

/// Bytes of `nlmsghdr` and of `tcmsg`, with which requests and answers begin.
const HEADER: usize = 16;
const TC: usize = 20;
/// `TC_H_ROOT`: the discipline itself.
const ROOT: u32 = u32::MAX;
/// `TCA_STATS_BASIC` and `TCA_STATS_QUEUE`, within `TCA_STATS2`.
const BASIC: u16 = 1;
const QUEUE: u16 = 3;

/// The state of the discipline at the root of an interface.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Waiting {
    /// Frames that wait, those of its classes and children included.
    pub frames: u32,
    /// Frames that have left it, modulo 2^32.
    pub left: u32,
}

/// Asks the kernel, in the network namespace it was opened in.
pub struct Backlogs {
    socket: OwnedFd,
    /// Number of the last question, so that what is left of an answer that failed is not taken for the next one's.
    asked: Cell<u32>,
}

impl Backlogs {
    /// A way to ask.
    ///
    /// # Errors
    /// When the kernel refuses a netlink socket.
    pub fn new() -> io::Result<Self> {
        let kind = libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        // SAFETY: no pointers are involved.
        let fd = unsafe { libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_ROUTE) };
        sys::check(fd)?;
        // SAFETY: `fd` was just opened and belongs to nobody else.
        Ok(Self { socket: unsafe { OwnedFd::from_raw_fd(fd) }, asked: Cell::new(0) })
    }

    /// What waits at the interface with this number; nothing at one without a discipline.
    ///
    /// # Errors
    /// When there is no such interface, or the kernel does not answer.
    pub fn of(&self, interface: libc::c_int) -> io::Result<Waiting> {
        let number = self.asked.get().wrapping_add(1);
        self.asked.set(number);
        let request = request(interface, number);
        // SAFETY: pointer and length describe `request`, which outlives the call.
        let sent = unsafe { libc::send(self.socket.as_raw_fd(), request.as_ptr().cast(), request.len(), 0) };
        if sent < 0 {
            return Err(io::Error::last_os_error());
        }
        let (mut buffer, mut waiting) = ([0u8; 16_384], Waiting::default());
        // The kernel has answered when the request is sent: with the discipline, if there is one, then with the end.
        loop {
            // SAFETY: pointer and length describe `buffer`, which outlives the call.
            let got = unsafe { libc::recv(self.socket.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), 0) };
            let Ok(got) = usize::try_from(got) else { return Err(io::Error::last_os_error()) };
            if let Some(end) = read(&buffer[..got], number, &mut waiting) {
                return end.map(|()| waiting);
            }
        }
    }
}

/// RTM_GETQDISC for the discipline at the root of an interface, to be acknowledged.
///
/// The kernel sends the answer to the group `RTNLGRP_TC`; because of `NLM_F_ECHO` the asker gets it too.
fn request(interface: libc::c_int, number: u32) -> [u8; HEADER + TC] {
    let mut request = [0; HEADER + TC];
    let mut put = |at: usize, bytes: &[u8]| request[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, &((HEADER + TC) as u32).to_ne_bytes());
    put(4, &libc::RTM_GETQDISC.to_ne_bytes());
    let flags = libc::NLM_F_REQUEST | libc::NLM_F_ACK | libc::NLM_F_ECHO;
    put(6, &(flags as u16).to_ne_bytes());
    put(8, &number.to_ne_bytes());
    put(HEADER + 4, &interface.to_ne_bytes());
    put(HEADER + 12, &ROOT.to_ne_bytes());
    request
}

/// Reads the messages that answer the question of this number; how it all ended, if it did.
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

/// What a discipline's attributes tell of its queue.
fn statistics(attributes: &[u8]) -> Waiting {
    let all = attribute(attributes, libc::TCA_STATS2).unwrap_or(&[]);
    // gnet_stats_queue begins with the length, gnet_stats_basic has the packets behind the bytes.
    let frames = attribute(all, QUEUE).and_then(|queue| u32_at(queue, 0));
    let left = attribute(all, BASIC).and_then(|basic| u32_at(basic, 8));
    Waiting { frames: frames.unwrap_or(0), left: left.unwrap_or(0) }
}

/// The value of the first attribute of a kind.
fn attribute(mut attributes: &[u8], wanted: u16) -> Option<&[u8]> {
    loop {
        let length = usize::from(u16_at(attributes, 0)?);
        let value = attributes.get(4..length)?;
        // The two highest bits are flags.
        if u16_at(attributes, 2)? & 0x3fff == wanted {
            return Some(value);
        }
        attributes = attributes.get(align(length)..)?;
    }
}

/// Messages and attributes begin at multiples of four.
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
    fn what_does_not_exist_is_an_error() {
        let error = Backlogs::new().unwrap().of(libc::c_int::MAX).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENODEV), "{error}");
    }

    #[test]
    fn the_answer_to_an_earlier_question_is_none() {
        // What nlmsgerr of an acknowledged request begins with: no error.
        let mut message = [0; HEADER + 4];
        message[..4].copy_from_slice(&((HEADER + 4) as u32).to_ne_bytes());
        message[4..6].copy_from_slice(&(libc::NLMSG_ERROR as u16).to_ne_bytes());
        message[8..12].copy_from_slice(&7u32.to_ne_bytes());
        assert!(read(&message, 8, &mut Waiting::default()).is_none());
        assert!(matches!(read(&message, 7, &mut Waiting::default()), Some(Ok(()))));
    }

    #[test]
    fn no_answer_makes_it_panic() {
        let whole: Vec<u8> = (0..64).flat_map(|number: u16| [(number % 5) as u8, 0, 36, (number % 3) as u8]).collect();
        for length in 0..whole.len() {
            for start in 0..length {
                read(&whole[start..length], 0, &mut Waiting::default());
                statistics(&whole[start..length]);
            }
        }
    }
}
