//! Big-endian byte strings, which represent values in P4Runtime, and bit fields packed into byte strings.

use crate::fault::{Fault, Outcome};

/// Returns the shortest byte string with the unsigned value of `value`. For the value zero it is one zero byte.
pub fn canonical(value: &[u8]) -> Vec<u8> {
    let significant = trimmed(value);
    if significant.is_empty() { vec![0] } else { significant.to_vec() }
}

/// Checks that a received unsigned value fits into `width` bits and returns it in exactly `ceil(width / 8)` bytes.
///
/// # Errors
/// `OUT_OF_RANGE` for an empty string and for a value that needs more bits.
pub fn unsigned(value: &[u8], width: u32) -> Outcome<Vec<u8>> {
    if value.is_empty() {
        return Err(Fault::out_of_range("the value is empty; give one zero byte for zero"));
    }
    let significant = trimmed(value);
    let used = significant.first().map_or(0, |first| significant.len() as u32 * 8 - first.leading_zeros());
    if used > width {
        return Err(Fault::out_of_range(format!(
            "the value 0x{} needs {used} bits, the field has {width}; give one that fits",
            hex(significant)
        )));
    }
    let mut padded = vec![0; bytes_of(width) - significant.len()];
    padded.extend_from_slice(significant);
    Ok(padded)
}

/// Checks that a received two's complement value fits into `width` bits. Returns these bits in exactly `ceil(width /
/// 8)` bytes, with unused high bits set to zero.
///
/// # Errors
/// `OUT_OF_RANGE` for an empty string and for a value that needs more bits.
pub fn signed(value: &[u8], width: u32) -> Outcome<Vec<u8>> {
    let Some(first) = value.first() else {
        return Err(Fault::out_of_range("the value is empty; give one zero byte for zero"));
    };
    let fill = if first & 0x80 == 0 { 0x00 } else { 0xff };
    let length = bytes_of(width);
    let mut padded = vec![fill; length.saturating_sub(value.len())];
    padded.extend_from_slice(&value[value.len().saturating_sub(length)..]);
    let spare = (length as u32 * 8 - width) as u8;
    // The value fits if all bits above the sign bit equal the sign bit.
    let dropped = &value[..value.len().saturating_sub(length)];
    let head = i16::from(padded[0] as i8) >> (7 - spare).min(7);
    let sign_repeats = head == 0 || head == -1;
    let sign = if head == 0 { 0x00 } else { 0xff };
    if !sign_repeats || dropped.iter().any(|byte| *byte != sign) {
        return Err(Fault::out_of_range(format!(
            "the signed value 0x{} needs more than {width} bits; give one that fits",
            hex(value)
        )));
    }
    padded[0] &= 0xff >> spare;
    Ok(padded)
}

/// Returns the shortest two's complement byte string with the number in the low `width` bits of `value`. `value` has
/// `ceil(width / 8)` bytes; its unused high bits are ignored.
pub fn canonical_signed(value: &[u8], width: u32) -> Vec<u8> {
    let mut bytes = value.to_vec();
    let spare = bytes.len() as u32 * 8 - width;
    if let Some(first) = bytes.first_mut() {
        *first = (((*first << spare) as i8) >> spare) as u8;
    }
    let redundant = bytes
        .windows(2)
        .take_while(|pair| (pair[0] == 0 && pair[1] < 0x80) || (pair[0] == 0xff && pair[1] >= 0x80))
        .count();
    bytes.split_off(redundant)
}

/// Returns the least number of bytes that can contain `width` bits.
pub fn bytes_of(width: u32) -> usize {
    width.div_ceil(8) as usize
}

/// Returns `ceil(width / 8)` bytes of which the low `width` bits are one and the others zero.
pub fn ones(width: u32) -> Vec<u8> {
    let mut value = vec![0xff; bytes_of(width)];
    if let (Some(first), spare @ 1..) = (value.first_mut(), (8 - width % 8) % 8) {
        *first >>= spare;
    }
    value
}

/// Returns a value of `width` bits whose `prefix` most significant bits are one, in `ceil(width / 8)` bytes. The other
/// bits are zero.
pub fn prefix_mask(prefix: u32, width: u32) -> Vec<u8> {
    let mut bits = BitWriter::default();
    bits.push(&ones(prefix), prefix);
    bits.push(&[], width - prefix);
    let (mut bytes, used) = bits.finish();
    shift_right(&mut bytes, bytes_of(width) as u32 * 8 - used);
    bytes
}

fn shift_right(bytes: &mut [u8], by: u32) {
    if by == 0 {
        return;
    }
    let mut carry = 0;
    for byte in bytes {
        let next = *byte << (8 - by);
        *byte = (*byte >> by) | carry;
        carry = next;
    }
}

fn trimmed(value: &[u8]) -> &[u8] {
    let zeros = value.iter().take_while(|byte| **byte == 0).count();
    &value[zeros..]
}

/// Returns the bytes as lower-case hexadecimal digits, without the prefix `0x`.
pub fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Concatenates fields of any width, most significant bit first.
#[derive(Default)]
pub struct BitWriter {
    bytes: Vec<u8>,
    bits: u32,
}

impl BitWriter {
    /// Appends the low `width` bits of a big-endian value. A shorter value is extended with zero bits at the front.
    pub fn push(&mut self, value: &[u8], width: u32) {
        for bit in (0..width).rev() {
            let from_end = (bit / 8) as usize + 1;
            let byte = value.len().checked_sub(from_end).map_or(0, |at| value[at]);
            if self.bits.is_multiple_of(8) {
                self.bytes.push(0);
            }
            if byte >> (bit % 8) & 1 == 1
                && let Some(last) = self.bytes.last_mut()
            {
                *last |= 0x80 >> (self.bits % 8);
            }
            self.bits += 1;
        }
    }

    /// Returns the bytes and the number of bits written. The last byte is padded with zero bits.
    pub fn finish(self) -> (Vec<u8>, u32) {
        (self.bytes, self.bits)
    }
}

/// Returns the `width` bits of `bytes` that start at bit `offset`, as a big-endian value in `ceil(width / 8)` bytes.
/// Bits beyond the end of `bytes` are zero.
pub fn extract(bytes: &[u8], offset: u32, width: u32) -> Vec<u8> {
    let mut value = vec![0; bytes_of(width)];
    let length = value.len();
    for bit in 0..width {
        let at = offset + width - 1 - bit;
        let set = bytes.get((at / 8) as usize).is_some_and(|byte| byte >> (7 - at % 8) & 1 == 1);
        if set {
            value[length - 1 - (bit / 8) as usize] |= 1 << (bit % 8);
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;
    use tonic::Code;

    /// Tests the examples of the section "Examples of Valid Bytestring Encoding" of P4Runtime.
    #[test]
    fn valid_examples() {
        assert_eq!(unsigned(&[0x63], 8).unwrap(), [0x63]);
        assert_eq!(unsigned(&[0x00, 0x63], 16).unwrap(), [0x00, 0x63]);
        assert_eq!(unsigned(&[0x63], 16).unwrap(), [0x00, 0x63]);
        assert_eq!(unsigned(&[0x00, 0x30, 0x64], 16).unwrap(), [0x30, 0x64]);
        assert_eq!(unsigned(&[0x00, 0x00, 0x63], 12).unwrap(), [0x00, 0x63]);
        assert_eq!(signed(&[0x9d], 8).unwrap(), [0x9d]);
        assert_eq!(signed(&[0xff, 0x9d], 8).unwrap(), [0x9d]);
        assert_eq!(signed(&[0xfd, 0x1d], 12).unwrap(), [0x0d, 0x1d]);
        assert_eq!(signed(&[0x00, 0x00], 16).unwrap(), [0x00, 0x00]);
        assert_eq!(signed(&[0x9d], 16).unwrap(), [0xff, 0x9d]);
    }

    /// Tests the examples of the section "Examples of Invalid Bytestring Encoding" of P4Runtime.
    #[test]
    fn invalid_examples() {
        for (value, width) in
            [(&[0x01, 0x63][..], 8), (&[], 8), (&[1, 0, 0x63], 16), (&[0x10, 0x63], 12), (&[0, 0x40, 0x63], 12)]
        {
            assert_eq!(unsigned(value, width).unwrap_err().code, Code::OutOfRange, "{value:?}");
        }
        for (value, width) in [(&[0x00, 0x9d][..], 8), (&[0x8d, 0x1d], 12), (&[], 16), (&[1, 0xff, 0xff], 16)] {
            assert_eq!(signed(value, width).unwrap_err().code, Code::OutOfRange, "{value:?}");
        }
    }

    #[test]
    fn canonical_forms() {
        assert_eq!(canonical(&[0, 0, 0x63]), [0x63]);
        assert_eq!(canonical(&[0, 0]), [0]);
        assert_eq!(canonical_signed(&[0x0d, 0x1d], 12), [0xfd, 0x1d]);
        assert_eq!(canonical_signed(&[0xff, 0x9d], 16), [0x9d]);
        assert_eq!(canonical_signed(&[0x00, 0x9d], 16), [0x00, 0x9d]);
        assert_eq!(canonical_signed(&[0, 0], 9), [0]);
        assert_eq!(canonical_signed(&[1], 1), [0xff]);
    }

    #[test]
    fn fields_are_packed_without_gaps() {
        let mut writer = BitWriter::default();
        writer.push(&[0x01, 0x02], 9);
        writer.push(&[0x05], 3);
        writer.push(&[], 4);
        let (bytes, bits) = writer.finish();
        assert_eq!((bytes.as_slice(), bits), (&[0x81, 0x50][..], 16));
        assert_eq!(extract(&bytes, 0, 9), [0x01, 0x02]);
        assert_eq!(extract(&bytes, 9, 3), [0x05]);
        assert_eq!(extract(&bytes, 14, 6), [0x00]);
    }

    #[test]
    fn masks() {
        assert_eq!(ones(9), [0x01, 0xff]);
        assert_eq!(ones(8), [0xff]);
        assert_eq!(prefix_mask(8, 32), [0xff, 0, 0, 0]);
        assert_eq!(prefix_mask(1, 9), [0x01, 0x00]);
        assert_eq!(prefix_mask(9, 9), [0x01, 0xff]);
        assert_eq!(prefix_mask(0, 9), [0x00, 0x00]);
    }
}
