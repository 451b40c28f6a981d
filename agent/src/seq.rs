//! Sequence numbers of TCP, which wrap around (RFC 9293, section 3.4).

use std::ops::{Add, AddAssign, Sub};

/// A sequence number. A number `a` precedes a number `b` if the difference `b` - `a`, modulo 2^32, is 1 to 2^31.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Seq(pub u32);

impl Seq {
    /// Returns whether this number precedes `other`.
    pub fn is_before(self, other: Seq) -> bool {
        self - other < 0
    }

    /// Returns the later of two numbers.
    pub fn later(self, other: Seq) -> Seq {
        if self.is_before(other) { other } else { self }
    }

    /// Returns the earlier of two numbers.
    pub fn earlier(self, other: Seq) -> Seq {
        if self.is_before(other) { self } else { other }
    }

    /// Returns the number of bytes from `start` to this number; 0 if this number precedes `start`.
    pub fn since(self, start: Seq) -> usize {
        (self - start).max(0) as usize
    }
}

impl Add<u32> for Seq {
    type Output = Seq;

    fn add(self, count: u32) -> Seq {
        Seq(self.0.wrapping_add(count))
    }
}

impl AddAssign<u32> for Seq {
    fn add_assign(&mut self, count: u32) {
        *self = *self + count;
    }
}

impl Sub<u32> for Seq {
    type Output = Seq;

    fn sub(self, count: u32) -> Seq {
        Seq(self.0.wrapping_sub(count))
    }
}

impl Sub for Seq {
    type Output = i32;

    fn sub(self, other: Seq) -> i32 {
        self.0.wrapping_sub(other.0) as i32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_wrap() {
        let (low, high) = (Seq(u32::MAX - 1), Seq(3));
        assert!(low.is_before(high) && !high.is_before(low) && !low.is_before(low));
        assert_eq!((high - low, high.since(low), low.since(high)), (5, 5, 0));
        assert_eq!((low.later(high), low.earlier(high), low + 5, high - 5), (high, low, high, low));
    }
}
