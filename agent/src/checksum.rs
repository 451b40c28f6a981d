//! The Internet checksum (RFC 1071), and its incremental update (RFC 1624).

/// A one's complement sum of 16-bit words that is not folded yet.
#[derive(Debug, Clone, Copy, Default)]
pub struct Sum(u64);

impl Sum {
    /// Adds bytes that begin at an even offset; an odd last byte is padded with zero.
    #[must_use]
    pub fn bytes(self, bytes: &[u8]) -> Sum {
        let mut sum = self.0;
        let mut words = bytes.chunks_exact(4);
        for word in &mut words {
            sum += u64::from(u32::from_be_bytes([word[0], word[1], word[2], word[3]]));
        }
        match *words.remainder() {
            [a, b, c] => sum += u64::from(u16::from_be_bytes([a, b])) + (u64::from(c) << 8),
            [a, b] => sum += u64::from(u16::from_be_bytes([a, b])),
            [a] => sum += u64::from(a) << 8,
            _ => {}
        }
        Sum(sum)
    }

    /// Adds a word of 16 bits.
    #[must_use]
    pub fn word(self, word: u16) -> Sum {
        Sum(self.0 + u64::from(word))
    }

    /// Returns the sum, folded to 16 bits.
    pub fn folded(self) -> u16 {
        let mut sum = self.0;
        while sum > 0xffff {
            sum = (sum >> 16) + (sum & 0xffff);
        }
        sum as u16
    }

    /// Returns the checksum: the complement of the sum.
    pub fn checksum(self) -> u16 {
        !self.folded()
    }
}

/// Returns the new value of `checksum` after some of the bytes that it covers have changed. `old` and `new` are the
/// sums of these bytes before and after the change (RFC 1624, equation 3).
pub fn changed(checksum: u16, old: Sum, new: Sum) -> u16 {
    Sum::default().word(!checksum).word(!old.folded()).word(new.folded()).checksum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_rfc_1071() {
        let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(Sum::default().bytes(&bytes).folded(), 0xddf2);
        assert_eq!(Sum::default().bytes(&bytes[..7]).folded(), Sum::default().bytes(&bytes[..6]).word(0xf600).folded());
        assert_eq!(Sum::default().bytes(&bytes[..5]).folded(), Sum::default().bytes(&bytes[..4]).word(0xf400).folded());
    }

    #[test]
    fn a_change_is_followed() {
        // The example of RFC 1624, section 4: one word of the header changes from 0x5555 to 0x3285, and the other words
        // sum up to 0xcd7a.
        let (old, new) = (Sum::default().word(0x5555), Sum::default().word(0x3285));
        assert_eq!(changed(0xdd2f, old, new), 0x0000);
        let mut bytes = [7u8; 60];
        let before = Sum::default().bytes(&bytes);
        bytes[20..24].copy_from_slice(&[0xff, 0xff, 0, 3]);
        let after = Sum::default().bytes(&bytes);
        assert_eq!(changed(before.checksum(), before, after), after.checksum());
    }
}
