//! Batches of frames between the kernel and the pipeline, without a copy on the way in.

use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, OwnedFd};

/// Longest frame that is received, in bytes: the largest IP packet with Ethernet header and two VLAN tags.
pub const MAX_FRAME: usize = 65_535 + 14 + 8;

/// Frames fetched or sent by one system call, at most.
pub const BATCH: usize = 64;

const VLAN_TAG: usize = 4;
const MAC_ADDRESSES: usize = 12;
/// Distance of receive buffers; not a power of two, so that first bytes fall into different cache sets.
const SLOT: usize = 65_664;
const CONTROL: usize = 64;
const ETHERTYPE_VLAN: u16 = 0x8100;

const _: () = assert!(SLOT >= VLAN_TAG + MAX_FRAME);

/// Where a received frame lies in the buffer.
#[derive(Clone, Copy)]
struct Place {
    start: usize,
    length: usize,
}

/// Control messages of one frame, aligned as the kernel's headers want it.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
struct Control([u8; CONTROL]);

/// What one receive call did not deliver as a frame.
#[derive(Debug, Default, Clone, Copy)]
pub struct Oddities {
    /// Frames longer than [`MAX_FRAME`].
    pub oversize: u64,
    /// Frames whose checksum an offload engine was to complete.
    pub partial_checksum: u64,
}

/// Buffers for up to [`BATCH`] received frames; one set serves every interface in turn.
pub struct RxBatch {
    buffer: Vec<u8>,
    control: Vec<Control>,
    vectors: Vec<libc::iovec>,
    headers: Vec<libc::mmsghdr>,
    places: Vec<Place>,
}

// SAFETY: the raw pointers in `vectors` and `headers` point into the other vectors of the same value only.
unsafe impl Send for RxBatch {}

impl Default for RxBatch {
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
        Self { buffer, control, vectors, headers, places: Vec::with_capacity(BATCH) }
    }
}

impl RxBatch {
    /// Replaces the content by the frames waiting at the socket, at most `limit` of them.
    ///
    /// No frame waiting is an empty batch, not an error.
    pub fn receive(&mut self, socket: &OwnedFd, limit: usize) -> io::Result<Oddities> {
        self.places.clear();
        let limit = limit.min(BATCH);
        debug_assert_eq!(self.vectors.len(), self.control.len());
        for header in &mut self.headers[..limit] {
            header.msg_hdr.msg_controllen = CONTROL as _;
            header.msg_hdr.msg_flags = 0;
        }
        // SAFETY: every header points at a buffer and a control block of this value, of the lengths it states,
        // and nothing else refers to them during the call.
        let count = unsafe {
            libc::recvmmsg(
                socket.as_raw_fd(),
                self.headers.as_mut_ptr(),
                limit as libc::c_uint,
                libc::MSG_DONTWAIT,
                std::ptr::null_mut(),
            )
        };
        if count < 0 {
            let error = io::Error::last_os_error();
            return match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(Oddities::default()),
                _ => Err(error),
            };
        }
        let mut oddities = Oddities::default();
        for number in 0..usize::try_from(count).unwrap_or(0) {
            self.take(number, &mut oddities);
        }
        Ok(oddities)
    }

    /// Notes where frame `number` lies, with its VLAN tag put back where the kernel took it from.
    fn take(&mut self, number: usize, oddities: &mut Oddities) {
        let header = &self.headers[number];
        if header.msg_hdr.msg_flags & libc::MSG_TRUNC != 0 {
            oddities.oversize += 1;
            return;
        }
        let slot = number * SLOT;
        let length = header.msg_len as usize;
        let aux = auxiliary(&header.msg_hdr);
        let status = aux.map_or(0, |aux| aux.tp_status);
        if status & libc::TP_STATUS_CSUMNOTREADY != 0 {
            oddities.partial_checksum += 1;
        }
        let tag = aux.filter(|_| status & libc::TP_STATUS_VLAN_VALID != 0).map(|aux| {
            let has_type = status & libc::TP_STATUS_VLAN_TPID_VALID != 0;
            (if has_type { aux.tp_vlan_tpid } else { ETHERTYPE_VLAN }, aux.tp_vlan_tci)
        });
        self.places.push(match tag {
            Some((tpid, tci)) if length >= MAC_ADDRESSES => {
                let frame = &mut self.buffer[slot..slot + VLAN_TAG + length];
                insert_tag(frame, tpid, tci);
                Place { start: slot, length: VLAN_TAG + length }
            }
            _ => Place { start: slot + VLAN_TAG, length },
        });
    }

    /// The frames, in order of arrival.
    pub fn frames(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.places.iter().map(|place| &self.buffer[place.start..place.start + place.length])
    }

    /// Forgets the frames.
    pub fn clear(&mut self) {
        self.places.clear();
    }

    /// How many frames there are.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether there is no frame.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }
}

/// The kernel's auxiliary data of a received frame.
fn auxiliary(header: &libc::msghdr) -> Option<libc::tpacket_auxdata> {
    // SAFETY: the kernel filled the control block and set its length; the macros stay within both, and the
    // structure read is plain data of which any value is valid.
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

/// Moves the MAC addresses, which start at byte 4, to the front and puts a VLAN tag behind them.
fn insert_tag(frame: &mut [u8], tpid: u16, tci: u16) {
    frame.copy_within(VLAN_TAG..VLAN_TAG + MAC_ADDRESSES, 0);
    frame[MAC_ADDRESSES..MAC_ADDRESSES + 2].copy_from_slice(&tpid.to_be_bytes());
    frame[MAC_ADDRESSES + 2..MAC_ADDRESSES + 4].copy_from_slice(&tci.to_be_bytes());
}

/// Frames waiting to be sent by one interface, back to back in one buffer.
#[derive(Default)]
pub struct TxBatch {
    buffer: Vec<u8>,
    ends: Vec<usize>,
    vectors: Vec<libc::iovec>,
    headers: Vec<libc::mmsghdr>,
}

// SAFETY: the raw pointers in `vectors` and `headers` are only used inside `send`, which sets them first.
unsafe impl Send for TxBatch {}

/// What became of one frame, or of several in a row.
pub enum Sent {
    /// The kernel took this many frames with this many bytes together.
    Taken {
        /// Frames.
        frames: u64,
        /// Bytes of these frames.
        bytes: u64,
    },
    /// The kernel refused one frame.
    Refused(io::Error),
}

impl TxBatch {
    /// Adds a frame given in two parts.
    pub fn push(&mut self, head: &[u8], tail: &[u8]) {
        self.buffer.extend_from_slice(head);
        self.buffer.extend_from_slice(tail);
        self.ends.push(self.buffer.len());
    }

    /// How many frames wait.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether no frame waits.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The frames, in the order they were added.
    pub fn frames(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        (0..self.ends.len()).map(|number| &self.buffer[self.range(number)])
    }

    fn range(&self, number: usize) -> std::ops::Range<usize> {
        let start = if number == 0 { 0 } else { self.ends[number - 1] };
        start..self.ends[number]
    }

    /// Forgets the frames; the memory stays for the next batch.
    pub fn clear(&mut self) {
        self.buffer.clear();
        self.ends.clear();
    }

    /// Sends every frame and reports what became of each; a frame that is refused does not stop the others.
    pub fn send(&mut self, socket: &OwnedFd, mut report: impl FnMut(Sent)) {
        self.vectors.clear();
        self.headers.clear();
        for number in 0..self.ends.len() {
            let range = self.range(number);
            self.vectors
                .push(libc::iovec { iov_base: self.buffer[range.clone()].as_mut_ptr().cast(), iov_len: range.len() });
        }
        for vector in &mut self.vectors {
            // SAFETY: all-zero is a valid value of this plain structure.
            let mut header: libc::mmsghdr = unsafe { zeroed() };
            header.msg_hdr.msg_iov = vector;
            header.msg_hdr.msg_iovlen = 1;
            self.headers.push(header);
        }
        let mut next = 0;
        while next < self.headers.len() {
            let rest = &mut self.headers[next..];
            // SAFETY: each header points at one element of `vectors`, which points at one frame in `buffer`;
            // none of them is touched before the call returns.
            let count = unsafe {
                libc::sendmmsg(
                    socket.as_raw_fd(),
                    rest.as_mut_ptr(),
                    rest.len().min(BATCH) as libc::c_uint,
                    libc::MSG_DONTWAIT,
                )
            };
            if count > 0 {
                let count = count as usize;
                let bytes = rest[..count].iter().map(|header| u64::from(header.msg_len)).sum();
                report(Sent::Taken { frames: count as u64, bytes });
                next += count;
                continue;
            }
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                report(Sent::Refused(error));
                next += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tag_goes_behind_the_addresses() {
        let mut frame = [0u8; 20];
        for (number, byte) in frame[4..].iter_mut().enumerate() {
            *byte = number as u8;
        }
        insert_tag(&mut frame, 0x8100, 0x2005);
        let mut expected: Vec<u8> = (0..12).collect();
        expected.extend([0x81, 0x00, 0x20, 0x05, 12, 13, 14, 15]);
        assert_eq!(frame.as_slice(), expected);
    }

    #[test]
    fn frames_keep_order_and_bounds() {
        let mut batch = TxBatch::default();
        batch.push(b"ab", b"c");
        batch.push(b"", b"");
        batch.push(b"d", b"");
        let frames: Vec<&[u8]> = batch.frames().collect();
        assert_eq!(frames, [b"abc".as_slice(), b"", b"d"]);
        batch.clear();
        assert!(batch.is_empty());
    }
}
