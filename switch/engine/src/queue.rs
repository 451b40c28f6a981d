//! Passes of a packet that are still to be made, in buffers that the next packet uses again.

/// Where a pass begins.
#[derive(Clone, Copy)]
pub enum Start {
    /// With the parser: `kind` is its `instance_type`, `fields` the field list that survives.
    Ingress { kind: u64, fields: u16 },
    /// An egress clone, with egress.
    Egress { port: u32, length: u64, frame_length: u64 },
}

/// A pass still to be made.
pub struct Work {
    pub start: Start,
    /// Words of the field list, one field after the other; of an egress clone, all values.
    pub words: Vec<u64>,
    /// The frame; of an egress clone, what follows the headers.
    pub bytes: Vec<u8>,
}

const EMPTY: Work = Work { start: Start::Ingress { kind: 0, fields: 0 }, words: Vec::new(), bytes: Vec::new() };

/// One packet's passes, in order. The n-th pass of every packet has the same buffers, so they have their size once such
/// packets have been seen.
#[derive(Default)]
pub struct Queue {
    passes: Vec<Work>,
    /// Passes taken.
    taken: usize,
    /// Passes added; what lies behind them is left of other packets.
    added: usize,
}

impl Queue {
    /// Empties it for another packet, and gives back the memory of more than so many passes.
    pub fn begin(&mut self, most: usize) {
        (self.taken, self.added) = (0, 0);
        self.passes.truncate(most);
    }

    /// Passes that wait.
    pub fn len(&self) -> usize {
        self.added - self.taken
    }

    /// Another pass at the end, its words and bytes to be filled in.
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

    /// The next pass, to be given back when it is done.
    pub fn take(&mut self) -> Option<Work> {
        if self.taken == self.added {
            return None;
        }
        self.taken += 1;
        Some(std::mem::replace(&mut self.passes[self.taken - 1], EMPTY))
    }

    /// The pass taken last is done.
    pub fn give_back(&mut self, work: Work) {
        self.passes[self.taken - 1] = work;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_packet_has_the_buffers_of_so_many_passes() {
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
