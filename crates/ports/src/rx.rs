//! Batches of frames that are received from the kernel and processed by the pipeline.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use crate::calls::Calls;
use crate::ring::{Ring, SLOTS};

/// The length in bytes of the longest frame that is received: the largest IP packet with an Ethernet header and two
/// VLAN tags.
pub const MAX_FRAME: usize = 65_535 + 14 + 8;

/// The largest number of frames that one call receives or sends.
pub const BATCH: usize = 64;

/// The address and length of a received frame in memory, and the time when the kernel received the frame.
#[derive(Clone, Copy)]
struct Place {
    start: *const u8,
    length: usize,
    time_ns: u64,
}

/// What was unusual about one batch: numbers of the frames that were not delivered and of those with an incomplete
/// checksum, and whether the interface went down.
#[derive(Debug, Default, Clone, Copy)]
pub struct Oddities {
    /// Frames longer than [`MAX_FRAME`].
    pub oversize: u64,
    /// Frames whose checksum the sender left to an offload engine.
    pub partial_checksum: u64,
    /// Frames that did not fit their slot and for which the kernel had no memory to queue them at the socket.
    pub dropped: u64,
    /// Whether the socket reported an error before it delivered a long frame, which means that the interface went down.
    pub went_down: bool,
}

/// Slots of a ring that this process will return to the kernel.
struct TakenSlots {
    ring: Arc<Ring>,
    first: usize,
    count: usize,
}

/// Up to [`BATCH`] received frames. One batch object can serve several interfaces, one after another.
///
/// Frames in a ring are read in place. Their slots are returned to the kernel when the batch is cleared or used again.
#[derive(Default)]
pub struct RxBatch {
    /// The buffers for frames that are received from a socket, also those too long for a ring's slot. They are created
    /// when they are first needed.
    calls: Option<Box<Calls>>,
    slots: Option<TakenSlots>,
    /// The frames' places in memory. Each place is in `calls` or in a slot of `slots`; both remain unchanged until
    /// `clear`.
    places: Vec<Place>,
}

// SAFETY: the raw pointers point only into memory that the batch itself owns.
unsafe impl Send for RxBatch {}

impl RxBatch {
    /// Replaces the batch's content by up to [`BATCH`] frames that wait at the socket or, if `ring` is given, in this
    /// ring, which the socket fills. If no frame waits, the batch is empty.
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
                // Each slot has its own buffer, so that long frames of one batch do not overwrite each other. If the
                // socket has a pending error, the first call returns the error, and the second call returns the frame.
                // A frame that stayed at the socket would be mistaken for the next long frame.
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
        // SAFETY: `self` owns the memory that a place points at. The memory is not written or returned before `clear`,
        // which needs exclusive access.
        self.places.iter().map(|place| unsafe { std::slice::from_raw_parts(place.start, place.length) })
    }

    /// Returns, for each frame, when the kernel received it, in nanoseconds since 1970; 0 if the interface has no ring.
    pub fn times_ns(&self) -> impl ExactSizeIterator<Item = u64> {
        self.places.iter().map(|place| place.time_ns)
    }

    /// Discards the frames and returns their slots to the kernel. Call this function before the thread waits for
    /// frames: until the most recently filled slot is returned, the kernel reports the ring as readable.
    pub fn clear(&mut self) {
        self.places.clear();
        if let Some(TakenSlots { ring, first, count }) = self.slots.take() {
            // SAFETY: this batch took the slots, and `places`, which pointed at their frames, was cleared above.
            unsafe { ring.give_back(first, count) };
        }
    }

    /// The number of frames in the batch.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether the batch contains no frame.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }
}

impl Drop for RxBatch {
    fn drop(&mut self) {
        self.clear();
    }
}
