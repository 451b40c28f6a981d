//! A queue for the passes of a packet through the pipeline that follow its first pass. The next packet reuses the
//! queue's buffers.

/// The stage of the pipeline with which a pass begins.
#[derive(Clone, Copy)]
pub enum Start {
    /// A pass that begins with the parser. `kind` is the packet's `instance_type`. `fields` is the field list whose
    /// fields keep their values from the previous pass.
    Ingress { kind: u64, fields: u16 },
    /// A pass of an egress clone, which begins with egress. `length` and `frame_length` are the values of
    /// [`Machine::packet_length`](crate::machine::Machine::packet_length) and
    /// [`Machine::frame_length`](crate::machine::Machine::frame_length), in bytes.
    Egress { port: u32, length: u64, frame_length: u64 },
}

/// A pass that waits in the queue.
pub struct Work {
    pub start: Start,
    /// The values of the field list's fields, in order, as 64-bit words. For an egress clone, the values of all fields.
    pub words: Vec<u64>,
    /// The complete frame. For an egress clone, the bytes after the headers.
    pub bytes: Vec<u8>,
}

const EMPTY: Work = Work { start: Start::Ingress { kind: 0, fields: 0 }, words: Vec::new(), bytes: Vec::new() };

/// The passes of one packet after its first pass, in order. The n-th pass of a packet reuses the buffers of the n-th
/// pass of earlier packets. Therefore buffers do not grow any more once similar packets have been processed.
#[derive(Default)]
pub struct Queue {
    passes: Vec<Work>,
    /// The number of passes that were taken from the queue.
    taken: usize,
    /// The number of passes that were added to the queue. The elements of `passes` from this index on are buffers of
    /// earlier packets.
    added: usize,
}

impl Queue {
    /// Empties the queue for another packet, and frees the buffers of all passes after the first `most` passes.
    pub fn begin(&mut self, most: usize) {
        (self.taken, self.added) = (0, 0);
        self.passes.truncate(most);
    }

    /// Returns the number of passes in the queue.
    pub fn len(&self) -> usize {
        self.added - self.taken
    }

    /// Appends a pass and returns it. The caller must fill in the pass's words and bytes.
    pub fn add(&mut self, start: Start) -> &mut Work {
        if self.added == self.passes.len() {
            self.passes.push(EMPTY);
        }
        let work = &mut self.passes[self.added];
        self.added += 1;
        work.start = start;
        work.words.clear();
        work.bytes.clear();
        work
    }

    /// Takes the next pass from the queue; returns `None` if the queue is empty. After the pass, the caller must return
    /// its buffers by [`Queue::give_back`].
    pub fn take(&mut self) -> Option<Work> {
        if self.taken == self.added {
            return None;
        }
        self.taken += 1;
        Some(std::mem::replace(&mut self.passes[self.taken - 1], EMPTY))
    }

    /// Returns the buffers of the last taken pass to the queue.
    pub fn give_back(&mut self, work: Work) {
        self.passes[self.taken - 1] = work;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_packet_reuses_the_buffers_of_the_first_passes() {
        let mut queue = Queue::default();
        for _ in 0..2 {
            queue.begin(2);
            for port in 0..3 {
                let start = Start::Egress { port, length: 0, frame_length: 0 };
                queue.add(start).bytes.extend([port as u8; 100]);
            }
            while let Some(work) = queue.take() {
                let Start::Egress { port, .. } = work.start else { panic!("a pass that was not added") };
                assert_eq!(work.bytes, [port as u8; 100]);
                queue.give_back(work);
            }
        }
        queue.begin(2);
        assert_eq!(queue.passes.iter().map(|w| w.bytes.capacity()).collect::<Vec<_>>(), [100, 100]);
        assert_eq!(queue.len(), 0);
    }
}
