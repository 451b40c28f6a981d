//! Receives frames by `recvmmsg` into memory of this process: each frame is copied once, and each batch needs one call.

use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, OwnedFd};

use crate::rx::{BATCH, MAX_FRAME, Oddities};
use crate::vlan::{Tag, VLAN_TAG, reinsert};

/// The distance in bytes between the starts of two receive buffers. The distance is not a power of two, so that the
/// first bytes of frames fall into different cache sets.
const SLOT: usize = 65_664;
const CONTROL: usize = 64;

const _: () = assert!(SLOT >= VLAN_TAG + MAX_FRAME);

/// The control messages of one frame, with the alignment that the kernel's header structures need.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
struct Control([u8; CONTROL]);

/// Buffers for up to [`BATCH`] frames.
pub struct Calls {
    buffer: Vec<u8>,
    /// Control messages of the buffers. `headers` contains pointers into `control` and into `vectors`.
    control: Vec<Control>,
    vectors: Vec<libc::iovec>,
    headers: Vec<libc::mmsghdr>,
}

impl Default for Calls {
    fn default() -> Self {
        let mut buffer = vec![0; BATCH * SLOT];
        let mut control = vec![Control([0; CONTROL]); BATCH];
        let mut vectors: Vec<libc::iovec> = buffer
            .chunks_exact_mut(SLOT)
            .map(|slot| libc::iovec { iov_base: slot[VLAN_TAG..].as_mut_ptr().cast(), iov_len: MAX_FRAME })
            .collect();
        let headers = vectors
            .iter_mut()
            .zip(&mut control)
            .map(|(vector, control)| {
                // SAFETY: all-zero is a valid value of this plain structure.
                let mut header: libc::mmsghdr = unsafe { zeroed() };
                header.msg_hdr.msg_iov = vector;
                header.msg_hdr.msg_iovlen = 1;
                header.msg_hdr.msg_control = control.0.as_mut_ptr().cast();
                header
            })
            .collect();
        Self { buffer, control, vectors, headers }
    }
}

impl Calls {
    /// Receives waiting frames from the socket into the buffers `first..end`. Returns the number of frames, which is 0
    /// if no frame waits.
    pub fn fetch(&mut self, socket: &OwnedFd, first: usize, end: usize) -> io::Result<usize> {
        debug_assert_eq!(self.vectors.len(), self.control.len());
        let headers = &mut self.headers[first..end];
        for header in headers.iter_mut() {
            header.msg_hdr.msg_controllen = CONTROL as _;
            header.msg_hdr.msg_flags = 0;
        }
        // SAFETY: every header points at a buffer and a control block that `self` owns, and contains their true
        // lengths. No other code accesses these buffers and control blocks during the call.
        let count = unsafe {
            libc::recvmmsg(
                socket.as_raw_fd(),
                headers.as_mut_ptr(),
                headers.len() as libc::c_uint,
                libc::MSG_DONTWAIT,
                std::ptr::null_mut(),
            )
        };
        usize::try_from(count).or_else(|_| {
            let error = io::Error::last_os_error();
            match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(0),
                _ => Err(error),
            }
        })
    }

    /// Returns the frame in buffer `number`, and reinserts the VLAN tag if the kernel removed it. Returns `None` if the
    /// frame was truncated. Counts truncated frames and incomplete checksums in `oddities`.
    pub fn frame(&mut self, number: usize, oddities: &mut Oddities) -> Option<&[u8]> {
        let header = &self.headers[number];
        if header.msg_hdr.msg_flags & libc::MSG_TRUNC != 0 {
            oddities.oversize += 1;
            return None;
        }
        let length = header.msg_len as usize;
        let aux = auxiliary(&header.msg_hdr);
        let status = aux.map_or(0, |aux| aux.tp_status);
        if status & libc::TP_STATUS_CSUMNOTREADY != 0 {
            oddities.partial_checksum += 1;
        }
        let tag = aux.and_then(|aux| Tag::of(status, aux.tp_vlan_tpid, aux.tp_vlan_tci));
        let slot = number * SLOT;
        Some(reinsert(tag, &mut self.buffer[slot..slot + VLAN_TAG + length]))
    }
}

/// Returns the auxiliary data that the kernel attached to a received frame, such as the VLAN tag; `None` if the kernel
/// attached no such data.
fn auxiliary(header: &libc::msghdr) -> Option<libc::tpacket_auxdata> {
    // SAFETY: the kernel filled the control block and set its length. The macros stay within this length, and every bit
    // pattern is a valid value of the structure that is read.
    unsafe {
        let mut message = libc::CMSG_FIRSTHDR(header);
        while !message.is_null() {
            let long_enough =
                (*message).cmsg_len as usize >= libc::CMSG_LEN(size_of::<libc::tpacket_auxdata>() as u32) as usize;
            if (*message).cmsg_level == libc::SOL_PACKET && (*message).cmsg_type == libc::PACKET_AUXDATA && long_enough
            {
                return Some(libc::CMSG_DATA(message).cast::<libc::tpacket_auxdata>().read_unaligned());
            }
            message = libc::CMSG_NXTHDR(header, message);
        }
    }
    None
}
