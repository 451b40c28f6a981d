//! Compiles expressions to steps, and determines the length of every row.
//!
//! Bounds are computed from the leaves of the expression to its root: the widths of the fields limit the number of bits
//! of each result. The number of wanted bits is computed from the root to the leaves. If a value is cut to a width,
//! only its low bits are wanted. Low bits of sums, products, bit operations and left shifts depend only on low bits of
//! the operands. The number in a row is always correct modulo 2^wanted. The number is exact if the row is as long as
//! the bound requires.

use num_bigint::{BigInt, Sign};

use super::scratch::{Row, Scratch};
use super::{DivisionResult, MAX_SHIFT, Step, Wide};
use crate::bits::to_limbs;
use crate::expr::{BinOp, CmpOp, Expr};
use crate::layout::{FieldRef, limbs};

/// The value of `wanted` which means that all bits of a value are wanted.
const EXACT: u32 = u32::MAX;
/// The maximum number of bits of an intermediate value. It limits each row of scratch words to about 64 KiB.
pub const MAX_BITS: u32 = 1 << 19;

/// The error for an expression whose value may have more than [`MAX_BITS`] bits.
#[derive(Debug, thiserror::Error)]
#[error("the expression has a value that may take more than {MAX_BITS} bits")]
pub struct TooWide;

/// A row and the bounds of the number in it. The number is less than 2^bits. If `negative` is false, the number is at
/// least 0; otherwise, it is at least -2^bits.
struct Value {
    row: Row,
    bits: u32,
    negative: bool,
}

type Result<T> = std::result::Result<T, TooWide>;

#[derive(Default)]
struct Compiler {
    steps: Vec<Step>,
    scratch: Scratch,
}

impl Wide {
    /// Compiles `d = expr`. The value is cut to the width of `d`. The expression must not refer to headers or stacks.
    ///
    /// # Errors
    /// [`TooWide`] if an intermediate value may have more than [`MAX_BITS`] bits.
    pub fn new(expr: &Expr, d: FieldRef) -> Result<Wide> {
        let mut c = Compiler::default();
        let result = c.value(expr, d.width)?.row;
        Ok(Wide { steps: c.steps, result, d, scratch: c.scratch.words })
    }
}

impl Compiler {
    /// Emits the steps that compute an expression. Only the `wanted` low bits of the result need to be correct.
    fn value(&mut self, e: &Expr, wanted: u32) -> Result<Value> {
        match e {
            Expr::Const(n) => self.constant(n, wanted),
            Expr::Bool(b) => self.constant(&BigInt::from(u8::from(*b)), wanted),
            Expr::Field(f) => {
                let d = self.place(f.width - u32::from(f.signed), f.signed, wanted)?;
                self.steps.push(Step::Field { d: d.row, f: *f });
                Ok(d)
            }
            Expr::Bin(op, a, b) => self.binary(*op, a, b, wanted),
            Expr::BitNot(a) => {
                let a = self.value(a, wanted)?;
                let d = self.place(a.bits, true, wanted)?;
                self.finish(Step::Not { d: d.row, a: a.row }, [a], d)
            }
            Expr::Wrap(a, width) if wanted <= *width => self.value(a, wanted),
            Expr::Wrap(a, width) => {
                let a = self.value(a, *width)?;
                let d = self.place(width - 1, true, wanted)?;
                self.finish(Step::Wrap { d: d.row, a: a.row, width: *width }, [a], d)
            }
            Expr::SatSigned(a, width) => {
                let half = BigInt::from(1) << (width - 1);
                self.clamp(a, &-&half, &(&half - 1), wanted)
            }
            Expr::SatUnsigned(a, width) => self.clamp(a, &BigInt::ZERO, &((BigInt::from(1) << *width) - 1), wanted),
            Expr::Select(c, a, b) => {
                let (c, a, b) = (self.truth(c)?, self.value(a, wanted)?, self.value(b, wanted)?);
                let d = self.place(a.bits.max(b.bits), a.negative || b.negative, wanted)?;
                self.finish(Step::Select { d: d.row, c: c.row, a: a.row, b: b.row }, [c, a, b], d)
            }
            Expr::Cmp(op, a, b) => {
                let (a, b) = (self.value(a, EXACT)?, self.value(b, EXACT)?);
                self.compare(*op, a, b)
            }
            Expr::And(a, b) => self.both(BinOp::And, a, b),
            Expr::Or(a, b) => self.both(BinOp::Or, a, b),
            Expr::Not(a) => {
                let a = self.value(a, EXACT)?;
                self.against_zero(CmpOp::Eq, a)
            }
            Expr::ToBool(a) => self.truth(a),
            Expr::StackLast(..)
            | Expr::StackIndexed(..)
            | Expr::LastIndex(_)
            | Expr::HeaderEq(..)
            | Expr::UnionEq(..)
            | Expr::UnionValid(_) => unreachable!("headers and stacks were replaced by fields"),
        }
    }

    /// Reserves a row for a number of `bits` bits. Only the `wanted` low bits of the number need to be stored.
    fn place(&mut self, bits: u32, negative: bool, wanted: u32) -> Result<Value> {
        let (all, low) = (limbs(bits + 1), limbs(wanted));
        if all.min(low) > limbs(MAX_BITS) {
            return Err(TooWide);
        }
        Ok(if all <= low {
            Value { row: self.scratch.take(all), bits, negative }
        } else {
            Value { row: self.scratch.take(low), bits: 64 * low as u32 - 1, negative: true }
        })
    }

    /// Adds a step whose result is `d`. The rows of the step's operands become free.
    fn finish<const N: usize>(&mut self, step: Step, operands: [Value; N], d: Value) -> Result<Value> {
        self.steps.push(step);
        for operand in operands {
            self.scratch.free(operand.row);
        }
        Ok(d)
    }

    fn constant(&mut self, n: &BigInt, wanted: u32) -> Result<Value> {
        let negative = n.sign() == Sign::Minus;
        let bits = if negative { (n + 1u8).bits() } else { n.bits() };
        let d = self.place(u32::try_from(bits).map_err(|_| TooWide)?.min(EXACT - 1), negative, wanted)?;
        let value = to_limbs(n, 64 * d.row.words as u32);
        self.steps.push(Step::Constant { d: d.row, value });
        Ok(d)
    }

    fn binary(&mut self, op: BinOp, a: &Expr, b: &Expr, wanted: u32) -> Result<Value> {
        match op {
            BinOp::Div | BinOp::Mod => return self.divide(op, a, b, wanted),
            BinOp::Shl | BinOp::Shr => return self.shift(op, a, b, wanted),
            _ => {}
        }
        let beside = |other: &Expr| match op {
            BinOp::And => wanted.min(mask(other)),
            _ => wanted,
        };
        let (a, b) = (self.value(a, beside(b))?, self.value(b, beside(a))?);
        let (max_bits, negative) = (a.bits.max(b.bits), a.negative || b.negative);
        let (bits, negative) = match op {
            BinOp::Add => (max_bits + 1, negative),
            BinOp::Sub => (max_bits + 1, true),
            // The product of -2^a and -2^b is 2^(a + b), which needs one more bit.
            BinOp::Mul => (a.bits + b.bits + 1, negative),
            BinOp::And if !a.negative && !b.negative => (a.bits.min(b.bits), false),
            BinOp::And if !a.negative => (a.bits, false),
            BinOp::And if !b.negative => (b.bits, false),
            _ => (max_bits, negative),
        };
        let d = self.place(bits, negative, wanted)?;
        self.finish(Step::Bin { op, d: d.row, a: a.row, b: b.row }, [a, b], d)
    }

    fn shift(&mut self, op: BinOp, a: &Expr, b: &Expr, wanted: u32) -> Result<Value> {
        let b_value = self.value(b, EXACT)?;
        let (least, most) = match b {
            Expr::Const(k) => {
                let k = u32::try_from(k).unwrap_or(MAX_SHIFT).min(MAX_SHIFT);
                (k, k)
            }
            _ if b_value.negative || b_value.bits > MAX_SHIFT.ilog2() => (0, MAX_SHIFT),
            _ => (0, (1 << b_value.bits) - 1),
        };
        let (a, d) = if op == BinOp::Shl {
            let a = self.value(a, wanted)?;
            let d = self.place(a.bits + most, a.negative, wanted)?;
            (a, d)
        } else {
            let a = self.value(a, wanted.saturating_add(most))?;
            let d = self.place(a.bits.saturating_sub(least), a.negative, wanted)?;
            (a, d)
        };
        self.finish(Step::Bin { op, d: d.row, a: a.row, b: b_value.row }, [a, b_value], d)
    }

    fn divide(&mut self, op: BinOp, a: &Expr, b: &Expr, wanted: u32) -> Result<Value> {
        let (a, b) = (self.value(a, EXACT)?, self.value(b, EXACT)?);
        let (which_result, bits, negative) = match op {
            // The quotient of -2^bits and -1 is 2^bits, which needs one more bit.
            BinOp::Div => (DivisionResult::Quotient, a.bits + 1, a.negative || b.negative),
            _ => (DivisionResult::Remainder, a.bits.min(b.bits), a.negative),
        };
        let d = self.place(bits, negative, wanted)?;
        let work = self.scratch.take(a.row.words + 1 + b.row.words);
        let step = Step::Divide { which_result, d: d.row, a: a.row, b: b.row, work };
        self.scratch.free(work);
        self.finish(step, [a, b], d)
    }

    fn clamp(&mut self, a: &Expr, low: &BigInt, high: &BigInt, wanted: u32) -> Result<Value> {
        let a = self.value(a, EXACT)?;
        let (low, high) = (self.constant(low, EXACT)?, self.constant(high, EXACT)?);
        let d = self.place(high.bits, low.negative, wanted)?;
        self.finish(Step::Clamp { d: d.row, a: a.row, low: low.row, high: high.row }, [a, low, high], d)
    }

    fn compare(&mut self, op: CmpOp, a: Value, b: Value) -> Result<Value> {
        let d = self.place(1, false, EXACT)?;
        self.finish(Step::Compare { op, d: d.row, a: a.row, b: b.row }, [a, b], d)
    }

    fn against_zero(&mut self, op: CmpOp, a: Value) -> Result<Value> {
        let zero = self.constant(&BigInt::ZERO, EXACT)?;
        self.compare(op, a, zero)
    }

    /// Computes whether a value is not zero. The result is 0 or 1.
    fn truth(&mut self, e: &Expr) -> Result<Value> {
        let v = self.value(e, EXACT)?;
        if v.bits <= 1 && !v.negative { Ok(v) } else { self.against_zero(CmpOp::Ne, v) }
    }

    fn both(&mut self, op: BinOp, a: &Expr, b: &Expr) -> Result<Value> {
        let (a, b) = (self.truth(a)?, self.truth(b)?);
        let d = self.place(1, false, EXACT)?;
        self.finish(Step::Bin { op, d: d.row, a: a.row, b: b.row }, [a, b], d)
    }
}

/// Returns the number of low bits of the other operand that affect a bitwise AND with this expression.
fn mask(e: &Expr) -> u32 {
    match e {
        Expr::Const(n) if n.sign() != Sign::Minus => u32::try_from(n.bits()).unwrap_or(EXACT),
        _ => EXACT,
    }
}
