//! Compiles shifts, and the wrapping and clamping of values to a width.

use super::arith::{bounded, small_constant};
use super::{Bounds, Gen, Result, Val};
use num_bigint::BigInt;

use crate::code::Op;
use crate::expr::{BinOp, Expr};
use crate::layout::{FieldRef, Slot};

/// If `e`, cut to `width` bits, is an unsigned field shifted left, returns the field and the distance in bits;
/// otherwise returns `None`. Such shifts occur in two forms in p4c's JSON: as a shift of a masked field, and as an OR
/// of a shifted field with zeros.
pub fn moved_left(e: &Expr, width: u32) -> Option<(FieldRef, u32)> {
    let ones = |n: &BigInt, width: u32| n.clone() & ((BigInt::from(1) << width) - 1) == (BigInt::from(1) << width) - 1;
    match e {
        Expr::Field(f) if !f.signed && !f.varbit => Some((*f, 0)),
        Expr::Bin(BinOp::Shl, a, k) => {
            let (f, inner) = moved_left(a, width)?;
            Some((f, inner.saturating_add(small_constant(k)?)))
        }
        Expr::Bin(BinOp::And, a, mask) => match &**mask {
            Expr::Const(n) if ones(n, width) => moved_left(a, width),
            _ => None,
        },
        Expr::Bin(BinOp::Or, a, zeros) => match &**zeros {
            Expr::Const(n) if *n == BigInt::ZERO => moved_left(a, width),
            _ => None,
        },
        _ => None,
    }
}

impl Gen<'_, '_> {
    /// Compiles `d = a << k` for a field of several words, cut to the width of `d`. The code proceeds from the last
    /// word to the first, because `a` may be the same field as `d`.
    pub fn shift_words(&mut self, d: FieldRef, a: FieldRef, k: u32) {
        let (words, k) = ((k / 64) as usize, (k % 64) as u8);
        let word = |i: Option<usize>| i.filter(|&i| i < a.limbs()).map(|i| a.slot + i as Slot);
        for i in (0..d.limbs()).rev() {
            let to = d.slot + i as Slot;
            let m = if i + 1 == d.limbs() { (64 * d.limbs() as u32 - d.width) as u8 } else { 0 };
            let high = word(i.checked_sub(words));
            let low = word(i.checked_sub(words + 1)).filter(|_| k != 0);
            self.emit(match (high, low) {
                (Some(_), Some(low)) => Op::Funnel { m, k: 64 - k, d: to, a: low },
                (Some(high), None) if k == 0 => Op::Mov { m, d: to, a: high },
                (Some(high), None) => Op::ShlI { m, k, d: to, a: high },
                (None, Some(low)) => Op::ShrI { m, k: 64 - k, d: to, a: low },
                (None, None) => Op::Zero { d: to, n: 1 },
            });
        }
    }

    pub fn shift_left(&mut self, a: &Expr, b: &Expr, d: Option<Slot>, width: Option<u32>) -> Result<Val> {
        let m = width.map_or(0, |w| (64 - w) as u8);
        let x = self.value(a, None)?;
        let cut = |bounds: Bounds| width.map_or(bounds, |w| Some((0, (1i128 << w) - 1)));
        if let Some(k) = small_constant(b) {
            if k >= 64 {
                let zero = self.constant(0)?;
                let v = self.leaf(zero, None, d)?;
                return Ok(Val { bounds: cut(None), ..v });
            }
            let bounds = x.bounds.and_then(|(l, h)| bounded(l.checked_mul(1i128 << k), h.checked_mul(1i128 << k)));
            let d = self.or_temp(d)?;
            self.emit(Op::ShlI { m, k: k as u8, d, a: x.slot });
            return Ok(Val { slot: d, bounds: cut(bounds) });
        }
        let y = self.exact_amount(b)?;
        let bounds = match (x.bounds, y.bounds) {
            (Some((l, h)), Some((_, k))) if k < 64 => {
                bounded(l.min(0).checked_mul(1i128 << k), h.max(0).checked_mul(1i128 << k))
            }
            _ => None,
        };
        let d = self.or_temp(d)?;
        self.emit(Op::Shl { m, d, a: x.slot, b: y.slot });
        Ok(Val { slot: d, bounds: cut(bounds) })
    }

    /// Computes a shift amount with which the shift's result is exact. An amount that may be negative or may not fit
    /// into 64 bits is clamped to the range from 0 to 2^32 - 1; a shift by 2^32 - 1 shifts out all bits.
    fn exact_amount(&mut self, b: &Expr) -> Result<Val> {
        let y = self.value(b, None)?;
        if y.is_u64() {
            return Ok(y);
        }
        let clamped = Expr::SatUnsigned(Box::new(b.clone()), 32);
        let y = self.general(&clamped, None)?;
        Ok(Val { bounds: Some((0, 0xffff_ffff)), ..y })
    }

    pub fn shift_right(&mut self, e: &Expr, a: &Expr, b: &Expr, d: Option<Slot>) -> Result<Val> {
        if let (Expr::Field(f), Some(k)) = (a, small_constant(b)) {
            // If the bits that remain of a wide field fit into one word, they are read as a slice of the field.
            if !f.narrow() && !f.varbit && !f.signed && f.width.saturating_sub(k) <= 64 && k < f.width {
                return self.slice(*f, k, f.width - k, d);
            }
        }
        let x = self.value(a, None)?;
        let Some(bounds) = x.bounds.filter(|_| x.is_u64() || x.is_i64()) else {
            return self.general(e, d);
        };
        let unsigned = x.is_u64();
        if let Some(k) = small_constant(b) {
            let k = k.min(if unsigned { 64 } else { 63 });
            if k == 64 {
                let zero = self.constant(0)?;
                return self.leaf(zero, Some((0, 0)), d);
            }
            let d = self.or_temp(d)?;
            let op = if unsigned {
                Op::ShrI { m: 0, k: k as u8, d, a: x.slot }
            } else {
                Op::SarI { k: k as u8, d, a: x.slot }
            };
            self.emit(op);
            return Ok(Val { slot: d, bounds: Some((bounds.0 >> k, bounds.1 >> k)) });
        }
        let y = self.exact_amount(b)?;
        let d = self.or_temp(d)?;
        self.emit(if unsigned { Op::Shr { d, a: x.slot, b: y.slot } } else { Op::Sar { d, a: x.slot, b: y.slot } });
        Ok(Val { slot: d, bounds: Some((bounds.0.min(0), bounds.1.max(0))) })
    }

    pub fn wrap(&mut self, e: &Expr, a: &Expr, width: u32, d: Option<Slot>) -> Result<Val> {
        if width > 64 {
            return self.general(e, d);
        }
        let x = self.value(a, None)?;
        if x.fits_signed(width) {
            return self.leaf(x.slot, x.bounds, d);
        }
        let d = self.or_temp(d)?;
        self.emit(Op::Sext { m: (64 - width) as u8, d, a: x.slot });
        Ok(Val { slot: d, bounds: Some((-(1 << (width - 1)), (1 << (width - 1)) - 1)) })
    }

    pub fn clamp(&mut self, e: &Expr, a: &Expr, width: u32, d: Option<Slot>) -> Result<Val> {
        if width > 64 {
            return self.general(e, d);
        }
        let signed = matches!(e, Expr::SatSigned(..));
        let bounds =
            if signed { (-(1i128 << (width - 1)), (1i128 << (width - 1)) - 1) } else { (0, (1i128 << width) - 1) };
        let x = self.value(a, None)?;
        let m = (64 - width) as u8;
        let slot = if signed && x.is_i64() {
            let d = self.or_temp(d)?;
            self.emit(Op::ClampSS { m, d, a: x.slot });
            d
        } else if !signed && x.is_u64() {
            let d = self.or_temp(d)?;
            self.emit(Op::ClampUU { m, d, a: x.slot });
            d
        } else if !signed && x.is_i64() {
            let d = self.or_temp(d)?;
            self.emit(Op::ClampSU { m, d, a: x.slot });
            d
        } else {
            self.general(e, d)?.slot
        };
        Ok(Val { slot, bounds: Some(bounds) })
    }
}
