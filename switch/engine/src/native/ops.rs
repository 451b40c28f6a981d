//! Emits machine code for arithmetic, comparisons and copies.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::I64;
use cranelift_codegen::ir::{InstBuilder, Value};

use super::emit::Fun;
use crate::code::Op;
use crate::layout::Slot;

impl Fun<'_, '_> {
    /// Emits an instruction that computes a value or copies slots. Returns false for an instruction of another kind.
    #[expect(clippy::too_many_lines, reason = "one arm an instruction")]
    pub fn compute(&mut self, op: Op) -> bool {
        use IntCC::{
            Equal, NotEqual, SignedLessThan, SignedLessThanOrEqual, UnsignedLessThan, UnsignedLessThanOrEqual,
        };
        let (d, v) = match op {
            Op::Mov { m, d, a } => {
                let v = self.get(a);
                (d, self.cut(v, m))
            }
            Op::Add { m, d, a, b } => (d, self.binary(a, b, |f, a, b| f.b.ins().iadd(a, b)).map_cut(self, m)),
            Op::Sub { m, d, a, b } => (d, self.binary(a, b, |f, a, b| f.b.ins().isub(a, b)).map_cut(self, m)),
            Op::Mul { m, d, a, b } => (d, self.binary(a, b, |f, a, b| f.b.ins().imul(a, b)).map_cut(self, m)),
            Op::And { d, a, b } => (d, self.binary(a, b, |f, a, b| f.b.ins().band(a, b)).0),
            Op::Or { d, a, b } => (d, self.binary(a, b, |f, a, b| f.b.ins().bor(a, b)).0),
            Op::Xor { d, a, b } => (d, self.binary(a, b, |f, a, b| f.b.ins().bxor(a, b)).0),
            Op::Not { m, d, a } => {
                let v = self.get(a);
                let v = self.b.ins().bnot(v);
                (d, self.cut(v, m))
            }
            Op::Shl { m, d, a, b } => (d, self.binary(a, b, Self::shift_left).map_cut(self, m)),
            Op::Shr { d, a, b } => (d, self.binary(a, b, Self::shift_right).0),
            Op::Sar { d, a, b } => (d, self.binary(a, b, Self::shift_signed).0),
            Op::ShlI { m, k, d, a } => {
                let v = self.get(a);
                let v = self.b.ins().ishl_imm(v, i64::from(k));
                (d, self.cut(v, m))
            }
            Op::ShrI { m, k, d, a } => {
                let v = self.get(a);
                let v = self.b.ins().ushr_imm(v, i64::from(k));
                (d, self.cut(v, m))
            }
            Op::SarI { k, d, a } => {
                let v = self.get(a);
                (d, self.b.ins().sshr_imm(v, i64::from(k)))
            }
            Op::Funnel { m, k, d, a } => {
                let (low, high) = (self.get(a), self.get(a.wrapping_add(1)));
                let low = self.b.ins().ushr_imm(low, i64::from(k));
                let high = self.b.ins().ishl_imm(high, 64 - i64::from(k));
                let v = self.b.ins().bor(low, high);
                (d, self.cut(v, m))
            }
            Op::Div { d, a, b } => (d, self.binary(a, b, |f, a, b| f.divide(a, b, false)).0),
            Op::Rem { d, a, b } => (d, self.binary(a, b, |f, a, b| f.divide(a, b, true)).0),
            Op::Sext { m, d, a } => {
                let v = self.get(a);
                let v = self.b.ins().ishl_imm(v, i64::from(m));
                (d, self.b.ins().sshr_imm(v, i64::from(m)))
            }
            Op::ClampSU { m, d, a } => {
                let most = (u64::MAX >> m).min(i64::MAX as u64);
                let (v, zero, most) = (self.get(a), self.number(0), self.number(most));
                let v = self.b.ins().smax(v, zero);
                (d, self.b.ins().smin(v, most))
            }
            Op::ClampUU { m, d, a } => {
                let (v, most) = (self.get(a), self.number(u64::MAX >> m));
                (d, self.b.ins().umin(v, most))
            }
            Op::ClampSS { m, d, a } => {
                let v = self.get(a);
                let (low, high) = (self.number((i64::MIN >> m) as u64), self.number((i64::MAX >> m) as u64));
                let v = self.b.ins().smax(v, low);
                (d, self.b.ins().smin(v, high))
            }
            Op::Eq { d, a, b } => (d, self.binary(a, b, |f, a, b| f.compare(Equal, a, b)).0),
            Op::Ne { d, a, b } => (d, self.binary(a, b, |f, a, b| f.compare(NotEqual, a, b)).0),
            Op::LtU { d, a, b } => (d, self.binary(a, b, |f, a, b| f.compare(UnsignedLessThan, a, b)).0),
            Op::LeU { d, a, b } => (d, self.binary(a, b, |f, a, b| f.compare(UnsignedLessThanOrEqual, a, b)).0),
            Op::LtS { d, a, b } => (d, self.binary(a, b, |f, a, b| f.compare(SignedLessThan, a, b)).0),
            Op::LeS { d, a, b } => (d, self.binary(a, b, |f, a, b| f.compare(SignedLessThanOrEqual, a, b)).0),
            Op::Copy { d, a, n } => {
                let row: Vec<Value> = (0..n).map(|i| self.get(a.wrapping_add(i))).collect();
                for (i, v) in row.into_iter().enumerate() {
                    self.set(d.wrapping_add(i as Slot), v);
                }
                return true;
            }
            Op::Zero { d, n } => {
                let zero = self.number(0);
                for i in 0..n {
                    self.set(d.wrapping_add(i), zero);
                }
                return true;
            }
            _ => return false,
        };
        self.set(d, v);
        true
    }

    fn binary(&mut self, a: Slot, b: Slot, f: impl FnOnce(&mut Self, Value, Value) -> Value) -> Uncut {
        let (a, b) = (self.get(a), self.get(b));
        Uncut(f(self, a, b))
    }

    /// Shifts left. A shift by 64 or more gives 0, whereas the processor would shift by the amount modulo 64.
    fn shift_left(&mut self, a: Value, b: Value) -> Value {
        let v = self.b.ins().ishl(a, b);
        self.zero_if_too_far(v, b)
    }

    fn shift_right(&mut self, a: Value, b: Value) -> Value {
        let v = self.b.ins().ushr(a, b);
        self.zero_if_too_far(v, b)
    }

    fn zero_if_too_far(&mut self, v: Value, amount: Value) -> Value {
        let near = self.b.ins().icmp_imm(IntCC::UnsignedLessThan, amount, 64);
        let zero = self.number(0);
        self.b.ins().select(near, v, zero)
    }

    fn shift_signed(&mut self, a: Value, b: Value) -> Value {
        let most = self.number(63);
        let amount = self.b.ins().umin(b, most);
        self.b.ins().sshr(a, amount)
    }

    /// Divides two unsigned values. Returns the quotient, or the remainder if `rest` is true; a division by zero gives
    /// 0 for both.
    fn divide(&mut self, a: Value, b: Value, rest: bool) -> Value {
        let zero = self.is_zero(b);
        let zero = self.b.ins().uextend(I64, zero);
        // The code divides by 1 instead of by zero. The result of such a division is cleared below.
        let divisor = self.b.ins().bor(b, zero);
        let v = if rest { self.b.ins().urem(a, divisor) } else { self.b.ins().udiv(a, divisor) };
        let keep = self.b.ins().iadd_imm(zero, -1);
        self.b.ins().band(v, keep)
    }

    /// Emits the test of a conditional jump. Returns `None` for an instruction of another kind.
    pub fn test(&mut self, op: Op) -> Option<Value> {
        let (code, a, b) = match op {
            Op::JumpIfZero { a, .. } => {
                let v = self.get(a);
                return Some(self.is_zero(v));
            }
            Op::JumpIfNotZero { a, .. } => {
                let v = self.get(a);
                return Some(self.not_zero(v));
            }
            Op::JumpEq { a, b, .. } => (IntCC::Equal, a, b),
            Op::JumpNe { a, b, .. } => (IntCC::NotEqual, a, b),
            Op::JumpLtU { a, b, .. } => (IntCC::UnsignedLessThan, a, b),
            Op::JumpLeU { a, b, .. } => (IntCC::UnsignedLessThanOrEqual, a, b),
            Op::JumpLtS { a, b, .. } => (IntCC::SignedLessThan, a, b),
            Op::JumpLeS { a, b, .. } => (IntCC::SignedLessThanOrEqual, a, b),
            _ => return None,
        };
        let (a, b) = (self.get(a), self.get(b));
        Some(self.b.ins().icmp(code, a, b))
    }
}

/// A computed value that may have more bits than its destination.
struct Uncut(Value);

impl Uncut {
    fn map_cut(self, f: &mut Fun<'_, '_>, m: u8) -> Value {
        f.cut(self.0, m)
    }
}
