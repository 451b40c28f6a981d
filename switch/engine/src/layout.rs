//! Lays out a packet's fields in an array of 64-bit slots.
//!
//! A field of up to 64 bits occupies one slot. A wider field occupies consecutive slots, least significant word first.
//! A variable-length field occupies a slot for its current width in bits, followed by the slots of its value. Unsigned
//! values are zero-extended. Signed values of up to 64 bits are sign-extended.
//!
//! The fields of a header are adjacent, and the header's validity (0 or 1) follows the fields. Therefore a header is
//! copied by one copy of consecutive slots. After the headers, the array contains the index of each stack's first free
//! element, and the words of headers as received ([`crate::native`]). Then follow the constants, and the slots whose
//! values end with each pass of a packet through the pipeline (temporaries, action parameters). A slot number has 16
//! bits and the array has 65,536 slots, so an access needs no bounds check. The last slot is [`NOWHERE`].

use std::collections::HashMap;

use num_bigint::{BigInt, Sign};

/// An index into [`Slots`].
pub type Slot = u16;
/// All values of one packet, by slot number.
pub type Slots = [u64; 65_536];

/// The slot that replaces a field that the program does not have. The slot may be written, and is never read.
pub const NOWHERE: Slot = Slot::MAX;

/// The place and the type of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FieldRef {
    /// The first slot of the field.
    pub slot: Slot,
    /// The width in bits; for a variable-length field, the maximum width.
    pub width: u32,
    /// Whether the value is a signed number in two's complement.
    pub signed: bool,
    /// Whether the field has variable length. If so, its first slot contains the current width in bits.
    pub varbit: bool,
}

impl FieldRef {
    /// Whether the field occupies a single slot.
    pub fn narrow(self) -> bool {
        self.width <= 64 && !self.varbit
    }
    /// Returns the number of slots that the value occupies.
    pub fn limbs(self) -> usize {
        limbs(self.width)
    }
    /// Returns the number of slots of the field, including the slot for a variable-length field's width.
    pub fn slots(self) -> usize {
        self.limbs() + usize::from(self.varbit)
    }
    /// Returns the first slot of the value.
    pub fn data(self) -> Slot {
        self.slot + u16::from(self.varbit)
    }
    /// Returns the value as a big integer, which is slow. A variable-length field is read with its maximum width.
    pub fn exact(self, slots: &Slots) -> BigInt {
        let first = usize::from(self.data());
        let words = slots[first..first + self.limbs()].iter();
        let n = BigInt::new(Sign::Plus, words.flat_map(|&v| [v as u32, (v >> 32) as u32]).collect());
        let negative = self.signed && n.bit(u64::from(self.width) - 1);
        let n = n & ((BigInt::from(1) << self.width) - 1);
        if negative { n - (BigInt::from(1) << self.width) } else { n }
    }
    /// Returns the field with its slot number increased by `slots`, for a header whose first slot is larger by `slots`.
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
    /// Creates the cell of a field. `None` means that the program does not have the field; writes then go to
    /// [`NOWHERE`].
    pub fn new(f: Option<FieldRef>) -> Cell {
        f.map_or(Cell { slot: NOWHERE, mask: 0 }, |f| Cell { slot: f.slot, mask: mask64(f.width) })
    }

    /// Returns a mask of the field's bits.
    pub fn mask(self) -> u64 {
        self.mask
    }

    /// Returns the value, cut to the field's width.
    #[inline]
    pub fn cut(self, v: u64) -> u64 {
        v & self.mask
    }

    /// Sets the field to the value, cut to the field's width.
    #[inline]
    pub fn set(self, slots: &mut Slots, v: u64) {
        slots[usize::from(self.slot)] = self.cut(v);
    }
}

/// Returns the number of slots for a value of `width` bits, which is at least one.
pub fn limbs(width: u32) -> usize {
    (width as usize).div_ceil(64).max(1)
}

/// Returns a mask with the low `width` bits set.
pub fn mask64(width: u32) -> u64 {
    if width >= 64 { u64::MAX } else { (1 << width) - 1 }
}

/// Returns the low `width` (1 to 64) bits as a signed number, sign-extended to 64 bits.
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
    /// The number of slots of a header, including the slot of its validity.
    pub slots: usize,
    /// The slot of the header's validity, relative to the header's first slot.
    pub valid: Slot,
    /// The header's width in bits, without the variable-length field.
    pub fixed_bits: u32,
    /// The index of the variable-length field in `fields`; `None` if the header has no such field.
    pub varbit: Option<usize>,
    /// The maximum number of bytes of a header with a variable-length field, if the JSON contains this limit; otherwise
    /// 0.
    pub max_bytes: u32,
}

#[derive(Debug, Clone)]
pub struct Header {
    pub header_type: usize,
    pub metadata: bool,
    /// The first slot of the header.
    pub base: Slot,
    /// The slot of the header's validity.
    pub valid: Slot,
    /// The other headers of the header's union, if it belongs to a union. At most one header of a union is valid.
    pub union_others: Vec<usize>,
    /// The first of the slots in which machine code stores the header's words as they were received; `None` if no such
    /// slots are reserved for the header.
    pub raw: Option<Slot>,
}

#[derive(Debug, Clone)]
pub struct Stack {
    pub header_type: usize,
    pub headers: Vec<usize>,
    /// The slot that contains the index of the stack's first free element.
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
    /// For each union type, the names and header types of its members, in order of declaration.
    pub union_types: HashMap<String, Vec<(String, usize)>>,
    pub unions: Vec<Union>,
    pub union_by_name: HashMap<String, usize>,
    pub union_stacks: Vec<UnionStack>,
    pub union_stack_by_name: HashMap<String, usize>,
    /// The initial values of a new packet's slots: 1 for the validity of metadata, and 0 for all other slots.
    pub fresh: Vec<u64>,
    /// The number of slots in use, including temporaries and constants.
    pub used: usize,
    /// Maps a name that BMv2 uses for a field of the standard metadata to the program's header and field.
    pub aliases: HashMap<String, (String, String)>,
}

impl Layout {
    /// Returns the field `name` of a header. The name `$valid$` denotes the header's validity.
    pub fn field(&self, header: usize, name: &str) -> Option<FieldRef> {
        let h = &self.headers[header];
        self.type_field(h.header_type, name).map(|f| f.offset(h.base))
    }

    /// Returns a field of a header type. The field's slot is relative to the header's first slot.
    pub fn type_field(&self, header_type: usize, name: &str) -> Option<FieldRef> {
        let t = &self.types[header_type];
        if name == "$valid$" {
            return Some(FieldRef { slot: t.valid, width: 1, signed: false, varbit: false });
        }
        t.by_name.get(name).map(|&i| t.fields[i].field)
    }

    /// Returns the field that BMv2 calls `header.field`. This name may be an alias.
    pub fn target_field(&self, header: &str, field: &str) -> Option<FieldRef> {
        let (header, field) = match self.aliases.get(&format!("{header}.{field}")) {
            Some((h, f)) => (h.as_str(), f.as_str()),
            None => (header, field),
        };
        self.field(*self.header_by_name.get(header)?, field)
    }
}
