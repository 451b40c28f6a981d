//! A receive ring that the kernel fills (`TPACKET_V2`). Frames are read in place, without a copy.
//!
//! Packet sockets have three versions of rings. In version 3 frames of any length lie back to back. However, a frame
//! becomes visible only when its block is full or a timer of at least a millisecond expires. In version 2 a frame is
//! visible at once. If a frame does not fit its slot, the kernel also queues the complete frame at the socket, in order
//! of arrival. Such a frame is received from the socket.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use crate::sys;
use crate::vlan::{Tag, VLAN_TAG, reinsert};

/// The size of a slot in bytes: the kernel's headers, room for a VLAN tag, and an Ethernet frame of the usual 1,514
/// bytes. The size is not a power of two, so that slots fall into different cache sets.
const SLOT: usize = 1664;
/// The size in bytes of a block. The kernel allocates the ring in blocks, each contiguous in physical memory.
const BLOCK: usize = 1 << 16;
const SLOTS_IN_BLOCK: usize = BLOCK / SLOT;
const BLOCKS: usize = 128;
/// The number of slots of a ring, which is the number of frames that can wait while the switch is not scheduled.
pub const SLOTS: usize = BLOCKS * SLOTS_IN_BLOCK;

/// `TPACKET_V2` of `linux/if_packet.h`.
const VERSION: libc::c_int = 1;

/// A receive ring, mapped into this process.
pub struct Ring {
    memory: NonNull<u8>,
    /// The number of the slot that this process reads next.
    next: AtomicUsize,
}

// SAFETY: the value owns the mapping. Memory that is shared with the kernel is accessed through atomics. A frame is
// accessed only while this process owns its slot.
unsafe impl Send for Ring {}
// SAFETY: two threads cannot take the same slot, because only `Interface::receive`, which needs exclusive access, takes
// slots of its ring. The other methods of the ring access shared memory only through atomics.
unsafe impl Sync for Ring {}

/// A slot that the kernel has filled.
pub struct Slot<'r> {
    header: &'r libc::tpacket2_hdr,
    number: usize,
}

impl Ring {
    /// Creates the ring of a socket that is not bound yet.
    pub fn new(socket: &OwnedFd) -> io::Result<Self> {
        let packet = |name, value: &libc::c_int| sys::set_option(socket, libc::SOL_PACKET, name, value);
        packet(libc::PACKET_VERSION, &VERSION)?;
        packet(libc::PACKET_RESERVE, &(VLAN_TAG as libc::c_int))?;
        packet(libc::PACKET_COPY_THRESH, &1)?;
        let request = libc::tpacket_req {
            tp_block_size: BLOCK as libc::c_uint,
            tp_block_nr: BLOCKS as libc::c_uint,
            tp_frame_size: SLOT as libc::c_uint,
            tp_frame_nr: SLOTS as libc::c_uint,
        };
        sys::set_option(socket, libc::SOL_PACKET, libc::PACKET_RX_RING, &request)?;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: the call creates a new mapping of the socket's own ring, and does not access other memory of this
        // process.
        let memory = unsafe {
            libc::mmap(std::ptr::null_mut(), BLOCK * BLOCKS, access, libc::MAP_SHARED, socket.as_raw_fd(), 0)
        };
        match NonNull::new(memory.cast::<u8>()) {
            Some(memory) if memory.as_ptr().cast::<libc::c_void>() != libc::MAP_FAILED => {
                Ok(Self { memory, next: AtomicUsize::new(0) })
            }
            _ => Err(io::Error::last_os_error()),
        }
    }

    fn slot(&self, number: usize) -> *mut u8 {
        debug_assert!(number < SLOTS);
        // SAFETY: blocks lie back to back in the mapping, and this slot lies within its block.
        unsafe { self.memory.as_ptr().add(number / SLOTS_IN_BLOCK * BLOCK + number % SLOTS_IN_BLOCK * SLOT) }
    }

    fn status(&self, number: usize) -> &AtomicU32 {
        // SAFETY: a slot starts with the status word of its header. Kernel and process access this word atomically, and
        // the mapping lives as long as the borrow.
        unsafe { AtomicU32::from_ptr(self.slot(number).cast()) }
    }

    /// Whether a frame waits in the ring.
    pub fn is_ready(&self) -> bool {
        let next = self.next.load(Ordering::Relaxed);
        self.status(next).load(Ordering::Acquire) & libc::TP_STATUS_USER != 0
    }

    /// Takes the next slot, if the kernel has filled it. This process owns the slot until it calls [`Self::give_back`].
    pub fn take(&self) -> Option<Slot<'_>> {
        if !self.is_ready() {
            return None;
        }
        let number = self.next.load(Ordering::Relaxed);
        self.next.store((number + 1) % SLOTS, Ordering::Relaxed);
        // SAFETY: the slot starts with this header, aligned to 16 bytes. The kernel wrote the header before the status
        // that `is_ready` has read, and does not access the header until the slot is returned to the kernel.
        let header = unsafe { &*self.slot(number).cast::<libc::tpacket2_hdr>() };
        Some(Slot { header, number })
    }

    /// Returns `count` successive slots to the kernel; the first of these slots has the number `first`.
    ///
    /// # Safety
    /// The slots must be taken, and nothing may refer to their frames any more.
    pub unsafe fn give_back(&self, first: usize, count: usize) {
        for number in first..first + count {
            self.status(number % SLOTS).store(libc::TP_STATUS_KERNEL, Ordering::Release);
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: pointer and length describe the whole mapping, and nothing borrows from the mapping any more.
        unsafe { libc::munmap(self.memory.as_ptr().cast(), BLOCK * BLOCKS) };
    }
}

impl Slot<'_> {
    /// The slot's number in the ring.
    pub fn number(&self) -> usize {
        self.number
    }

    /// Whether the frame did not fit the slot and waits at the socket.
    pub fn is_at_socket(&self) -> bool {
        self.header.tp_status & libc::TP_STATUS_COPY != 0
    }

    /// Whether the frame did not fit the slot. If [`Self::is_at_socket`] returns false for such a frame, the kernel had
    /// no memory to queue the frame at the socket.
    pub fn is_cut(&self) -> bool {
        self.header.tp_snaplen < self.header.tp_len
    }

    /// Whether the sender left the frame's checksum to an offload engine.
    pub fn has_partial_checksum(&self) -> bool {
        self.header.tp_status & libc::TP_STATUS_CSUMNOTREADY != 0
    }

    /// When the kernel received the frame, in nanoseconds since 1970.
    pub fn time_ns(&self) -> u64 {
        u64::from(self.header.tp_sec) * 1_000_000_000 + u64::from(self.header.tp_nsec)
    }

    /// Reinserts the frame's VLAN tag, if the kernel removed it. Returns the address and the length of the frame.
    pub fn frame(&mut self, ring: &Ring) -> (*const u8, usize) {
        let (start, length) = (usize::from(self.header.tp_mac), self.header.tp_snaplen as usize);
        assert!(start >= VLAN_TAG && start + length <= SLOT, "the kernel's frame leaves its slot");
        let tag = Tag::of(self.header.tp_status, self.header.tp_vlan_tpid, self.header.tp_vlan_tci);
        // SAFETY: the assertion has checked that the range lies within the slot. The range begins after the header,
        // because the kernel leaves PACKET_RESERVE bytes free between header and frame. This process owns the slot.
        let room = unsafe {
            let start = ring.slot(self.number).add(start - VLAN_TAG);
            std::slice::from_raw_parts_mut(start, VLAN_TAG + length)
        };
        let frame = reinsert(tag, room);
        (frame.as_ptr(), frame.len())
    }
}
