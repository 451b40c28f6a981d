//! Batches of frames that the pipeline has produced and that the kernel sends.

use std::io;
use std::mem::zeroed;
use std::os::fd::{AsRawFd, OwnedFd};

use crate::rx::BATCH;

/// Frames that wait to be sent through one interface. One buffer contains all frames without gaps.
#[derive(Default)]
pub struct TxBatch {
    buffer: Vec<u8>,
    ends: Vec<usize>,
    vectors: Vec<libc::iovec>,
    headers: Vec<libc::mmsghdr>,
}

// SAFETY: the raw pointers in `vectors` and `headers` are only used inside `send`, which sets them before their use.
unsafe impl Send for TxBatch {}

/// The result of sending one or several frames.
pub enum Sent {
    /// The kernel accepted frames for sending.
    Taken {
        /// The number of frames.
        frames: u64,
        /// The number of bytes of these frames.
        bytes: u64,
    },
    /// The kernel refused one frame.
    Refused(io::Error),
}

impl TxBatch {
    /// Appends a frame whose beginning is `head` and whose end is `tail`.
    pub fn push(&mut self, head: &[u8], tail: &[u8]) {
        self.buffer.extend_from_slice(head);
        self.buffer.extend_from_slice(tail);
        self.ends.push(self.buffer.len());
    }

    /// The number of frames in the batch.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether the batch contains no frame.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The frames, in the order in which they were added.
    pub fn frames(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        (0..self.ends.len()).map(|number| &self.buffer[self.range(number)])
    }

    fn range(&self, number: usize) -> std::ops::Range<usize> {
        let start = if number == 0 { 0 } else { self.ends[number - 1] };
        start..self.ends[number]
    }

    /// Removes the frames from the batch. The memory is reused for the next batch.
    pub fn clear(&mut self) {
        self.buffer.clear();
        self.ends.clear();
    }

    /// Sends every frame and reports each result. If the kernel refuses a frame, the following frames are still sent.
    ///
    /// If the kernel stops after some frames, it does not report why the next frame failed. `is_lost_at_link` decides,
    /// by the length of the failed frame, whether the link dropped the frame. A frame that the link dropped counts as
    /// refused and must not be sent again. Any other frame is sent again, so that the kernel reports the reason.
    pub fn send(&mut self, socket: &OwnedFd, is_lost_at_link: impl Fn(usize) -> bool, mut report: impl FnMut(Sent)) {
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
            let requested = rest.len().min(BATCH);
            // SAFETY: each header points at one element of `vectors`, which points at one frame in `buffer`. Headers,
            // vectors and frames are not changed before the call returns.
            let count = unsafe {
                libc::sendmmsg(socket.as_raw_fd(), rest.as_mut_ptr(), requested as libc::c_uint, libc::MSG_DONTWAIT)
            };
            if count > 0 {
                let count = count as usize;
                let bytes = rest[..count].iter().map(|header| u64::from(header.msg_len)).sum();
                report(Sent::Taken { frames: count as u64, bytes });
                next += count;
                if count < requested && is_lost_at_link(self.range(next).len()) {
                    report(Sent::Refused(io::Error::from_raw_os_error(libc::ENOBUFS)));
                    next += 1;
                }
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
