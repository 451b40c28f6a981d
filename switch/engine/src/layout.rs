//! Where every field lives: one array of 64-bit slots per packet.
//!
//! A field of up to 64 bits is one slot; a wider one is a row of slots, least significant first; a variable-length one is a slot
//! with its present width in bits, then the row. Unsigned values are zero-extended, signed ones of up to 64 bits sign-extended.
//! The fields of a header are next to each other, then comes its validity (0 or 1), so that a header is copied as one run
//! of slots. Behind the headers come each stack's next index, the words of headers as they came in ([`crate::native`]), then
//! what outlives no packet (temporaries, action parameters), then constants. A slot number is 16 bits wide and the array has
//! 65,536 slots, so an access needs no bounds check; the last one is [`NOWHERE`].

use std::collections::HashMap;

use num_bigint::{BigInt, Sign};

/// Index into [`Slots`].
pub type Slot = u16;
/// The packet's values.
pub type Slots = [u64; 65_536];

/// What stands for a field that the program does not have: may be written, is not read.
pub const NOWHERE: Slot = Slot::MAX;

/// A place for a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FieldRef {
    /// First slot.
    pub slot: Slot,
    /// Bits; the maximum for variable-length fields.
    pub width: u32,
    /// Two's complement.
    pub signed: bool,
    /// The first slot is the present width.
    pub varbit: bool,
}

impl FieldRef {
    /// Fits one slot.
    pub fn narrow(self) -> bool {
        self.width <= 64 && !self.varbit
    }
    /// Slots of the value itself.
    pub fn limbs(self) -> usize {
        limbs(self.width)
    }
    /// Slots including the width slot.
    pub fn slots(self) -> usize {
        self.limbs() + usize::from(self.varbit)
    }
    /// First slot of the value itself.
    pub fn data(self) -> Slot {
        self.slot + u16::from(self.varbit)
    }
    /// The value, for those who are in no hurry. Of a variable-length field: of all its bits.
    pub fn exact(self, slots: &Slots) -> BigInt {
        let first = usize::from(self.data());
        let words = slots[first..first + self.limbs()].iter();
        let n = BigInt::new(Sign::Plus, words.flat_map(|&v| [v as u32, (v >> 32) as u32]).collect());
        let negative = self.signed && n.bit(u64::from(self.width) - 1);
        let n = n & ((BigInt::from(1) << self.width) - 1);
        if negative { n - (BigInt::from(1) << self.width) } else { n }
    }
    /// The same field of a header that starts `slots` further on.
    pub fn offset(self, slots: Slot) -> FieldRef {
        FieldRef { slot: self.slot + slots, ..self }
    }
}

/// An unsigned field of up to 64 bits, ready to be written.
#[derive(Debug, Clone, Copy)]
pub struct Cell {
    pub slot: Slot,
    mask: u64,
}

impl Cell {
    /// `None`: [`NOWHERE`].
    pub fn new(f: Option<FieldRef>) -> Cell {
        f.map_or(Cell { slot: NOWHERE, mask: 0 }, |f| Cell { slot: f.slot, mask: mask64(f.width) })
    }

    /// The field's bits.
    pub fn mask(self) -> u64 {
        self.mask
    }

    /// The value, cut to the field's width.
    #[inline]
    pub fn cut(self, v: u64) -> u64 {
        v & self.mask
    }

    /// Sets the field to the value, cut to its width.
    #[inline]
    pub fn set(self, slots: &mut Slots, v: u64) {
        slots[usize::from(self.slot)] = self.cut(v);
    }
}

/// Slots for so many bits; at least one.
pub fn limbs(width: u32) -> usize {
    (width as usize).div_ceil(64).max(1)
}

/// All ones in the low `width` bits.
pub fn mask64(width: u32) -> u64 {
    if width >= 64 { u64::MAX } else { (1 << width) - 1 }
}

/// The low `width` (1 to 64) bits as a signed number.
pub fn sign_extend(v: u64, width: u32) -> u64 {
    let m = 64 - width;
    (((v << m) as i64) >> m) as u64
}

pub struct FieldType {
    /// Relative to the header's first slot.
    pub field: FieldRef,
}

pub struct HeaderType {
    pub name: String,
    pub fields: Vec<FieldType>,
    pub by_name: HashMap<String, usize>,
    /// Slots of an instance, validity included.
    pub slots: usize,
    /// Relative slot of the validity.
    pub valid: Slot,
    /// Bits without the variable-length field.
    pub fixed_bits: u32,
    /// The variable-length field.
    pub varbit: Option<usize>,
    /// Bytes at most, if there is a variable-length field and the JSON says so; 0 otherwise.
    pub max_bytes: u32,
}

#[derive(Debug, Clone)]
pub struct Header {
    pub header_type: usize,
    pub metadata: bool,
    /// First slot.
    pub base: Slot,
    /// Slot of the validity.
    pub valid: Slot,
    /// The other headers of the same union: valid together they are never.
    pub union_others: Vec<usize>,
    /// First slot of the header's words as they came in, for machine code.
    pub raw: Option<Slot>,
}

#[derive(Debug, Clone)]
pub struct Stack {
    pub header_type: usize,
    pub headers: Vec<usize>,
    /// Slot with the index of the first free element.
    pub next: Slot,
}

#[derive(Debug, Clone)]
pub struct Union {
    pub union_type: String,
    pub headers: Vec<usize>,
}

#[derive(Debug, Clone)]
pub struct UnionStack {
    pub union_type: String,
    pub unions: Vec<usize>,
    pub next: Slot,
}

/// Everything about headers.
#[derive(Default)]
pub struct Layout {
    pub types: Vec<HeaderType>,
    pub headers: Vec<Header>,
    pub header_by_name: HashMap<String, usize>,
    pub stacks: Vec<Stack>,
    pub stack_by_name: HashMap<String, usize>,
    /// Union type: member names and header types, in order.
    pub union_types: HashMap<String, Vec<(String, usize)>>,
    pub unions: Vec<Union>,
    pub union_by_name: HashMap<String, usize>,
    pub union_stacks: Vec<UnionStack>,
    pub union_stack_by_name: HashMap<String, usize>,
    /// Slots that a new packet starts with: zero, metadata valid.
    pub fresh: Vec<u64>,
    /// Slots used so far, of any kind.
    pub used: usize,
    /// BMv2's names for fields the program calls differently.
    pub aliases: HashMap<String, (String, String)>,
}

impl Layout {
    /// `header.field`, or the validity as `header.$valid$`.
    pub fn field(&self, header: usize, name: &str) -> Option<FieldRef> {
        let h = &self.headers[header];
        self.type_field(h.header_type, name).map(|f| f.offset(h.base))
    }

    /// A field relative to its header's first slot.
    pub fn type_field(&self, header_type: usize, name: &str) -> Option<FieldRef> {
        let t = &self.types[header_type];
        if name == "$valid$" {
            return Some(FieldRef { slot: t.valid, width: 1, signed: false, varbit: false });
        }
        t.by_name.get(name).map(|&i| t.fields[i].field)
    }

    /// A field by the name BMv2's target knows it by, aliases resolved.
    pub fn target_field(&self, header: &str, field: &str) -> Option<FieldRef> {
        let (header, field) = match self.aliases.get(&format!("{header}.{field}")) {
            Some((h, f)) => (h.as_str(), f.as_str()),
            None => (header, field),
        };
        self.field(*self.header_by_name.get(header)?, field)
    }
}
