//! Shifts, wrapping and clamping.

use super::arith::{bounded, small_constant};
use super::{Bounds, Gen, Result, Val};
use crate::code::Op;
use crate::expr::Expr;
use crate::layout::Slot;

impl Gen<'_, '_> {
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

    /// A shift amount: anything that does not fit 64 bits shifts everything out all the same.
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
            // the high part of a wide field, if that fits a word
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
