//! Outgoing frames, concatenated in one buffer.

/// Frames to be sent, in this order.
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

    /// Returns the number of frames.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns whether there is no frame.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Removes all frames, without freeing their memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }
}
