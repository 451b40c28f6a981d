//! The instructions a program is compiled into.
//!
//! One flat array of small instructions serves parser, actions, conditions and control flow. Operands are slots
//! ([`crate::layout`]); arithmetic is modulo 2^64, and the compiler (`crate::codegen`) proves from the widths where that is exact.
//! Whatever is rare or needs more than one machine word sits in [`Ext`].

use crate::layout::{FieldRef, Slot};
use crate::wide::Wide;

/// Index into [`Code::ops`].
pub type Pc = u32;

/// A [`Pc`] in three bytes, so that a comparison and a jump fit one instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Near([u8; 3]);

impl Near {
    /// The target; [`Near::new`] made sure that it fits.
    #[inline]
    pub fn pc(self) -> usize {
        usize::from(self.0[0]) | usize::from(self.0[1]) << 8 | usize::from(self.0[2]) << 16
    }

    pub fn new(pc: Pc) -> Option<Near> {
        let [a, b, c, 0] = pc.to_le_bytes() else { return None };
        Some(Near([a, b, c]))
    }
}

/// `m`: bits cut off at the top (64 - width). `d`: destination. `a`, `b`: operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[rustfmt::skip]
pub enum Op {
    Mov { m: u8, d: Slot, a: Slot },
    Add { m: u8, d: Slot, a: Slot, b: Slot },
    Sub { m: u8, d: Slot, a: Slot, b: Slot },
    Mul { m: u8, d: Slot, a: Slot, b: Slot },
    And { d: Slot, a: Slot, b: Slot },
    Or { d: Slot, a: Slot, b: Slot },
    Xor { d: Slot, a: Slot, b: Slot },
    Not { m: u8, d: Slot, a: Slot },
    /// Shifts by a slot: 64 and more give 0 (or the sign).
    Shl { m: u8, d: Slot, a: Slot, b: Slot },
    Shr { d: Slot, a: Slot, b: Slot },
    Sar { d: Slot, a: Slot, b: Slot },
    /// Shifts by a constant below 64.
    ShlI { m: u8, k: u8, d: Slot, a: Slot },
    ShrI { m: u8, k: u8, d: Slot, a: Slot },
    SarI { k: u8, d: Slot, a: Slot },
    /// 64 bits from bit `k` (1 to 63) of the two words at `a`.
    Funnel { m: u8, k: u8, d: Slot, a: Slot },
    /// Unsigned; by zero gives 0.
    Div { d: Slot, a: Slot, b: Slot },
    Rem { d: Slot, a: Slot, b: Slot },
    /// Sign extension of the low 64 - m bits.
    Sext { m: u8, d: Slot, a: Slot },
    /// Signed to unsigned, unsigned to unsigned, signed to signed: clamped to 64 - m bits.
    ClampSU { m: u8, d: Slot, a: Slot },
    ClampUU { m: u8, d: Slot, a: Slot },
    ClampSS { m: u8, d: Slot, a: Slot },
    Eq { d: Slot, a: Slot, b: Slot },
    Ne { d: Slot, a: Slot, b: Slot },
    LtU { d: Slot, a: Slot, b: Slot },
    LeU { d: Slot, a: Slot, b: Slot },
    LtS { d: Slot, a: Slot, b: Slot },
    LeS { d: Slot, a: Slot, b: Slot },
    Jump { to: Pc },
    /// A jump to where one has been before: costs fuel, so that every packet ends.
    JumpBack { to: Pc },
    JumpIfZero { a: Slot, to: Pc },
    JumpIfNotZero { a: Slot, to: Pc },
    JumpEq { to: Near, a: Slot, b: Slot },
    JumpNe { to: Near, a: Slot, b: Slot },
    JumpLtU { to: Near, a: Slot, b: Slot },
    JumpLeU { to: Near, a: Slot, b: Slot },
    JumpLtS { to: Near, a: Slot, b: Slot },
    JumpLeS { to: Near, a: Slot, b: Slot },
    /// `n` slots.
    Copy { d: Slot, a: Slot, n: u16 },
    Zero { d: Slot, n: u16 },
    /// Looks the table up, runs the action, goes to the next node.
    Apply { table: u16 },
    /// Ends the pipeline if `exit` was called.
    EndIfExit,
    Exit,
    /// End of an action, a pipeline, the parser (accept).
    Return,
    SetValid { header: u16 },
    SetInvalid { header: u16 },
    RegisterRead { register: u16, d: Slot, index: Slot },
    RegisterWrite { register: u16, index: Slot, a: Slot },
    Count { counter: u16, index: Slot },
    Meter { meter: u16, d: Slot, index: Slot },
    /// Parser: one header of fixed length.
    Extract { header: u16 },
    /// Parser: goes where [`Code::selects`] says.
    Select { index: u32 },
    Ext { index: u32 },
    /// Trace: see [`Code::notes`].
    Note { index: u32 },
}

/// A header at run time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeaderAt {
    Fixed(u16),
    /// Stack, slot of the index.
    Indexed(u16, Slot),
}

/// An element of a stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Element {
    Last,
    /// Slot of the index.
    Index(Slot),
}

/// Where an extraction goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    Header(u16),
    /// The next element.
    Stack(u16),
    /// The next element's member.
    UnionStack(u16, u16),
}

/// Rare or large operations.
#[derive(Debug, Clone)]
pub enum Ext {
    /// Arithmetic of any width.
    Wide(Wide),
    /// `a`, `b`: rows of `n` slots.
    RowEq {
        d: Slot,
        a: Slot,
        b: Slot,
        n: u16,
    },
    /// A variable-length field, its width first.
    CopyVarbit {
        d: FieldRef,
        a: FieldRef,
    },
    LoadElement {
        stack: u16,
        element: Element,
        field: FieldRef,
        d: Slot,
    },
    StoreElement {
        stack: u16,
        element: Element,
        field: FieldRef,
        a: Slot,
    },
    LastIndex {
        d: Slot,
        next: Slot,
    },
    HeaderEq {
        d: Slot,
        a: HeaderAt,
        b: HeaderAt,
    },
    UnionEq {
        d: Slot,
        a: Vec<u16>,
        b: Vec<u16>,
    },
    SetValid {
        header: HeaderAt,
        valid: bool,
    },
    AssignHeader {
        d: HeaderAt,
        a: HeaderAt,
    },
    AssignHeaders {
        pairs: Vec<(u16, u16)>,
        next: Option<(Slot, Slot)>,
    },
    Push {
        stack: u16,
        count: Slot,
    },
    Pop {
        stack: u16,
        count: Slot,
    },
    PushUnion {
        stack: u16,
        count: Slot,
    },
    PopUnion {
        stack: u16,
        count: Slot,
    },
    RegisterRead {
        register: u16,
        d: FieldRef,
        index: Slot,
    },
    RegisterWrite {
        register: u16,
        index: Slot,
        a: FieldRef,
    },
    /// `d = base + hash % max`, all modulo 2^64.
    Hash {
        calculation: u16,
        d: Slot,
        base: Slot,
        max: Slot,
    },
    Random {
        d: Slot,
        low: Slot,
        high: Slot,
    },
    Truncate {
        length: Slot,
    },
    CloneIngress {
        session: Slot,
        fields: u16,
    },
    CloneEgress {
        session: Slot,
        fields: u16,
    },
    Resubmit {
        fields: u16,
    },
    Recirculate {
        fields: u16,
    },
    Digest {
        digest: u16,
    },
    Assert {
        a: Slot,
    },
    Log {
        format: String,
        args: Vec<(FieldRef, bool)>,
    },
    /// Parser: `length`: slot of the variable-length field's bits, if the header has one.
    ExtractTo {
        target: Target,
        length: Option<Slot>,
    },
    /// Parser: like `Code::lookahead`.
    Lookahead {
        offset: u32,
        width: u32,
        d: FieldRef,
    },
    /// Parser: bits.
    Advance {
        bits: Slot,
    },
    Verify {
        condition: Slot,
        error: Slot,
    },
    /// Parser: the stack must not be empty.
    NeedElement {
        stack: u16,
    },
}

/// A part of a parser's transition key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyPart {
    Field(FieldRef),
    Lookahead { offset: u32, width: u32 },
    StackLast { stack: u16, field: FieldRef },
    UnionStackLast { stack: u16, member: u16, field: FieldRef },
}

impl KeyPart {
    pub fn width(self) -> u32 {
        match self {
            KeyPart::Field(f) | KeyPart::StackLast { field: f, .. } | KeyPart::UnionStackLast { field: f, .. } => {
                f.width
            }
            KeyPart::Lookahead { width, .. } => width,
        }
    }
}

/// A case of a parser's transition; the key is the parts' limbs in a row.
#[derive(Debug, Clone)]
pub enum Case {
    Value { value: Vec<u64>, mask: Vec<u64>, to: Pc },
    ValueSet { set: u16, to: Pc },
}

#[derive(Debug, Clone)]
pub struct Select {
    pub parts: Vec<KeyPart>,
    /// The whole key is one part of up to 64 bits: (value, mask, to), when no value set is involved.
    pub small: Option<Vec<(u64, u64, Pc)>>,
    pub cases: Vec<Case>,
    pub default: Pc,
}

/// What a traced run notes down.
#[derive(Debug, Clone)]
pub enum Note {
    ParserState(String),
    Extract(String),
    Condition { text: String, a: Slot },
    Action(u32),
}

/// One compiled variant of the program.
#[derive(Default)]
pub struct Code {
    pub ops: Vec<Op>,
    pub ext: Vec<Ext>,
    pub selects: Vec<Select>,
    pub notes: Vec<Note>,
    pub parser: Pc,
    pub ingress: Pc,
    pub egress: Pc,
    /// Start of each control-flow node ([`crate::program`]'s numbering).
    pub nodes: Vec<Pc>,
    /// Start of each action.
    pub actions: Vec<Pc>,
    /// Start of each checksum's condition, if it needs computing, and the slot that has its value then.
    pub conditions: Vec<(Option<Pc>, Slot)>,
    /// Start of what the deparser does between the checksums and the headers, if it does something.
    pub deparser: Option<Pc>,
}

#[cfg(test)]
mod tests {
    #[test]
    fn an_instruction_is_eight_bytes() {
        assert_eq!(size_of::<super::Op>(), 8);
    }
}
