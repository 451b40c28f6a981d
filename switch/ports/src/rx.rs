//! Batches of frames from the kernel to the pipeline.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use crate::calls::Calls;
use crate::ring::{Ring, SLOTS};

/// Longest frame that is received, in bytes: the largest IP packet with Ethernet header and two VLAN tags.
pub const MAX_FRAME: usize = 65_535 + 14 + 8;

/// Frames taken or sent together, at most.
pub const BATCH: usize = 64;

/// Where a received frame lies.
#[derive(Clone, Copy)]
struct Place {
    start: *const u8,
    length: usize,
    time_ns: u64,
}

/// What a batch did not deliver as a frame, or not as it should be.
#[derive(Debug, Default, Clone, Copy)]
pub struct Oddities {
    /// Frames longer than [`MAX_FRAME`].
    pub oversize: u64,
    /// Frames whose checksum an offload engine was to complete.
    pub partial_checksum: u64,
    /// Long frames that the kernel had no memory for.
    pub dropped: u64,
    /// The kernel had something to say about the interface before it handed over a long frame.
    pub went_down: bool,
}

/// Slots of a ring that are to be given back.
struct Held {
    ring: Arc<Ring>,
    first: usize,
    count: usize,
}

/// Up to [`BATCH`] received frames; one serves every interface in turn.
///
/// Frames of a ring are read in place: the kernel gets their slots back when the batch is cleared or used again.
#[derive(Default)]
pub struct RxBatch {
    /// Made when they are first needed.
    calls: Option<Box<Calls>>,
    held: Option<Held>,
    /// Each points into `calls` or into a slot of `held`, both of which stay as they are until `clear`.
    places: Vec<Place>,
}

// SAFETY: the raw pointers point into memory that belongs to the same value only.
unsafe impl Send for RxBatch {}

impl RxBatch {
    /// Replaces the content by what waits at the socket, or in the ring that it fills.
    ///
    /// No frame waiting is an empty batch, not an error.
    pub(crate) fn receive(&mut self, socket: &OwnedFd, ring: Option<&Arc<Ring>>) -> io::Result<Oddities> {
        self.clear();
        match ring {
            None => self.receive_by_calls(socket),
            Some(ring) => Ok(self.receive_from_ring(socket, ring)),
        }
    }

    fn receive_by_calls(&mut self, socket: &OwnedFd) -> io::Result<Oddities> {
        let calls = self.calls.get_or_insert_default();
        let mut oddities = Oddities::default();
        for number in 0..calls.fetch(socket, 0, BATCH)? {
            if let Some(frame) = calls.frame(number, &mut oddities) {
                self.places.push(Place { start: frame.as_ptr(), length: frame.len(), time_ns: 0 });
            }
        }
        Ok(oddities)
    }

    fn receive_from_ring(&mut self, socket: &OwnedFd, ring: &Arc<Ring>) -> Oddities {
        let (mut oddities, mut count, mut first) = (Oddities::default(), 0, 0);
        while count < BATCH
            && let Some(mut slot) = ring.take()
        {
            if count == 0 {
                first = slot.number();
            }
            debug_assert_eq!((first + count) % SLOTS, slot.number());
            count += 1;
            let time_ns = slot.time_ns();
            if slot.is_at_socket() {
                let calls = self.calls.get_or_insert_default();
                // Buffer by slot, so that long frames of one batch do not meet. An error that waits comes first, and once:
                // the frame must not stay, it would be taken for the next long one.
                let fetched = calls.fetch(socket, count - 1, count).or_else(|_| {
                    oddities.went_down = true;
                    calls.fetch(socket, count - 1, count)
                });
                if fetched.is_ok_and(|frames| frames == 1) {
                    if let Some(frame) = calls.frame(count - 1, &mut oddities) {
                        self.places.push(Place { start: frame.as_ptr(), length: frame.len(), time_ns });
                    }
                } else {
                    oddities.dropped += 1;
                }
            } else if slot.is_cut() {
                oddities.dropped += 1;
            } else {
                oddities.partial_checksum += u64::from(slot.has_partial_checksum());
                let (start, length) = slot.frame(ring);
                self.places.push(Place { start, length, time_ns });
            }
        }
        if count > 0 {
            self.held = Some(Held { ring: Arc::clone(ring), first, count });
        }
        oddities
    }

    /// The frames, in order of arrival.
    pub fn frames(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        // SAFETY: the memory that a place points at is part of this value, and is not written or given back before
        // `clear`, which needs it to be borrowed by nobody.
        self.places.iter().map(|place| unsafe { std::slice::from_raw_parts(place.start, place.length) })
    }

    /// When the kernel received the frames, in nanoseconds since 1970; 0 for those that did not come by a ring.
    pub fn times_ns(&self) -> impl ExactSizeIterator<Item = u64> {
        self.places.iter().map(|place| place.time_ns)
    }

    /// Forgets the frames, and gives their memory back. Do so before waiting: a ring whose newest slot is not given back
    /// counts as readable.
    pub fn clear(&mut self) {
        self.places.clear();
        if let Some(Held { ring, first, count }) = self.held.take() {
            // SAFETY: this batch took them, and the places that pointed at their frames are gone.
            unsafe { ring.give_back(first, count) };
        }
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

impl Drop for RxBatch {
    fn drop(&mut self) {
        self.clear();
    }
}
