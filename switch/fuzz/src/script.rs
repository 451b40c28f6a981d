//! The fuzzer's bytes, read off bit by bit.

/// Reads numbers and bytes off the fuzzer's input; at its end everything is zero.
pub struct Script<'a>(pub &'a [u8]);

impl<'a> Script<'a> {
    /// Nothing is left.
    pub fn is_over(&self) -> bool {
        self.0.is_empty()
    }

    /// The next byte.
    pub fn byte(&mut self) -> u8 {
        self.bytes(1).first().copied().unwrap_or(0)
    }

    /// The next bytes; fewer when the input ends.
    pub fn bytes(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(count.min(self.0.len()));
        self.0 = rest;
        taken
    }

    /// A number below `below`.
    pub fn below(&mut self, below: usize) -> usize {
        let number = usize::from(self.byte()) << 8 | usize::from(self.byte());
        number % below.max(1)
    }
}
