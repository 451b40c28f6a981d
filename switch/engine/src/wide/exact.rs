//! The reference evaluation of expressions, with integers of any size. Tests compare its results with those of compiled
//! expressions.

use num_bigint::{BigInt, Sign};

use super::MAX_SHIFT;
use crate::bits::to_limbs;
use crate::expr::{BinOp, Expr};
use crate::layout::{FieldRef, Slots, sign_extend};

/// Writes a value to a field. The value is cut to the field's width.
pub fn write(slots: &mut Slots, f: FieldRef, value: &BigInt) {
    let row = to_limbs(value, f.width);
    if f.narrow() {
        let v = row[0];
        slots[f.slot as usize] = if f.signed { sign_extend(v, f.width) } else { v };
    } else {
        let first = usize::from(f.data());
        slots[first..first + row.len()].copy_from_slice(&row);
    }
}

/// Evaluates an expression. The result of a condition is 0 or 1.
pub fn eval(e: &Expr, slots: &Slots) -> BigInt {
    let go = |e: &Expr| -> BigInt { eval(e, slots) };
    let truth = |e: &Expr| go(e).sign() != Sign::NoSign;
    match e {
        Expr::Const(n) => n.clone(),
        Expr::Bool(b) => BigInt::from(u8::from(*b)),
        Expr::Field(f) => f.exact(slots),
        Expr::Bin(op, a, b) => binary(*op, go(a), go(b)),
        Expr::BitNot(a) => -go(a) - 1,
        Expr::Wrap(a, width) => {
            let low: BigInt = go(a) & ((BigInt::from(1) << *width) - 1);
            if low.bit(u64::from(*width) - 1) { low - (BigInt::from(1) << *width) } else { low }
        }
        Expr::SatSigned(a, width) => {
            let half = BigInt::from(1) << (*width - 1);
            go(a).clamp(-half.clone(), half - 1)
        }
        Expr::SatUnsigned(a, width) => go(a).clamp(BigInt::ZERO, (BigInt::from(1) << *width) - 1),
        Expr::Select(c, a, b) => go(if truth(c) { a } else { b }),
        Expr::Cmp(op, a, b) => {
            let order = go(a).cmp(&go(b));
            BigInt::from(u8::from(op.holds(order)))
        }
        Expr::And(a, b) => BigInt::from(u8::from(truth(a) && truth(b))),
        Expr::Or(a, b) => BigInt::from(u8::from(truth(a) || truth(b))),
        Expr::Not(a) => BigInt::from(u8::from(!truth(a))),
        Expr::ToBool(a) => BigInt::from(u8::from(truth(a))),
        _ => panic!("a header or a stack"),
    }
}

fn binary(op: BinOp, a: BigInt, b: BigInt) -> BigInt {
    let shift = |b: &BigInt| u64::try_from(b).unwrap_or(MAX_SHIFT.into()).min(MAX_SHIFT.into());
    match op {
        BinOp::Add => a + b,
        BinOp::Sub => a - b,
        BinOp::Mul => a * b,
        BinOp::And => a & b,
        BinOp::Or => a | b,
        BinOp::Xor => a ^ b,
        BinOp::Shl => a << shift(&b),
        BinOp::Shr => a >> shift(&b),
        BinOp::Div if b.sign() == Sign::NoSign => BigInt::ZERO,
        BinOp::Mod if b.sign() == Sign::NoSign => BigInt::ZERO,
        BinOp::Div => a / b,
        BinOp::Mod => a % b,
    }
}
