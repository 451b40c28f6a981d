//! The keys of tables, packed into 64-bit words.

use crate::layout::{FieldRef, Slot, Slots, limbs, mask64};
use crate::program::{KeyInfo, MatchKind};
use crate::table::trie::STRIDE;

/// The field of the packet from which a key field is read.
pub struct Source {
    pub field: FieldRef,
    /// The validity slot of the field's header. While the header is not valid, the key contains zero, like in BMv2.
    /// `None` if the field is always valid.
    pub valid: Option<Slot>,
    /// The mask that the program applies to the field, if any.
    pub mask: Option<Vec<u64>>,
}

/// The position of a field in the packed key. A narrow field is never split over two words, and a wide field has its
/// own words.
#[derive(Debug, Clone)]
struct PackedField {
    /// The index of the field in the table's key.
    field: usize,
    slot: Slot,
    /// The validity slot of the field's header, as in [`Source::valid`].
    valid: Option<Slot>,
    width: u32,
    word: usize,
    shift: u32,
    /// The number 64 - width for a narrow field; 0 for wide fields.
    m: u8,
    limbs: usize,
    /// Whether this field is the first field in its word.
    first: bool,
}

/// The layout of a table's packed key. Fields are packed in their order, but longest-prefix fields are packed last.
/// Therefore the exact fields and the prefix form one longer prefix.
#[derive(Debug, Clone)]
pub struct KeyLayout {
    packed_fields: Vec<PackedField>,
    pub words: usize,
    /// The program's masks in the packed form. The masks of fields without a mask are all ones.
    mask: Vec<u64>,
    /// Whether the program applies a mask to any field.
    pub masked: bool,
}

/// The contribution of a slot to a word of a packed key: `(slot & mask) << shift`, or 0 while the slot `valid` is 0.
/// The sum of a word's contributions is then masked with `word_mask`.
#[derive(Debug, Clone, Copy)]
pub struct KeyTerm {
    pub slot: Slot,
    pub valid: Option<Slot>,
    pub mask: u64,
    pub shift: u32,
    pub word: usize,
    pub word_mask: u64,
}

/// One field of an entry's key, which is stored in words of its own and is not packed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RawField {
    Exact(Vec<u64>),
    /// The value and the prefix length.
    Lpm(Vec<u64>, u32),
    /// The value and the mask.
    Ternary(Vec<u64>, Vec<u64>),
    /// The lower and the upper bound, which are part of the range.
    Range(Vec<u64>, Vec<u64>),
}

/// A range that is checked on the packed key. The program's mask is applied to the lower bound, but not to the upper
/// bound. BMv2 behaves in this way too.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Range {
    word: usize,
    limbs: usize,
    shift: u32,
    mask: u64,
    low: Vec<u64>,
    high: Vec<u64>,
}

/// The identity of an entry. The entry matches a key if `key & mask == value` and all ranges contain their fields'
/// values. Of several matching entries, the entry with the highest priority is selected.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RawEntry {
    pub value: Vec<u64>,
    pub mask: Vec<u64>,
    pub ranges: Vec<Range>,
    pub priority: i32,
}

impl KeyLayout {
    pub fn new(keys: &[KeyInfo], sources: &[Source]) -> KeyLayout {
        let mut layout = KeyLayout { packed_fields: Vec::new(), words: 0, mask: Vec::new(), masked: false };
        let mut free = 0;
        let is_lpm = |i: &usize| keys[*i].kind == MatchKind::Lpm;
        let (other_fields, prefixes): (Vec<usize>, Vec<usize>) = (0..keys.len()).partition(|i| !is_lpm(i));
        for field in other_fields.into_iter().chain(prefixes) {
            let (k, Source { field: f, valid, mask }) = (&keys[field], &sources[field]);
            let limbs = limbs(k.width);
            let first = k.width > free;
            if first {
                layout.words += limbs;
                layout.mask.resize(layout.words, 0);
                free = 64;
            }
            let word = layout.words - if first { limbs } else { 1 };
            // Align a prefix to the chunks of the trie's nodes, if the word has enough free bits.
            let pad = if is_lpm(&field) { free % STRIDE } else { 0 };
            free -= if k.width + pad <= free { pad } else { 0 };
            free = free.saturating_sub(k.width);
            let (shift, m) = (free, (64 - k.width.min(64)) as u8);
            let packed =
                PackedField { field, slot: f.slot, valid: *valid, width: k.width, word, shift, m, limbs, first };
            let ones = all_ones(k.width);
            layout.masked |= mask.is_some();
            put_field(&packed, mask.as_ref().unwrap_or(&ones), &mut layout.mask);
            layout.packed_fields.push(packed);
        }
        layout
    }

    /// Returns the indices of the key's words, from the most significant word to the least significant word. The words
    /// of the prefix are last.
    pub fn order(&self) -> Vec<usize> {
        let firsts = self.packed_fields.iter().filter(|p| p.first);
        firsts.flat_map(|p| (p.word..p.word + p.limbs).rev()).collect()
    }

    /// Returns the terms from which the key's words are computed, word by word.
    pub fn terms(&self) -> Vec<KeyTerm> {
        let limb = |p: &PackedField, i: usize| KeyTerm {
            slot: p.slot + i as Slot,
            valid: p.valid,
            mask: if p.limbs == 1 { u64::MAX >> p.m } else { u64::MAX },
            shift: p.shift * u32::from(p.limbs == 1),
            word: p.word + i,
            word_mask: if self.masked { self.mask[p.word + i] } else { u64::MAX },
        };
        self.packed_fields.iter().flat_map(|p| (0..p.limbs).map(move |i| limb(p, i))).collect()
    }

    /// Returns the slots from which the key is built.
    pub fn slots(&self) -> Vec<Slot> {
        self.packed_fields.iter().flat_map(|p| (0..p.limbs as Slot).map(|i| p.slot + i).chain(p.valid)).collect()
    }

    /// Packs the values of the packet's fields into `key`.
    #[inline]
    pub fn build(&self, slots: &Slots, key: &mut [u64]) {
        for p in &self.packed_fields {
            let is_valid = p.valid.is_none_or(|v| slots[usize::from(v)] != 0);
            if p.limbs == 1 {
                let v = if is_valid { (slots[p.slot as usize] & (u64::MAX >> p.m)) << p.shift } else { 0 };
                key[p.word] = if p.first { v } else { key[p.word] | v };
            } else if is_valid {
                let first = p.slot as usize;
                key[p.word..p.word + p.limbs].copy_from_slice(&slots[first..first + p.limbs]);
            } else {
                key[p.word..p.word + p.limbs].fill(0);
            }
        }
        if self.masked {
            for (k, m) in key.iter_mut().zip(&self.mask) {
                *k &= m;
            }
        }
    }

    /// Returns the values of a packed key, field by field. The most significant byte of each value is first.
    pub fn values(&self, key: &[u64]) -> Vec<Vec<u8>> {
        let value = |p: &PackedField| {
            let limbs = &key[p.word..p.word + p.limbs];
            let bytes: Vec<u8> = match limbs {
                [word] => (word >> p.shift & u64::MAX >> p.m).to_be_bytes().into(),
                _ => limbs.iter().rev().flat_map(|limb| limb.to_be_bytes()).collect(),
            };
            bytes[bytes.len() - p.width.div_ceil(8) as usize..].to_vec()
        };
        let mut values = vec![Vec::new(); self.packed_fields.len()];
        for packed in &self.packed_fields {
            values[packed.field] = value(packed);
        }
        values
    }

    /// Returns the mask that the program applies to a field, in words that contain only this field.
    fn static_mask(&self, p: &PackedField) -> Vec<u64> {
        match &self.mask[p.word..p.word + p.limbs] {
            [word] => vec![word >> p.shift & u64::MAX >> p.m],
            limbs => limbs.into(),
        }
    }

    /// Returns the identity of an entry. `fields` must be in the order of the key, and must fit their widths.
    pub fn raw(&self, fields: &[RawField], priority: i32) -> RawEntry {
        let mut e = RawEntry { value: vec![0; self.words], mask: vec![0; self.words], ranges: Vec::new(), priority };
        for p in &self.packed_fields {
            match &fields[p.field] {
                RawField::Exact(v) => {
                    put_field(p, v, &mut e.value);
                    put_field(p, &all_ones(p.width), &mut e.mask);
                }
                RawField::Lpm(v, prefix) => {
                    put_field(p, v, &mut e.value);
                    put_field(p, &prefix_mask(p.width, *prefix), &mut e.mask);
                }
                RawField::Ternary(v, m) => {
                    put_field(p, v, &mut e.value);
                    put_field(p, m, &mut e.mask);
                }
                RawField::Range(low, high) => {
                    let low = low.iter().zip(self.static_mask(p)).map(|(v, m)| v & m).collect();
                    let (mask, high) = (u64::MAX >> p.m, high.clone());
                    e.ranges.push(Range { word: p.word, limbs: p.limbs, shift: p.shift, mask, low, high });
                }
            }
        }
        for (v, m) in e.value.iter_mut().zip(&mut e.mask) {
            *v &= *m;
        }
        for (i, m) in self.mask.iter().enumerate() {
            // Clear the bits that the program masks away, because they never distinguish entries.
            e.value[i] &= m;
            e.mask[i] &= m;
        }
        e
    }

    /// Returns the priority of an entry in a table without given priorities: the length of the entry's prefix in bits,
    /// or 0 if the table's key has no longest-prefix field.
    pub fn lpm_priority(keys: &[KeyInfo], fields: &[RawField]) -> i32 {
        keys.iter()
            .zip(fields)
            .find_map(|(k, f)| match f {
                RawField::Lpm(_, prefix) if k.kind == MatchKind::Lpm => Some(*prefix as i32),
                _ => None,
            })
            .unwrap_or(0)
    }
}

impl Range {
    pub fn holds(&self, key: &[u64]) -> bool {
        if self.limbs == 1 {
            let v = key[self.word] >> self.shift & self.mask;
            return self.low[0] <= v && v <= self.high[0];
        }
        let v = &key[self.word..self.word + self.limbs];
        let at_least = |a: &[u64], b: &[u64]| a.iter().rev().cmp(b.iter().rev()).is_ge();
        at_least(v, &self.low) && at_least(&self.high, v)
    }
}

fn put_field(p: &PackedField, row: &[u64], words: &mut [u64]) {
    if p.limbs == 1 {
        words[p.word] |= (row[0] & (u64::MAX >> p.m)) << p.shift;
    } else {
        words[p.word..p.word + p.limbs].copy_from_slice(row);
    }
}

/// Returns the words of a number with `width` bits that are all set.
pub fn all_ones(width: u32) -> Vec<u64> {
    let mut row = vec![u64::MAX; limbs(width)];
    if !width.is_multiple_of(64)
        && let Some(top) = row.last_mut()
    {
        *top = mask64(width % 64);
    }
    row
}

/// Returns the words of a number with `width` bits, of which the `prefix` most significant bits are set.
pub fn prefix_mask(width: u32, prefix: u32) -> Vec<u64> {
    let zeros = width - prefix;
    let mut row = all_ones(width);
    for (i, limb) in row.iter_mut().enumerate() {
        let below = zeros.saturating_sub(64 * i as u32).min(64);
        *limb &= !mask64(below);
        if below == 0 {
            break;
        }
    }
    row
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes() {
        assert_eq!(prefix_mask(32, 0), [0]);
        assert_eq!(prefix_mask(32, 24), [0xffff_ff00]);
        assert_eq!(prefix_mask(32, 32), [0xffff_ffff]);
        assert_eq!(prefix_mask(128, 0), [0, 0]);
        assert_eq!(prefix_mask(128, 64), [0, u64::MAX]);
        assert_eq!(prefix_mask(128, 65), [1 << 63, u64::MAX]);
        assert_eq!(prefix_mask(128, 128), [u64::MAX, u64::MAX]);
        assert_eq!(prefix_mask(64, 1), [1 << 63]);
    }
}
