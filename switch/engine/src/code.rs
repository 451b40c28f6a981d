//! The instructions that a program is compiled into.
//!
//! One flat array of small instructions contains parser, actions, conditions and control flow. Operands are slots
//! ([`crate::layout`]). Arithmetic is modulo 2^64; the code generator (`crate::codegen`) proves from the operands'
//! widths where this arithmetic is exact. Operations that are rare, or need more than one machine word, are in [`Ext`].

use crate::layout::{FieldRef, Slot};
use crate::wide::Wide;

/// An index into [`Code::ops`].
pub type Pc = u32;

/// A [`Pc`] stored in three bytes, so that an instruction can contain both a comparison and a jump target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Near([u8; 3]);

impl Near {
    /// Returns the index of the instruction.
    #[inline]
    pub fn pc(self) -> usize {
        usize::from(self.0[0]) | usize::from(self.0[1]) << 8 | usize::from(self.0[2]) << 16
    }

    pub fn new(pc: Pc) -> Option<Near> {
        let [a, b, c, 0] = pc.to_le_bytes() else { return None };
        Some(Near([a, b, c]))
    }
}

/// An instruction. `d` is the destination, `a` and `b` are the operands. `m` is the number of bits cut off at the top
/// of the result: 64 - width.
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
    /// Shifts by the value in slot `b`. A shift by 64 or more gives 0 (for `Sar`, copies of the sign bit).
    Shl { m: u8, d: Slot, a: Slot, b: Slot },
    Shr { d: Slot, a: Slot, b: Slot },
    Sar { d: Slot, a: Slot, b: Slot },
    /// Shifts by a constant `k` below 64.
    ShlI { m: u8, k: u8, d: Slot, a: Slot },
    ShrI { m: u8, k: u8, d: Slot, a: Slot },
    SarI { k: u8, d: Slot, a: Slot },
    /// The 64 bits that start at bit `k` (1 to 63) of the 128-bit value in the slots `a` and `a + 1`.
    Funnel { m: u8, k: u8, d: Slot, a: Slot },
    /// Quotient (`Div`) or remainder (`Rem`) of an unsigned division; both are 0 if the divisor is 0.
    Div { d: Slot, a: Slot, b: Slot },
    Rem { d: Slot, a: Slot, b: Slot },
    /// Sign extension of the low 64 - m bits.
    Sext { m: u8, d: Slot, a: Slot },
    /// Saturates the value to 64 - m bits. `SU` converts a signed value to an unsigned range, `UU` an unsigned value to
    /// an unsigned range, and `SS` a signed value to a signed range.
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
    /// Jumps backwards. The number of such jumps is limited (each consumes one unit of fuel), so that the processing of
    /// every packet ends.
    JumpBack { to: Pc },
    JumpIfZero { a: Slot, to: Pc },
    JumpIfNotZero { a: Slot, to: Pc },
    JumpEq { to: Near, a: Slot, b: Slot },
    JumpNe { to: Near, a: Slot, b: Slot },
    JumpLtU { to: Near, a: Slot, b: Slot },
    JumpLeU { to: Near, a: Slot, b: Slot },
    JumpLtS { to: Near, a: Slot, b: Slot },
    JumpLeS { to: Near, a: Slot, b: Slot },
    /// Copies `n` slots (`Copy`), or sets `n` slots to zero (`Zero`).
    Copy { d: Slot, a: Slot, n: u16 },
    Zero { d: Slot, n: u16 },
    /// Looks up the packet's key in the table, runs the selected action, and continues at the next node of the control
    /// flow.
    Apply { table: u16 },
    /// Ends the pipeline if the packet has executed `exit`.
    EndIfExit,
    Exit,
    /// Ends an action, a pipeline or the parser (accept).
    Return,
    SetValid { header: u16 },
    SetInvalid { header: u16 },
    RegisterRead { register: u16, d: Slot, index: Slot },
    RegisterWrite { register: u16, index: Slot, a: Slot },
    Count { counter: u16, index: Slot },
    Meter { meter: u16, d: Slot, index: Slot },
    /// Parser: extracts one header of fixed length.
    Extract { header: u16 },
    /// Parser: continues at the state that the entry `index` of [`Code::selects`] selects by the transition key.
    Select { index: u32 },
    Ext { index: u32 },
    /// Trace: records the event at position `index` of [`Code::notes`].
    Note { index: u32 },
}

/// A header, or an element of a header stack whose index may be computed at run time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeaderAt {
    Fixed(u16),
    /// The stack, and the slot that contains the element's index.
    Indexed(u16, Slot),
}

/// Selects an element of a header stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Element {
    Last,
    /// The slot that contains the element's index.
    Index(Slot),
}

/// The header that an extraction fills.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    Header(u16),
    /// The next element of this stack.
    Stack(u16),
    /// A stack of unions, and the number of a union's member: the extraction fills this member in the stack's next
    /// element.
    UnionStack(u16, u16),
}

/// Operations that are rare, or that need more than one machine word.
#[derive(Debug, Clone)]
pub enum Ext {
    /// Arithmetic on values of any width.
    Wide(Wide),
    /// Compares the `n` slots that begin with slot `a` with the `n` slots that begin with slot `b`.
    RowEq {
        d: Slot,
        a: Slot,
        b: Slot,
        n: u16,
    },
    /// Copies a variable-length field with its current width.
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
    /// `d = base + hash % max`, where a `max` of 0 counts as 1. The hash has at most 64 bits, and the sum is computed
    /// modulo 2^64.
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
    /// Parser: extracts a header into `target`. If the header has a variable-length field, the slot `length` contains
    /// the field's width in bits.
    ExtractTo {
        target: Target,
        length: Option<Slot>,
    },
    /// Parser: reads `width` bits that start `offset` bits after the current position, without extracting them.
    Lookahead {
        offset: u32,
        width: u32,
        d: FieldRef,
    },
    /// Parser: skips as many bits as the slot `bits` states.
    Advance {
        bits: Slot,
    },
    Verify {
        condition: Slot,
        error: Slot,
    },
    /// Parser: raises an error if the stack is empty.
    NeedElement {
        stack: u16,
    },
}

/// A component of a parser's transition key.
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

/// A case of a parser's transition. Value and mask contain the words of all key components, in order.
#[derive(Debug, Clone)]
pub enum Case {
    Value { value: Vec<u64>, mask: Vec<u64>, to: Pc },
    ValueSet { set: u16, to: Pc },
}

#[derive(Debug, Clone)]
pub struct Select {
    pub parts: Vec<KeyPart>,
    /// The value, mask and target of each case. Set only if the key is a single unsigned field or lookahead of up to 64
    /// bits, and no case is a value set.
    pub small: Option<Vec<(u64, u64, Pc)>>,
    pub cases: Vec<Case>,
    pub default: Pc,
}

/// An event that a traced run records.
#[derive(Debug, Clone)]
pub enum Note {
    ParserState(String),
    Extract(String),
    Condition { text: String, a: Slot },
    Action(u32),
}

/// One compiled variant of the program: either the optimized variant or the variant that records a trace.
#[derive(Default)]
pub struct Code {
    pub ops: Vec<Op>,
    pub ext: Vec<Ext>,
    pub selects: Vec<Select>,
    pub notes: Vec<Note>,
    pub parser: Pc,
    pub ingress: Pc,
    pub egress: Pc,
    /// The index of each control-flow node's first instruction, by the node's number.
    pub nodes: Vec<Pc>,
    /// The index of each action's first instruction.
    pub actions: Vec<Pc>,
    /// For each checksum, the start of the code that computes its condition (`None` without a condition), and the slot
    /// in which the code stores the condition's value.
    pub conditions: Vec<(Option<Pc>, Slot)>,
    /// The start of the deparser's primitives, which run after the checksums are computed and before the headers are
    /// written. `None` if there are no primitives.
    pub deparser: Option<Pc>,
}

#[cfg(test)]
mod tests {
    #[test]
    fn an_instruction_is_eight_bytes() {
        assert_eq!(size_of::<super::Op>(), 8);
    }
}
