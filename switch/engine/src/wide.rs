//! The general evaluator: integers of any size, for the few expressions that 64 bits cannot hold.

#[cfg(test)]
mod tests;

use num_bigint::{BigInt, Sign};

use crate::codegen::to_limbs;
use crate::expr::{BinOp, CmpOp, Expr};
use crate::layout::{FieldRef, Slot, Slots, mask64};
use crate::phv::StackAt;

/// No shift moves further than this: every value is narrower.
const MAX_SHIFT: u64 = 1 << 17;

/// Reads a field as an exact integer.
pub fn read(slots: &Slots, f: FieldRef) -> BigInt {
    if f.narrow() {
        let v = slots[f.slot as usize];
        return if f.signed { BigInt::from(v as i64) } else { BigInt::from(v) };
    }
    let digits: Vec<u32> = (0..f.limbs())
        .flat_map(|i| {
            let v = slots[usize::from(f.data()) + i];
            [v as u32, (v >> 32) as u32]
        })
        .collect();
    let n = BigInt::new(Sign::Plus, digits);
    if f.signed && n.bit(u64::from(f.width) - 1) { n - (BigInt::from(1) << f.width) } else { n }
}

/// Writes a value, cut to the field's width.
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

/// The low `width` bits as a signed number.
pub fn sign_extend(v: u64, width: u32) -> u64 {
    let m = 64 - width;
    (((v << m) as i64) >> m) as u64
}

/// Evaluates; conditions give 0 or 1. Header comparisons have their own instruction and give 0 here.
pub fn eval(e: &Expr, slots: &Slots, stacks: &[StackAt]) -> BigInt {
    let go = |e: &Expr| -> BigInt { eval(e, slots, stacks) };
    let truth = |e: &Expr| go(e).sign() != Sign::NoSign;
    match e {
        Expr::Const(n) => n.clone(),
        Expr::Bool(b) => BigInt::from(u8::from(*b)),
        Expr::Field(f) => read(slots, *f),
        Expr::LastIndex(next) => BigInt::from(slots[next.slot as usize]) - 1,
        Expr::StackLast(stack, f) => {
            stacks[*stack].last(slots).map_or(BigInt::ZERO, |base: Slot| read(slots, f.offset(base)))
        }
        Expr::StackIndexed(stack, index, f) => {
            let index = u64::try_from(&go(index)).unwrap_or(u64::MAX);
            stacks[*stack].element(index).map_or(BigInt::ZERO, |base| read(slots, f.offset(base)))
        }
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
            BigInt::from(u8::from(match op {
                CmpOp::Eq => order.is_eq(),
                CmpOp::Ne => order.is_ne(),
                CmpOp::Lt => order.is_lt(),
                CmpOp::Le => order.is_le(),
                CmpOp::Gt => order.is_gt(),
                CmpOp::Ge => order.is_ge(),
            }))
        }
        Expr::And(a, b) => BigInt::from(u8::from(truth(a) && truth(b))),
        Expr::Or(a, b) => BigInt::from(u8::from(truth(a) || truth(b))),
        Expr::Not(a) => BigInt::from(u8::from(!truth(a))),
        Expr::ToBool(a) => BigInt::from(u8::from(truth(a))),
        Expr::HeaderEq(..) | Expr::UnionEq(..) | Expr::UnionValid(_) => BigInt::ZERO,
    }
}

fn binary(op: BinOp, a: BigInt, b: BigInt) -> BigInt {
    let shift = |b: &BigInt| u64::try_from(b).unwrap_or(MAX_SHIFT).min(MAX_SHIFT);
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

/// Big-endian bytes, `ceil(width / 8)` of them, of a value cut to its width.
pub fn to_bytes(slots: &Slots, f: FieldRef) -> Vec<u8> {
    let width = if f.varbit { slots[f.slot as usize].min(f.width.into()) as u32 } else { f.width };
    limbs_to_bytes(&slots[usize::from(f.data())..usize::from(f.data()) + f.limbs()], width)
}

/// The same for words, least significant first.
pub fn limbs_to_bytes(row: &[u64], width: u32) -> Vec<u8> {
    let n = width.div_ceil(8) as usize;
    let mut out: Vec<u8> = (0..n).rev().map(|i| (row[i / 8] >> (8 * (i % 8))) as u8).collect();
    if !width.is_multiple_of(8) {
        out[0] &= mask64(width % 8) as u8;
    }
    out
}
