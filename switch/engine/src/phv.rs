//! The packet header vector at run time: header stacks, and the conversion of headers from and to a packet's bytes.

use crate::bits::{self, BitWriter};
use crate::layout::{FieldRef, Header, HeaderType, Layout, Slot, Slots, mask64, sign_extend};

/// The position of a field inside a word of up to eight bytes of the packet.
#[derive(Debug, Clone, Copy)]
pub struct WordField {
    /// A mask with the low `width` bits set.
    mask: u64,
    pub slot: Slot,
    pub shift: u8,
    /// The number 64 - width: a shift left and right by `m` bits cuts a value to the field's width.
    pub m: u8,
    pub signed: bool,
}

/// Up to eight consecutive bytes of a header. They contain complete fields, or a part of one field wider than 64 bits.
#[derive(Debug, Clone)]
pub struct Word {
    pub bytes: u8,
    fields: Vec<WordField>,
}

impl Word {
    pub fn fields(&self) -> &[WordField] {
        &self.fields
    }

    /// Combines the fields of the header whose first slot is `base`, and returns the word's bytes as a number.
    #[inline]
    pub fn value(&self, slots: &Slots, base: Slot) -> u64 {
        let shifted = |p: &WordField| (slots[usize::from(base.wrapping_add(p.slot))] & p.mask) << p.shift;
        self.fields.iter().fold(0, |v, p| v | shifted(p))
    }
}

/// The buffer into which headers are deparsed. It has room for the program's maximum header length.
pub struct Head {
    bytes: Box<[u8]>,
    length: usize,
    /// A reused buffer for a header that is written bit by bit.
    bits: Vec<u8>,
}

impl Head {
    /// Allocates a buffer for up to `most` bytes of headers.
    pub fn new(most: usize) -> Head {
        Head { bytes: vec![0; most + 8].into_boxed_slice(), length: 0, bits: Vec::new() }
    }

    pub fn clear(&mut self) {
        self.length = 0;
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    /// Returns the address of the buffer's first byte, for machine code, which never writes beyond the buffer.
    pub fn start(&mut self) -> *mut u8 {
        self.bytes.as_mut_ptr()
    }

    /// Sets the number of bytes that the buffer contains: to rewind the buffer, or after machine code has written to
    /// it.
    pub fn cut(&mut self, length: usize) {
        self.length = length.min(self.bytes.len());
    }

    /// Appends the low `n` (1 to 8) bytes of `v`, most significant byte first.
    #[inline]
    pub fn put(&mut self, v: u64, n: usize) {
        let at = self.length;
        self.bytes[at..at + 8].copy_from_slice(&(v << (64 - 8 * n)).to_be_bytes());
        self.length += n;
    }

    /// Appends the low `n` bytes of a value whose words are in `row`, least significant word first.
    pub fn put_row(&mut self, row: &[u64], n: usize) {
        if !n.is_multiple_of(8) {
            self.put(row[n / 8], n % 8);
        }
        for &v in row[..n / 8].iter().rev() {
            self.put(v, 8);
        }
    }

    pub fn put_bytes(&mut self, bytes: &[u8]) {
        self.bytes[self.length..self.length + bytes.len()].copy_from_slice(bytes);
        self.length += bytes.len();
    }
}

/// The procedure by which headers of one type are read from a packet and written to a packet.
#[derive(Debug, Clone)]
pub struct HeaderPlan {
    /// The length of the header in bytes, without the variable-length field.
    pub fixed_bytes: usize,
    /// The maximum length in bytes, with the variable-length field; 0 if the program defines no limit.
    pub max_bytes: usize,
    pub varbit: Option<Slot>,
    /// All fields except a variable-length field at the end, grouped into words. `None` if the header must be read and
    /// written bit by bit.
    words: Option<Vec<Word>>,
    /// The fields of `words` that must be sign-extended.
    signed: Vec<WordField>,
    fields: Vec<FieldRef>,
}

/// A header of the program at run time.
#[derive(Debug, Clone)]
pub struct HeaderAtRun {
    pub base: Slot,
    pub valid: Slot,
    pub slots: u16,
    pub plan: u16,
    pub union_others: Vec<Slot>,
    /// The first slot of the header's received words, as in [`Header::raw`].
    pub raw: Option<Slot>,
}

/// A header stack, with the first slot of each of its headers.
#[derive(Debug, Clone)]
pub struct StackAt {
    pub next: Slot,
    pub bases: Vec<Slot>,
    pub headers: Vec<u16>,
}

impl StackAt {
    /// Returns the first slot of the last valid element, or `None` if the stack is empty.
    pub fn last(&self, slots: &Slots) -> Option<Slot> {
        self.element(slots[self.next as usize].wrapping_sub(1))
    }
    /// Returns the first slot of the element with this index, or `None` if there is no such element.
    pub fn element(&self, index: u64) -> Option<Slot> {
        self.bases.get(usize::try_from(index).ok()?).copied()
    }
}

/// A stack of header unions. Each union is the list of its headers.
#[derive(Debug, Clone)]
pub struct UnionStackAt {
    pub next: Slot,
    pub unions: Vec<Vec<u16>>,
}

/// The header types, headers and stacks of a program at run time.
pub struct Phv {
    pub plans: Vec<HeaderPlan>,
    pub headers: Vec<HeaderAtRun>,
    pub stacks: Vec<StackAt>,
    pub union_stacks: Vec<UnionStackAt>,
    /// The initial values of a new packet's slots.
    pub fresh: Vec<u64>,
    /// The first slot and the length of each run of slots that belongs to metadata.
    pub metadata: Vec<(Slot, u16)>,
}

impl Phv {
    pub fn new(layout: &Layout) -> Phv {
        let at_run = |h: &Header| HeaderAtRun {
            base: h.base,
            valid: h.valid,
            slots: layout.types[h.header_type].slots as u16,
            plan: h.header_type as u16,
            union_others: h.union_others.iter().map(|&o| layout.headers[o].valid).collect(),
            raw: h.raw,
        };
        Phv {
            plans: layout.types.iter().map(HeaderPlan::new).collect(),
            headers: layout.headers.iter().map(at_run).collect(),
            stacks: layout
                .stacks
                .iter()
                .map(|s| StackAt {
                    next: s.next,
                    bases: s.headers.iter().map(|&h| layout.headers[h].base).collect(),
                    headers: s.headers.iter().map(|&h| h as u16).collect(),
                })
                .collect(),
            union_stacks: layout
                .union_stacks
                .iter()
                .map(|s| UnionStackAt {
                    next: s.next,
                    unions: s
                        .unions
                        .iter()
                        .map(|&u| layout.unions[u].headers.iter().map(|&h| h as u16).collect())
                        .collect(),
                })
                .collect(),
            fresh: layout.fresh.clone(),
            metadata: layout
                .headers
                .iter()
                .filter(|h| h.metadata)
                .map(|h| (h.base, layout.types[h.header_type].slots as u16))
                .collect(),
        }
    }

    /// Returns the number of bytes that the header occupies in a packet.
    pub fn header_bytes(&self, slots: &Slots, header: usize) -> usize {
        let h = &self.headers[header];
        let plan = &self.plans[h.plan as usize];
        plan.fixed_bytes + plan.varbit.map_or(0, |v| slots[usize::from(h.base + v)] as usize / 8)
    }

    pub fn is_valid(&self, slots: &Slots, header: usize) -> bool {
        slots[self.headers[header].valid as usize] != 0
    }

    pub fn set_valid(&self, slots: &mut Slots, header: usize) {
        let h = &self.headers[header];
        slots[h.valid as usize] = 1;
        for &other in &h.union_others {
            slots[other as usize] = 0;
        }
    }

    /// Sets all fields of a header to zero, and makes a variable-length field empty.
    pub fn zero(&self, slots: &mut Slots, header: usize) {
        let h = &self.headers[header];
        slots[h.base as usize..h.valid as usize].fill(0);
    }

    /// Sets all slots of headers to their initial values.
    pub fn start(&self, slots: &mut Slots) {
        slots[..self.fresh.len()].copy_from_slice(&self.fresh);
    }

    /// Sets all metadata fields to zero. The metadata remains valid.
    pub fn reset_metadata(&self, slots: &mut Slots) {
        for &(base, n) in &self.metadata {
            let run = base as usize..base as usize + n as usize;
            slots[run.clone()].copy_from_slice(&self.fresh[run]);
        }
    }

    /// Copies the fields from a header of the same type. The validity is not copied.
    pub fn copy(&self, slots: &mut Slots, to: usize, from: usize) {
        let (d, s) = (self.headers[to].base as usize, self.headers[from].base as usize);
        let n = usize::from(self.headers[from].slots) - 1;
        slots.copy_within(s..s + n, d);
    }
}

impl HeaderPlan {
    fn new(t: &HeaderType) -> HeaderPlan {
        let fields: Vec<_> = t.fields.iter().map(|f| f.field).collect();
        let words = words(match fields.split_last() {
            Some((last, rest)) if last.varbit => rest,
            _ => &fields,
        });
        let signed = words.iter().flatten().flat_map(|w| &w.fields).filter(|p| p.signed).copied().collect();
        HeaderPlan {
            fixed_bytes: t.fixed_bits as usize / 8,
            max_bytes: t.max_bytes as usize,
            varbit: t.varbit.map(|v| fields[v].slot),
            words,
            signed,
            fields,
        }
    }

    /// Reads the fields from `data`, which must contain `fixed_bytes` bytes and the bytes of the variable-length field.
    #[inline]
    pub fn extract(&self, slots: &mut Slots, base: Slot, data: &[u8], varbit_bits: usize) {
        let Some(words) = &self.words else {
            return self.extract_slowly(slots, base, data, varbit_bits);
        };
        if let Some(v) = self.varbit {
            let (at, limbs) = (usize::from(base.wrapping_add(v)), self.fields[self.fields.len() - 1].limbs());
            slots[at] = varbit_bits as u64;
            bits::read(data, self.fixed_bytes * 8, varbit_bits, &mut slots[at + 1..at + 1 + limbs]);
        }
        let mut at = 0;
        for word in words {
            let v = bits::load(data, at, word.bytes as usize);
            at += word.bytes as usize;
            for p in &word.fields {
                slots[usize::from(base.wrapping_add(p.slot))] = v >> p.shift & p.mask;
            }
        }
        for p in self.signed.iter() {
            let slot = &mut slots[usize::from(base.wrapping_add(p.slot))];
            *slot = (((*slot << p.m) as i64) >> p.m) as u64;
        }
    }

    #[cold]
    fn extract_slowly(&self, slots: &mut Slots, base: Slot, data: &[u8], varbit_bits: usize) {
        let mut bit = 0;
        for f in &self.fields {
            let f = f.offset(base);
            let width = if f.varbit { varbit_bits } else { f.width as usize };
            if f.varbit {
                slots[f.slot as usize] = width as u64;
            }
            let first = usize::from(f.data());
            bits::read(data, bit, width, &mut slots[first..first + f.limbs()]);
            if f.signed && f.width <= 64 && !f.varbit {
                slots[first] = sign_extend(slots[first], f.width);
            }
            bit += width;
        }
    }

    /// Appends the header's bytes to `out`.
    #[inline]
    pub fn deparse(&self, slots: &Slots, base: Slot, out: &mut Head) {
        let Some(words) = &self.words else {
            return self.deparse_slowly(slots, base, out);
        };
        for word in words {
            out.put(word.value(slots, base), word.bytes.into());
        }
        if let Some(v) = self.varbit {
            let at = usize::from(base.wrapping_add(v));
            let field = &self.fields[self.fields.len() - 1];
            let bytes = (slots[at].min(field.width.into()) / 8) as usize;
            out.put_row(&slots[at + 1..at + 1 + field.limbs()], bytes);
        }
    }

    #[cold]
    fn deparse_slowly(&self, slots: &Slots, base: Slot, out: &mut Head) {
        let mut bytes = std::mem::take(&mut out.bits);
        bytes.clear();
        let mut writer = BitWriter::new(&mut bytes);
        self.write(slots, base, &mut writer);
        writer.finish();
        out.put_bytes(&bytes);
        out.bits = bytes;
    }

    /// Writes the header's fields bit by bit.
    pub fn write(&self, slots: &Slots, base: Slot, out: &mut BitWriter) {
        for f in &self.fields {
            out.field(slots, f.offset(base));
        }
    }

    /// Returns all fields except a variable-length field, grouped into words of the packet. Returns `None` if the
    /// fields cannot be grouped.
    pub fn words(&self) -> Option<&[Word]> {
        self.words.as_deref()
    }

    /// Returns the number of slots that the variable-length field's value occupies.
    pub fn varbit_limbs(&self) -> usize {
        self.fields.last().filter(|f| f.varbit).map_or(0, |f| f.limbs())
    }

    /// Returns the maximum number of bytes of a header of this type.
    pub fn most_bytes(&self) -> usize {
        self.fixed_bytes + self.fields.iter().filter(|f| f.varbit).map(|f| f.width.div_ceil(8) as usize).sum::<usize>()
    }
}

/// Groups fields into words that begin and end at byte boundaries. Returns `None` if the fields cannot be grouped.
pub fn words(fields: &[FieldRef]) -> Option<Vec<Word>> {
    let mut words = Vec::new();
    let mut group: Vec<FieldRef> = Vec::new();
    let mut width = 0;
    for (i, &f) in fields.iter().enumerate() {
        if f.varbit || !f.narrow() && (width > 0 || f.width % 8 != 0) {
            return None;
        }
        if !f.narrow() {
            wide_field(f, &mut words);
            continue;
        }
        if width + f.width > 64 {
            return None;
        }
        group.push(f);
        width += f.width;
        // Add as many fields to the word as fit into 64 bits, so that the number of words is small.
        let mut next_widths = fields[i + 1..].iter().take_while(|f| f.narrow()).scan(width, |w, f| {
            *w += f.width;
            Some(*w)
        });
        if width % 8 == 0 && !next_widths.by_ref().take_while(|&w| w <= 64).any(|w| w % 8 == 0) {
            let mut remaining = width;
            let fields = group
                .drain(..)
                .map(|f| {
                    remaining -= f.width;
                    let m = (64 - f.width) as u8;
                    WordField { mask: u64::MAX >> m, slot: f.slot, shift: remaining as u8, m, signed: f.signed }
                })
                .collect();
            words.push(Word { bytes: (width / 8) as u8, fields });
            width = 0;
        }
    }
    (width == 0).then_some(words)
}

/// Adds the words of a field wider than 64 bits, most significant word first. The field's width must be a multiple of
/// 8.
fn wide_field(f: FieldRef, words: &mut Vec<Word>) {
    for limb in (0..f.limbs()).rev() {
        let bits = (f.width as usize - 64 * limb).min(64);
        let m = (64 - bits) as u8;
        let field = WordField { mask: u64::MAX >> m, slot: f.slot + limb as Slot, shift: 0, m, signed: false };
        words.push(Word { bytes: (bits / 8) as u8, fields: vec![field] });
    }
}

/// Returns the low `width` bits of a slot.
pub fn low(slots: &Slots, slot: Slot, width: u32) -> u64 {
    slots[usize::from(slot)] & mask64(width)
}
