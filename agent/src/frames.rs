//! Outgoing frames, concatenated in one buffer.

/// Frames in the order in which they are sent.
#[derive(Debug, Default)]
pub struct Frames {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Frames {
    /// Adds the frame that `write` appends to the buffer.
    pub fn push_with(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.bytes);
        self.ends.push(self.bytes.len());
    }

    /// Iterates over the frames.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        let start = |number: usize| if number == 0 { 0 } else { self.ends[number - 1] };
        (0..self.ends.len()).map(move |number| &self.bytes[start(number)..self.ends[number]])
    }

    /// The number of frames.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is no frame.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Removes all frames; keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }
}
