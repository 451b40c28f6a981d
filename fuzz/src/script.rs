//! The decoder of the fuzzer's bytes, which the fuzz targets share.

/// Decodes numbers and bytes from the fuzzer's input. After the end of the input, all numbers are zero.
pub struct Script<'a>(pub &'a [u8]);

impl<'a> Script<'a> {
    /// Whether the input has no bytes left.
    pub fn is_over(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the next byte, or 0 after the end of the input.
    pub fn byte(&mut self) -> u8 {
        self.bytes(1).first().copied().unwrap_or(0)
    }

    /// Returns the next `count` bytes, or fewer at the end of the input.
    pub fn bytes(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(count.min(self.0.len()));
        self.0 = rest;
        taken
    }

    /// Returns a number less than `below`, made from the next two bytes; returns 0 if `below` is 0.
    pub fn below(&mut self, below: usize) -> usize {
        let number = usize::from(self.byte()) << 8 | usize::from(self.byte());
        number % below.max(1)
    }
}
