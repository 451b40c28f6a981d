//! The layout of a packet's fields in an array of 64-bit slots.
//!
//! A field of up to 64 bits is one slot. A wider field is a row of slots, least significant first. A variable-length
//! field is a slot with its current width in bits, followed by such a row. Unsigned values are zero-extended; signed
//! ones of up to 64 bits are sign-extended.
//!
//! The fields of a header are adjacent, and its validity (0 or 1) follows them, so that a header is copied as one run
//! of slots. After the headers come each stack's next index and the words of headers as received ([`crate::native`]).
//! Then come slots that no further pass needs (temporaries, action parameters), and then constants. A slot number has
//! 16 bits and the array has 65,536 slots, so an access needs no bounds check. The last slot is [`NOWHERE`].

use std::collections::HashMap;

use num_bigint::{BigInt, Sign};

/// An index into [`Slots`].
pub type Slot = u16;
/// All values of one packet.
pub type Slots = [u64; 65_536];

/// The slot of a field that the program does not have: it may be written, and is never read.
pub const NOWHERE: Slot = Slot::MAX;

/// A field: the place and type of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FieldRef {
    /// The first slot.
    pub slot: Slot,
    /// The width in bits; for a variable-length field, the largest.
    pub width: u32,
    /// Whether the value is a signed number in two's complement.
    pub signed: bool,
    /// Whether the field has variable length. Its first slot is then its current width in bits.
    pub varbit: bool,
}

impl FieldRef {
    /// Whether the field takes a single slot.
    pub fn narrow(self) -> bool {
        self.width <= 64 && !self.varbit
    }
    /// The number of slots of the value itself.
    pub fn limbs(self) -> usize {
        limbs(self.width)
    }
    /// The number of slots, including that of a variable-length field's width.
    pub fn slots(self) -> usize {
        self.limbs() + usize::from(self.varbit)
    }
    /// The first slot of the value itself.
    pub fn data(self) -> Slot {
        self.slot + u16::from(self.varbit)
    }
    /// The value as a big integer; slow. For a variable-length field, all bits up to its largest width.
    pub fn exact(self, slots: &Slots) -> BigInt {
        let first = usize::from(self.data());
        let words = slots[first..first + self.limbs()].iter();
        let n = BigInt::new(Sign::Plus, words.flat_map(|&v| [v as u32, (v >> 32) as u32]).collect());
        let negative = self.signed && n.bit(u64::from(self.width) - 1);
        let n = n & ((BigInt::from(1) << self.width) - 1);
        if negative { n - (BigInt::from(1) << self.width) } else { n }
    }
    /// The same field of a header whose first slot is `slots` further on.
    pub fn offset(self, slots: Slot) -> FieldRef {
        FieldRef { slot: self.slot + slots, ..self }
    }
}

/// An unsigned field of up to 64 bits that the architecture writes.
#[derive(Debug, Clone, Copy)]
pub struct Cell {
    pub slot: Slot,
    mask: u64,
}

impl Cell {
    /// `None` stands for a field that the program does not have; its writes go to [`NOWHERE`].
    pub fn new(f: Option<FieldRef>) -> Cell {
        f.map_or(Cell { slot: NOWHERE, mask: 0 }, |f| Cell { slot: f.slot, mask: mask64(f.width) })
    }

    /// A mask of the field's bits.
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

/// The number of slots for a value of `width` bits; at least one.
pub fn limbs(width: u32) -> usize {
    (width as usize).div_ceil(64).max(1)
}

/// A mask with the low `width` bits set.
pub fn mask64(width: u32) -> u64 {
    if width >= 64 { u64::MAX } else { (1 << width) - 1 }
}

/// The low `width` (1 to 64) bits as a signed number.
pub fn sign_extend(v: u64, width: u32) -> u64 {
    let m = 64 - width;
    (((v << m) as i64) >> m) as u64
}

pub struct FieldType {
    /// The field, with a slot number relative to the header's first slot.
    pub field: FieldRef,
}

pub struct HeaderType {
    pub name: String,
    pub fields: Vec<FieldType>,
    pub by_name: HashMap<String, usize>,
    /// The number of slots of a header, validity included.
    pub slots: usize,
    /// The slot of the validity, relative to the header's first slot.
    pub valid: Slot,
    /// The width in bits without the variable-length field.
    pub fixed_bits: u32,
    /// The index of the variable-length field.
    pub varbit: Option<usize>,
    /// The most bytes of a header with a variable-length field, if the JSON states it; 0 otherwise.
    pub max_bytes: u32,
}

#[derive(Debug, Clone)]
pub struct Header {
    pub header_type: usize,
    pub metadata: bool,
    /// The first slot.
    pub base: Slot,
    /// The slot of the validity.
    pub valid: Slot,
    /// The other headers of the same union, of which at most one is valid.
    pub union_others: Vec<usize>,
    /// The first of the slots in which machine code stores the header's words as received.
    pub raw: Option<Slot>,
}

#[derive(Debug, Clone)]
pub struct Stack {
    pub header_type: usize,
    pub headers: Vec<usize>,
    /// The slot that contains the index of the first free element.
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

/// The program's header types, headers, stacks and unions, and the slots that they use.
#[derive(Default)]
pub struct Layout {
    pub types: Vec<HeaderType>,
    pub headers: Vec<Header>,
    pub header_by_name: HashMap<String, usize>,
    pub stacks: Vec<Stack>,
    pub stack_by_name: HashMap<String, usize>,
    /// For each union type, the names and header types of its members, in order.
    pub union_types: HashMap<String, Vec<(String, usize)>>,
    pub unions: Vec<Union>,
    pub union_by_name: HashMap<String, usize>,
    pub union_stacks: Vec<UnionStack>,
    pub union_stack_by_name: HashMap<String, usize>,
    /// The values that a new packet's slots start with: zero, and 1 for the validity of metadata.
    pub fresh: Vec<u64>,
    /// The number of slots in use, of any kind.
    pub used: usize,
    /// The program's fields for names that BMv2 gives to fields of the standard metadata.
    pub aliases: HashMap<String, (String, String)>,
}

impl Layout {
    /// The field `name` of a header. `$valid$` names its validity.
    pub fn field(&self, header: usize, name: &str) -> Option<FieldRef> {
        let h = &self.headers[header];
        self.type_field(h.header_type, name).map(|f| f.offset(h.base))
    }

    /// A field of a header type, relative to its header's first slot.
    pub fn type_field(&self, header_type: usize, name: &str) -> Option<FieldRef> {
        let t = &self.types[header_type];
        if name == "$valid$" {
            return Some(FieldRef { slot: t.valid, width: 1, signed: false, varbit: false });
        }
        t.by_name.get(name).map(|&i| t.fields[i].field)
    }

    /// The field that BMv2 calls `header.field`, which may be an alias.
    pub fn target_field(&self, header: &str, field: &str) -> Option<FieldRef> {
        let (header, field) = match self.aliases.get(&format!("{header}.{field}")) {
            Some((h, f)) => (h.as_str(), f.as_str()),
            None => (header, field),
        };
        self.field(*self.header_by_name.get(header)?, field)
    }
}
