//! Reads and writes bit fields in byte strings, most significant bit first.

use num_bigint::{BigInt, Sign};

use crate::layout::{FieldRef, Slots, limbs, mask64};

/// Reads the big-endian number in the `bytes` (1 to 8) bytes at `at`, which must lie within `data`.
#[inline]
pub fn load(data: &[u8], at: usize, bytes: usize) -> u64 {
    if let Some(word) = data.get(at..at + 8) {
        let mut b = [0; 8];
        b.copy_from_slice(word);
        return u64::from_be_bytes(b) >> (64 - 8 * bytes);
    }
    data[at..at + bytes].iter().fold(0, |v, &b| v << 8 | u64::from(b))
}

/// Reads `width` bits, beginning with bit `bit`, into the words of `row`, least significant word first. The remaining
/// words of `row` become zero.
pub fn read(data: &[u8], bit: usize, width: usize, row: &mut [u64]) {
    row.fill(0);
    let mut remaining = width;
    let mut word = 0;
    while remaining > 0 {
        // Take the least significant bits first, from the end of the field.
        let take = remaining.min(64);
        let start = bit + remaining - take;
        let end = bit + remaining;
        let first = start / 8;
        let last = end.div_ceil(8);
        let drop = last * 8 - end;
        let mut v: u128 = 0;
        for &b in &data[first..last] {
            v = v << 8 | u128::from(b);
        }
        row[word] = (v >> drop) as u64 & mask64(take as u32);
        word += 1;
        remaining -= take;
    }
}

/// Returns a field's value, cut to the field's width (of a variable-length field: its current width), as
/// `ceil(width / 8)` big-endian bytes.
pub fn to_bytes(slots: &Slots, f: FieldRef) -> Vec<u8> {
    let width = if f.varbit { slots[f.slot as usize].min(f.width.into()) as u32 } else { f.width };
    limbs_to_bytes(&slots[usize::from(f.data())..usize::from(f.data()) + f.limbs()], width)
}

/// Returns the value in `row` (words, least significant first), cut to `width` bits, as `ceil(width / 8)` big-endian
/// bytes.
pub fn limbs_to_bytes(row: &[u64], width: u32) -> Vec<u8> {
    let n = width.div_ceil(8) as usize;
    let mut out: Vec<u8> = (0..n).rev().map(|i| (row[i / 8] >> (8 * (i % 8))) as u8).collect();
    if !width.is_multiple_of(8) {
        out[0] &= mask64(width % 8) as u8;
    }
    out
}

/// Returns `value` modulo 2^width (a negative value in two's complement) as words, least significant word first.
pub fn to_limbs(value: &BigInt, width: u32) -> Vec<u64> {
    let n = limbs(width);
    let (sign, digits) = (value.sign(), value.magnitude().to_u64_digits());
    let mut row: Vec<u64> = digits.into_iter().chain(std::iter::repeat(0)).take(n).collect();
    if sign == Sign::Minus {
        let mut carry = true;
        for limb in &mut row {
            let (v, c) = (!*limb).overflowing_add(u64::from(carry));
            (*limb, carry) = (v, c);
        }
    }
    if !width.is_multiple_of(64) {
        row[n - 1] &= (1 << (width % 64)) - 1;
    }
    row
}

/// Appends bits to a byte string; `finish` pads the last byte with zeros.
pub struct BitWriter<'a> {
    out: &'a mut Vec<u8>,
    acc: u64,
    /// The number of bits in `acc`, fewer than 8.
    pending_bits: u32,
}

impl<'a> BitWriter<'a> {
    pub fn new(out: &'a mut Vec<u8>) -> Self {
        BitWriter { out, acc: 0, pending_bits: 0 }
    }

    /// Appends the low `width` (at most 64) bits of `v`.
    #[inline]
    pub fn put(&mut self, v: u64, width: u32) {
        if width == 0 {
            return;
        }
        let v = v & mask64(width);
        if self.pending_bits == 0 && width.is_multiple_of(8) {
            self.out.extend_from_slice(&v.to_be_bytes()[8 - width as usize / 8..]);
            return;
        }
        let mut acc = u128::from(self.acc) << width | u128::from(v);
        let total = self.pending_bits + width;
        let whole_bytes = total / 8;
        self.pending_bits = total % 8;
        let bytes = acc >> self.pending_bits;
        self.out.extend_from_slice(&bytes.to_be_bytes()[16 - whole_bytes as usize..]);
        acc &= u128::from(mask64(self.pending_bits)) * u128::from(self.pending_bits > 0);
        self.acc = acc as u64;
    }

    /// Appends the low `width` bits of the value in `row` (words, least significant first).
    pub fn put_row(&mut self, row: &[u64], width: u32) {
        let top = width as usize / 64;
        if !width.is_multiple_of(64) {
            self.put(row[top], width % 64);
        }
        for &v in row[..top].iter().rev() {
            self.put(v, 64);
        }
    }

    /// Appends a field's value. A variable-length field is written with the width that it was extracted with.
    #[inline]
    pub fn field(&mut self, slots: &Slots, f: FieldRef) {
        if f.narrow() {
            return self.put(slots[f.slot as usize], f.width);
        }
        let width = if f.varbit { (slots[f.slot as usize] as u32).min(f.width) } else { f.width };
        let first = usize::from(f.data());
        self.put_row(&slots[first..first + f.limbs()], width);
    }

    pub fn finish(mut self) {
        if self.pending_bits > 0 {
            self.put(0, 8 - self.pending_bits);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_written_is_read(fields in proptest::collection::vec((any::<u64>(), any::<u64>(), 0u32..=128), 0..20)) {
            let mut out = Vec::new();
            let mut w = BitWriter::new(&mut out);
            for &(low, high, width) in &fields {
                w.put_row(&[low, high], width);
            }
            w.finish();
            let mut bit = 0;
            for &(low, high, width) in &fields {
                let mut row = [0; 2];
                read(&out, bit, width as usize, &mut row);
                prop_assert_eq!(row[0], low & mask64(width));
                prop_assert_eq!(row[1], if width > 64 { high & mask64(width - 64) } else { 0 });
                bit += width as usize;
            }
            prop_assert_eq!(out.len(), bit.div_ceil(8));
        }

        #[test]
        fn load_is_the_same_with_and_without_room(data in proptest::collection::vec(any::<u8>(), 16), at in 0usize..8, n in 1usize..=8) {
            prop_assert_eq!(load(&data, at, n), load(&data[..at + n], at, n));
        }
    }
}
