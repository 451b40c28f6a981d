//! Compiled arithmetic on integers wider than 64 bits. It is used for expressions on wide fields, and for narrow
//! expressions whose exact intermediate values exceed 64 bits.
//!
//! An expression becomes a sequence of steps without branches. A choice computes both of its alternatives, which is
//! correct because steps cannot fail and have no side effects. Each step writes a row of scratch words whose length is
//! fixed when the program is loaded ([`compile`]), so a packet needs no allocation. A row is an integer in two's
//! complement, least significant word first.

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

/// The maximum distance of a shift, in bits; a larger or a negative distance counts as this one. All values that can be
/// assigned to a field have fewer bits.
const MAX_SHIFT: u32 = 1 << 17;

/// A step of the computation. `d` is the destination, which does not overlap any operand; `a` and `b` are the operands.
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
    /// Any operation of [`BinOp`] except division and remainder.
    Bin {
        op: BinOp,
        d: Row,
        a: Row,
        b: Row,
    },
    /// A division. `work` is a scratch row with one word more than both operands together.
    Divide {
        which_result: DivisionResult,
        d: Row,
        a: Row,
        b: Row,
        work: Row,
    },
    Not {
        d: Row,
        a: Row,
    },
    /// The low `width` bits of `a`, read as a signed number in two's complement.
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
    /// A choice: the result is `a` if `c` is not zero, and `b` otherwise.
    Select {
        d: Row,
        c: Row,
        a: Row,
        b: Row,
    },
}

/// Selects which result of a division is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DivisionResult {
    Quotient,
    Remainder,
}

/// A compiled assignment: the steps that compute a value, and the field that receives the value.
#[derive(Debug, Clone)]
pub struct Wide {
    steps: Vec<Step>,
    result: Row,
    d: FieldRef,
    /// The number of scratch words that the assignment needs.
    pub scratch: usize,
}

impl Wide {
    /// Executes the assignment. `scratch` must have at least [`Wide::scratch`] words, whose contents are ignored.
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
                Step::Divide { which_result, d, a, b, work } => w.divide(which_result, d, a, b, work),
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

    /// Returns the fields that the assignment reads, followed by the field that it writes.
    pub fn fields(&self) -> impl Iterator<Item = &FieldRef> {
        let read = self.steps.iter().filter_map(|step| match step {
            Step::Field { f, .. } => Some(f),
            _ => None,
        });
        read.chain([&self.d])
    }
}

/// Writes a number to a field. The number is cut to the field's width.
fn store(s: &mut Slots, f: FieldRef, w: &Words, value: Row) {
    let first = usize::from(f.data());
    let last = first + f.limbs() - 1;
    for (i, slot) in s[first..=last].iter_mut().enumerate() {
        *slot = w.word(value, i);
    }
    let top_bits = f.width - 64 * (f.limbs() as u32 - 1);
    s[last] = if f.signed && f.narrow() { sign_extend(s[last], top_bits) } else { s[last] & mask64(top_bits) };
}
