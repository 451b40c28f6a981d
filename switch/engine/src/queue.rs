//! The queue of a packet's further passes through the pipeline. Its buffers are reused by the next packet.

/// Where in the pipeline a pass begins.
#[derive(Clone, Copy)]
pub enum Start {
    /// A pass that begins with the parser. `kind` is the packet's `instance_type`; `fields` is the field list whose
    /// values survive from the pass before.
    Ingress { kind: u64, fields: u16 },
    /// A pass of an egress clone, which begins with egress.
    Egress { port: u32, length: u64, frame_length: u64 },
}

/// A pass that waits in the queue.
pub struct Work {
    pub start: Start,
    /// The values of the field list, field after field, as 64-bit words; for an egress clone, the values of all fields.
    pub words: Vec<u64>,
    /// The whole frame; for an egress clone, the bytes after the headers.
    pub bytes: Vec<u8>,
}

const EMPTY: Work = Work { start: Start::Ingress { kind: 0, fields: 0 }, words: Vec::new(), bytes: Vec::new() };

/// The further passes of one packet, in order. The n-th pass of every packet uses the same buffers, which therefore
/// need not grow once packets of that kind have passed.
#[derive(Default)]
pub struct Queue {
    passes: Vec<Work>,
    /// The number of passes taken.
    taken: usize,
    /// The number of passes added. Elements behind it are buffers of earlier packets.
    added: usize,
}

impl Queue {
    /// Empties the queue for another packet, and frees the buffers of all passes beyond the first `most`.
    pub fn begin(&mut self, most: usize) {
        (self.taken, self.added) = (0, 0);
        self.passes.truncate(most);
    }

    /// The number of passes that wait.
    pub fn len(&self) -> usize {
        self.added - self.taken
    }

    /// Appends a pass and returns it; the caller fills in its words and bytes.
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

    /// Takes the next pass, which the caller gives back when it is done.
    pub fn take(&mut self) -> Option<Work> {
        if self.taken == self.added {
            return None;
        }
        self.taken += 1;
        Some(std::mem::replace(&mut self.passes[self.taken - 1], EMPTY))
    }

    /// Returns the buffers of the pass taken last.
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
