//! Arithmetic that 64 bits cannot hold, compiled: for the few expressions on wide fields, and exact results of narrow ones.
//!
//! An expression becomes a straight line of steps, which is right because none can fail and none has effects: both arms of a
//! choice are computed. Each step writes a row of scratch words whose length was settled when the program was loaded
//! ([`compile`]), so a packet costs no allocation. A row holds an integer in two's complement, least significant word first.

mod compile;
mod divide;
#[cfg(test)]
pub mod exact;
mod scratch;
#[cfg(test)]
mod tests;
mod words;

use self::scratch::Row;
use self::words::Words;
use crate::expr::{BinOp, CmpOp};
use crate::layout::{FieldRef, Slots, mask64, sign_extend};

/// No shift moves further than this: every value that can be assigned is narrower.
const MAX_SHIFT: u32 = 1 << 17;

/// `d`: destination, no part of any operand. `a`, `b`: operands.
#[derive(Debug, Clone)]
enum Step {
    Constant {
        d: Row,
        value: Vec<u64>,
    },
    Field {
        d: Row,
        f: FieldRef,
    },
    /// All but divisions.
    Bin {
        op: BinOp,
        d: Row,
        a: Row,
        b: Row,
    },
    /// `work`: a word more than both operands have.
    Divide {
        part: Part,
        d: Row,
        a: Row,
        b: Row,
        work: Row,
    },
    Not {
        d: Row,
        a: Row,
    },
    /// Two's complement of so many bits.
    Wrap {
        d: Row,
        a: Row,
        width: u32,
    },
    Clamp {
        d: Row,
        a: Row,
        low: Row,
        high: Row,
    },
    Compare {
        op: CmpOp,
        d: Row,
        a: Row,
        b: Row,
    },
    /// `a` if `c` is not zero, else `b`.
    Select {
        d: Row,
        c: Row,
        a: Row,
        b: Row,
    },
}

/// What is wanted of a division.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Quotient,
    Remainder,
}

/// An assignment.
#[derive(Debug, Clone)]
pub struct Wide {
    steps: Vec<Step>,
    result: Row,
    d: FieldRef,
    /// Scratch words it takes.
    pub scratch: usize,
}

impl Wide {
    /// Runs it; `scratch` holds at least as many words as it takes, whatever is in them.
    pub fn run(&self, s: &mut Slots, scratch: &mut [u64]) {
        let mut w = Words(scratch);
        for step in &self.steps {
            match *step {
                Step::Constant { d, ref value } => w.set(d, value),
                Step::Field { d, f } => {
                    let first = usize::from(f.data());
                    w.set(d, &s[first..first + f.limbs()]);
                    if f.signed {
                        w.extend(d, f.width);
                    }
                }
                Step::Bin { op, d, a, b } => match op {
                    BinOp::Add => w.add(d, a, b),
                    BinOp::Sub => w.subtract(d, a, b),
                    BinOp::Mul => w.multiply(d, a, b),
                    BinOp::And => w.bitwise(d, a, b, |x, y| x & y),
                    BinOp::Or => w.bitwise(d, a, b, |x, y| x | y),
                    BinOp::Xor => w.bitwise(d, a, b, |x, y| x ^ y),
                    BinOp::Shl => w.shift_left(d, a, w.amount(b)),
                    BinOp::Shr => w.shift_right(d, a, w.amount(b)),
                    BinOp::Div | BinOp::Mod => unreachable!("divisions have a step of their own"),
                },
                Step::Divide { part, d, a, b, work } => w.divide(part, d, a, b, work),
                Step::Not { d, a } => w.bitwise(d, a, a, |x, _| !x),
                Step::Wrap { d, a, width } => {
                    w.copy(d, a);
                    w.extend(d, width);
                }
                Step::Clamp { d, a, low, high } => {
                    let from = if w.compare(a, low).is_lt() {
                        low
                    } else if w.compare(a, high).is_gt() {
                        high
                    } else {
                        a
                    };
                    w.copy(d, from);
                }
                Step::Compare { op, d, a, b } => {
                    let order = w.compare(a, b);
                    w.set(d, &[u64::from(op.holds(order))]);
                }
                Step::Select { d, c, a, b } => w.copy(d, if w.is_zero(c) { b } else { a }),
            }
        }
        store(s, self.d, &w, self.result);
    }

    /// Fields it reads, then the one it writes.
    pub fn fields(&self) -> impl Iterator<Item = &FieldRef> {
        let read = self.steps.iter().filter_map(|step| match step {
            Step::Field { f, .. } => Some(f),
            _ => None,
        });
        read.chain([&self.d])
    }
}

/// Writes a number, cut to the field's width.
fn store(s: &mut Slots, f: FieldRef, w: &Words, value: Row) {
    let first = usize::from(f.data());
    let last = first + f.limbs() - 1;
    for (i, slot) in s[first..=last].iter_mut().enumerate() {
        *slot = w.word(value, i);
    }
    let left = f.width - 64 * (f.limbs() as u32 - 1);
    s[last] = if f.signed && f.narrow() { sign_extend(s[last], left) } else { s[last] & mask64(left) };
}
