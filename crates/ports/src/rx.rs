//! Batches of frames from the kernel to the pipeline.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use crate::calls::Calls;
use crate::ring::{Ring, SLOTS};

/// The longest frame that is received, in bytes: the largest IP packet with an Ethernet header and two VLAN tags.
pub const MAX_FRAME: usize = 65_535 + 14 + 8;

/// The most frames that are received or sent together.
pub const BATCH: usize = 64;

/// The place of a received frame in memory, and when it was received.
#[derive(Clone, Copy)]
struct Place {
    start: *const u8,
    length: usize,
    time_ns: u64,
}

/// Counts of frames in a batch that were not delivered, or not as expected.
#[derive(Debug, Default, Clone, Copy)]
pub struct Oddities {
    /// Frames longer than [`MAX_FRAME`].
    pub oversize: u64,
    /// Frames whose checksum the sender left to an offload engine.
    pub partial_checksum: u64,
    /// Long frames for which the kernel had no memory.
    pub dropped: u64,
    /// Whether the socket reported an error before it delivered a long frame, which means that the interface went down.
    pub went_down: bool,
}

/// Slots of a ring that are to be returned to the kernel.
struct TakenSlots {
    ring: Arc<Ring>,
    first: usize,
    count: usize,
}

/// Up to [`BATCH`] received frames. One batch can serve several interfaces, one after the other.
///
/// Frames in a ring are read in place: their slots are returned to the kernel when the batch is cleared or used again.
#[derive(Default)]
pub struct RxBatch {
    /// Created when they are first needed.
    calls: Option<Box<Calls>>,
    slots: Option<TakenSlots>,
    /// Each place points into `calls` or into a slot of `slots`, both of which stay unchanged until `clear`.
    places: Vec<Place>,
}

// SAFETY: the raw pointers point only into memory that the same value owns.
unsafe impl Send for RxBatch {}

impl RxBatch {
    /// Replaces the batch's content by the frames that wait at the socket, or in the ring that the socket fills. If no
    /// frame waits, the batch is empty.
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
                // Each slot has a buffer of its own, so that long frames of one batch do not overwrite each other. A
                // pending error of the socket is reported once and before the frame. The frame must be received now: if
                // it stayed, it would be mistaken for the next long frame.
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
            self.slots = Some(TakenSlots { ring: Arc::clone(ring), first, count });
        }
        oddities
    }

    /// The frames, in order of arrival.
    pub fn frames(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        // SAFETY: the memory that a place points at is owned by this value. It is not written or returned before
        // `clear`, which needs exclusive access.
        self.places.iter().map(|place| unsafe { std::slice::from_raw_parts(place.start, place.length) })
    }

    /// When the kernel received the frames, in nanoseconds since 1970; 0 for frames that were not received through a
    /// ring.
    pub fn times_ns(&self) -> impl ExactSizeIterator<Item = u64> {
        self.places.iter().map(|place| place.time_ns)
    }

    /// Discards the frames and returns their memory. Do so before waiting: a ring whose newest slot has not been
    /// returned counts as readable.
    pub fn clear(&mut self) {
        self.places.clear();
        if let Some(TakenSlots { ring, first, count }) = self.slots.take() {
            // SAFETY: this batch took the slots, and the places that pointed at their frames are gone.
            unsafe { ring.give_back(first, count) };
        }
    }

    /// The number of frames.
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
