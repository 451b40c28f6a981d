//! Compiles arithmetic expressions and conditions to instructions.

use num_bigint::{BigInt, Sign};

use super::{Bounds, Gen, Result, Val};
use crate::code::{Element, Ext, HeaderAt, Op};
use crate::expr::{BinOp, CmpOp, Expr, HeaderRef};
use crate::layout::{FieldRef, Slot};

const I64: (i128, i128) = (i64::MIN as i128, i64::MAX as i128);
/// Bounds whose absolute value is larger than this number are treated as unknown bounds.
const LARGE: i128 = 1 << 120;

pub fn bounded(low: Option<i128>, high: Option<i128>) -> Bounds {
    match (low, high) {
        (Some(l), Some(h)) if l >= -LARGE && h <= LARGE => Some((l, h)),
        _ => None,
    }
}

fn constant_bounds(n: &BigInt) -> Bounds {
    i128::try_from(n).ok().and_then(|n| bounded(Some(n), Some(n)))
}

/// Returns the smallest number of the form 2^k - 1 that is at least `h`.
fn ones_above(h: i128) -> i128 {
    if h <= 0 { 0 } else { (1i128 << (128 - h.leading_zeros()).min(126)) - 1 }
}

impl Gen<'_, '_> {
    pub fn field_bounds(f: FieldRef) -> Bounds {
        if f.width > 120 || f.varbit {
            None
        } else if f.signed {
            Some((-(1 << (f.width - 1)), (1 << (f.width - 1)) - 1))
        } else {
            Some((0, (1i128 << f.width) - 1))
        }
    }

    /// Returns the destination `d`, or a new temporary if `d` is `None`.
    pub fn or_temp(&mut self, d: Option<Slot>) -> Result<Slot> {
        d.map_or_else(|| self.temp(), Ok)
    }

    /// Computes `e` modulo 2^64, into `d` if `d` is given. `d` is written last, after all operands are read.
    pub fn value(&mut self, e: &Expr, d: Option<Slot>) -> Result<Val> {
        let again =
            matches!(e, Expr::Bin(..) | Expr::BitNot(_) | Expr::Wrap(..) | Expr::SatSigned(..) | Expr::SatUnsigned(..));
        if !again {
            return self.compute(e, d);
        }
        if let Some(&v) = self.known.get(&(e.clone(), None)) {
            return self.leaf(v.slot, v.bounds, d);
        }
        let v = self.compute(e, d)?;
        if d.is_none() {
            self.record(e, None, v);
        }
        Ok(v)
    }

    fn compute(&mut self, e: &Expr, d: Option<Slot>) -> Result<Val> {
        match e {
            Expr::Const(n) => {
                let slot = self.constant_wide(n, 64)?;
                self.leaf(slot, constant_bounds(n), d)
            }
            Expr::Bool(b) => {
                let slot = self.constant(u64::from(*b))?;
                self.leaf(slot, Some((i128::from(*b), i128::from(*b))), d)
            }
            // The first word of a wide field is equal to the field's value modulo 2^64.
            Expr::Field(f) => self.leaf(f.data(), Self::field_bounds(*f), d),
            Expr::StackLast(stack, f) => self.element(*stack, Element::Last, *f, d),
            Expr::StackIndexed(stack, index, f) => {
                let index = self.index(index)?;
                self.element(*stack, Element::Index(index), *f, d)
            }
            Expr::LastIndex(next) => {
                let d = self.or_temp(d)?;
                self.ext(Ext::LastIndex { d, next: next.slot });
                Ok(Val { slot: d, bounds: Some((0, 0xffff_ffff)) })
            }
            Expr::Bin(op, a, b) => self.binary(e, *op, a, b, d, None),
            Expr::BitNot(a) => self.bit_not(a, d, 0),
            Expr::Wrap(a, width) => self.wrap(e, a, *width, d),
            Expr::SatSigned(a, width) | Expr::SatUnsigned(a, width) => self.clamp(e, a, *width, d),
            Expr::Select(c, a, b) => self.select(c, a, b, d),
            Expr::Cmp(..)
            | Expr::And(..)
            | Expr::Or(..)
            | Expr::Not(_)
            | Expr::ToBool(_)
            | Expr::HeaderEq(..)
            | Expr::UnionEq(..)
            | Expr::UnionValid(_) => self.boolean(e, d),
        }
    }

    pub fn leaf(&mut self, slot: Slot, bounds: Bounds, d: Option<Slot>) -> Result<Val> {
        match d {
            Some(d) if d != slot => {
                self.emit(Op::Mov { m: 0, d, a: slot });
                Ok(Val { slot: d, bounds })
            }
            _ => Ok(Val { slot, bounds }),
        }
    }

    fn element(&mut self, stack: usize, element: Element, f: FieldRef, d: Option<Slot>) -> Result<Val> {
        let (stack, bounds) = (stack as u16, Self::field_bounds(f));
        if f.narrow() {
            let d = self.or_temp(d)?;
            self.ext(Ext::LoadElement { stack, element, field: f, d });
            return Ok(Val { slot: d, bounds });
        }
        let row = self.temp_row(f)?;
        self.ext(Ext::LoadElement { stack, element, field: f, d: row.slot });
        self.leaf(row.data(), bounds, d)
    }

    /// Computes a binary operation. If `width` is given, the result is cut to this number of bits.
    fn binary(&mut self, e: &Expr, op: BinOp, a: &Expr, b: &Expr, d: Option<Slot>, width: Option<u32>) -> Result<Val> {
        let m = width.map_or(0, |w| (64 - w) as u8);
        let cut = |bounds: Bounds| width.map_or(bounds, |w| Some((0, (1i128 << w) - 1)));
        match op {
            // p4c cuts every result to its width by an AND with a mask of ones. One instruction can compute and cut.
            BinOp::And => {
                return match under_ones(e) {
                    Some((inner, ones)) => self.masked(inner, ones, d),
                    None => self.and(a, b, d),
                };
            }
            BinOp::Shl => return self.shift_left(a, b, d, width),
            BinOp::Shr => return self.shift_right(e, a, b, d),
            _ => {}
        }
        let (x, y) = (self.value(a, None)?, self.value(b, None)?);
        let both_bounds = x.bounds.zip(y.bounds);
        let (a, b) = (x.slot, y.slot);
        match op {
            BinOp::Add => {
                let bounds = both_bounds.and_then(|(p, q)| bounded(p.0.checked_add(q.0), p.1.checked_add(q.1)));
                let d = self.or_temp(d)?;
                self.emit(Op::Add { m, d, a, b });
                Ok(Val { slot: d, bounds: cut(bounds) })
            }
            BinOp::Sub => {
                let bounds = both_bounds.and_then(|(p, q)| bounded(p.0.checked_sub(q.1), p.1.checked_sub(q.0)));
                let d = self.or_temp(d)?;
                self.emit(Op::Sub { m, d, a, b });
                Ok(Val { slot: d, bounds: cut(bounds) })
            }
            BinOp::Mul => {
                let bounds = both_bounds.and_then(|(p, q)| {
                    let corners =
                        [p.0.checked_mul(q.0)?, p.0.checked_mul(q.1)?, p.1.checked_mul(q.0)?, p.1.checked_mul(q.1)?];
                    bounded(corners.iter().copied().min(), corners.iter().copied().max())
                });
                let d = self.or_temp(d)?;
                self.emit(Op::Mul { m, d, a, b });
                Ok(Val { slot: d, bounds: cut(bounds) })
            }
            BinOp::Or | BinOp::Xor => {
                let bounds = match both_bounds {
                    Some((p, q)) if p.0 >= 0 && q.0 >= 0 => Some((0, ones_above(p.1.max(q.1)))),
                    Some(_) if x.is_i64() && y.is_i64() => Some(I64),
                    _ => None,
                };
                let d = self.or_temp(d)?;
                self.emit(if op == BinOp::Or { Op::Or { d, a, b } } else { Op::Xor { d, a, b } });
                Ok(Val { slot: d, bounds })
            }
            _ => {
                if !(x.is_u64() && y.is_u64()) {
                    return self.general(e, d);
                }
                let d = self.or_temp(d)?;
                self.emit(if op == BinOp::Div { Op::Div { d, a, b } } else { Op::Rem { d, a, b } });
                Ok(Val { slot: d, bounds: x.bounds.map(|p| (0, p.1)) })
            }
        }
    }

    fn and(&mut self, a: &Expr, b: &Expr, d: Option<Slot>) -> Result<Val> {
        let (x, y) = (self.value(a, None)?, self.value(b, None)?);
        let bounds = match (x.bounds, y.bounds) {
            (Some(p), Some(q)) if p.0 >= 0 && q.0 >= 0 => Some((0, p.1.min(q.1))),
            (Some(p), _) if p.0 >= 0 => Some((0, p.1)),
            (_, Some(q)) if q.0 >= 0 => Some((0, q.1)),
            _ if x.is_i64() && y.is_i64() => Some(I64),
            _ => None,
        };
        let d = self.or_temp(d)?;
        self.emit(Op::And { d, a: x.slot, b: y.slot });
        Ok(Val { slot: d, bounds })
    }

    /// Computes an expression and cuts the value to its low `width` (1 to 64) bits.
    pub fn masked(&mut self, e: &Expr, width: u32, d: Option<Slot>) -> Result<Val> {
        if let Some((inner, ones)) = under_ones(e) {
            return self.masked(inner, width.min(ones), d);
        }
        if let Some(&v) = self.known.get(&(e.clone(), Some(width))) {
            return self.leaf(v.slot, v.bounds, d);
        }
        let v = self.compute_masked(e, width, d)?;
        if d.is_none() && !matches!(e, Expr::Field(_) | Expr::Const(_)) {
            self.record(e, Some(width), v);
        }
        Ok(v)
    }

    fn compute_masked(&mut self, e: &Expr, width: u32, d: Option<Slot>) -> Result<Val> {
        let cut = Some((0, (1i128 << width) - 1));
        match e {
            Expr::Bin(op @ (BinOp::Add | BinOp::Sub | BinOp::Mul | BinOp::Shl), a, b) => {
                self.binary(e, *op, a, b, d, Some(width))
            }
            Expr::BitNot(a) => {
                let v = self.bit_not(a, d, (64 - width) as u8)?;
                Ok(Val { bounds: cut, ..v })
            }
            Expr::Bin(BinOp::Shr, a, k) => match (&**a, small_constant(k)) {
                (Expr::Field(f), Some(k)) if !f.varbit && !f.signed && f.width <= 1024 => self.slice(*f, k, width, d),
                _ => self.mask_value(e, width, d),
            },
            _ => self.mask_value(e, width, d),
        }
    }

    fn mask_value(&mut self, e: &Expr, width: u32, d: Option<Slot>) -> Result<Val> {
        let v = self.value(e, None)?;
        if v.fits_unsigned(width) {
            return self.leaf(v.slot, v.bounds, d);
        }
        let d = self.or_temp(d)?;
        self.emit(Op::Mov { m: (64 - width) as u8, d, a: v.slot });
        Ok(Val { slot: d, bounds: Some((0, (1i128 << width) - 1)) })
    }

    /// Computes the `width` bits of an unsigned field that start at bit `k`, counted from the least significant bit.
    pub fn slice(&mut self, f: FieldRef, k: u32, width: u32, d: Option<Slot>) -> Result<Val> {
        let m = (64 - width) as u8;
        let bounds = Some((0, (1i128 << width) - 1));
        let (word, bit) = ((k / 64) as usize, (k % 64) as u8);
        if word >= f.limbs() {
            let zero = self.constant(0)?;
            return self.leaf(zero, Some((0, 0)), d);
        }
        let a = f.data() + word as Slot;
        let top = u32::from(bit) + width;
        let d = self.or_temp(d)?;
        match bit {
            0 => self.emit(Op::Mov { m, d, a }),
            _ if top > 64 && word + 1 < f.limbs() => self.emit(Op::Funnel { m, k: bit, d, a }),
            _ => self.emit(Op::ShrI { m, k: bit, d, a }),
        }
        Ok(Val { slot: d, bounds })
    }

    fn bit_not(&mut self, a: &Expr, d: Option<Slot>, m: u8) -> Result<Val> {
        let x = self.value(a, None)?;
        let d = self.or_temp(d)?;
        self.emit(Op::Not { m, d, a: x.slot });
        Ok(Val { slot: d, bounds: x.bounds.and_then(|(l, h)| bounded(Some(-h - 1), Some(-l - 1))) })
    }

    fn select(&mut self, c: &Expr, a: &Expr, b: &Expr, d: Option<Slot>) -> Result<Val> {
        let d = self.or_temp(d)?;
        let to_else = self.branch_unless(c, true)?;
        let mark = self.recorded.len();
        let x = self.value(a, Some(d))?;
        self.forget(mark);
        let to_end = self.jump();
        for at in to_else {
            self.patch_here(at);
        }
        let y = self.value(b, Some(d))?;
        self.forget(mark);
        self.patch_here(to_end);
        let bounds = x.bounds.zip(y.bounds).map(|(p, q)| (p.0.min(q.0), p.1.max(q.1)));
        Ok(Val { slot: d, bounds })
    }

    /// Computes a condition; the result is 0 or 1.
    pub fn boolean(&mut self, e: &Expr, d: Option<Slot>) -> Result<Val> {
        let bounds = Some((0, 1));
        let slot = match e {
            Expr::Cmp(op, a, b) => self.compare(e, *op, a, b, d)?,
            Expr::And(a, b) | Expr::Or(a, b) => {
                let t = self.temp()?;
                self.boolean(a, Some(t))?;
                let skip = if matches!(e, Expr::And(..)) {
                    self.jump_if_zero(t)
                } else {
                    self.emit(Op::JumpIfNotZero { a: t, to: 0 });
                    self.code.ops.len() - 1
                };
                let mark = self.recorded.len();
                self.boolean(b, Some(t))?;
                self.forget(mark);
                self.patch_here(skip);
                return self.leaf(t, bounds, d);
            }
            Expr::Not(a) => {
                let x = self.boolean(a, None)?;
                let zero = self.constant(0)?;
                let d = self.or_temp(d)?;
                self.emit(Op::Eq { d, a: x.slot, b: zero });
                d
            }
            Expr::ToBool(a) => {
                let x = self.value(a, None)?;
                if x.within(0, 1) {
                    return self.leaf(x.slot, bounds, d);
                }
                let zero = Expr::Const(BigInt::ZERO);
                self.compare(&Expr::Cmp(CmpOp::Ne, a.clone(), Box::new(zero.clone())), CmpOp::Ne, a, &zero, d)?
            }
            Expr::HeaderEq(a, b) => {
                let (a, b) = (self.header_at(a)?, self.header_at(b)?);
                let d = self.or_temp(d)?;
                self.ext(Ext::HeaderEq { d, a, b });
                d
            }
            Expr::UnionEq(a, b) => {
                let headers = |u: usize, g: &Self| g.layout.unions[u].headers.iter().map(|&h| h as u16).collect();
                let (a, b) = (headers(*a, self), headers(*b, self));
                let d = self.or_temp(d)?;
                self.ext(Ext::UnionEq { d, a, b });
                d
            }
            Expr::UnionValid(u) => {
                let valid: Vec<Slot> =
                    self.layout.unions[*u].headers.iter().map(|&h| self.layout.headers[h].valid).collect();
                let t = self.temp()?;
                self.emit(Op::Mov { m: 0, d: t, a: valid[0] });
                for &v in &valid[1..] {
                    self.emit(Op::Or { d: t, a: t, b: v });
                }
                return self.leaf(t, bounds, d);
            }
            _ => return self.value(e, d),
        };
        Ok(Val { slot, bounds })
    }

    pub fn header_at(&mut self, h: &HeaderRef) -> Result<HeaderAt> {
        Ok(match h {
            HeaderRef::Fixed(h) => HeaderAt::Fixed(*h as u16),
            HeaderRef::Indexed(stack, index) => HeaderAt::Indexed(*stack as u16, self.index(index)?),
        })
    }

    fn compare(&mut self, e: &Expr, op: CmpOp, a: &Expr, b: &Expr, d: Option<Slot>) -> Result<Slot> {
        if matches!(op, CmpOp::Eq | CmpOp::Ne)
            && let Some((x, y, n)) = self.rows(a, b)?
        {
            let d = self.or_temp(d)?;
            self.ext(Ext::RowEq { d, a: x, b: y, n });
            if op == CmpOp::Ne {
                let zero = self.constant(0)?;
                self.emit(Op::Eq { d, a: d, b: zero });
            }
            return Ok(d);
        }
        let (x, y) = (self.value(a, None)?, self.value(b, None)?);
        let unsigned = x.is_u64() && y.is_u64();
        let signed = x.is_i64() && y.is_i64();
        if !unsigned && !signed {
            return Ok(self.general(e, d)?.slot);
        }
        let (a, b) = (x.slot, y.slot);
        let d = self.or_temp(d)?;
        self.emit(match (op, unsigned) {
            (CmpOp::Eq, _) => Op::Eq { d, a, b },
            (CmpOp::Ne, _) => Op::Ne { d, a, b },
            (CmpOp::Lt, true) => Op::LtU { d, a, b },
            (CmpOp::Le, true) => Op::LeU { d, a, b },
            (CmpOp::Gt, true) => Op::LtU { d, a: b, b: a },
            (CmpOp::Ge, true) => Op::LeU { d, a: b, b: a },
            (CmpOp::Lt, false) => Op::LtS { d, a, b },
            (CmpOp::Le, false) => Op::LeS { d, a, b },
            (CmpOp::Gt, false) => Op::LtS { d, a: b, b: a },
            (CmpOp::Ge, false) => Op::LeS { d, a: b, b: a },
        });
        Ok(d)
    }

    /// If two wide fields, or a wide field and a constant, can be compared slot by slot, returns the first slot of each
    /// and the number of slots. Otherwise returns `None`.
    fn rows(&mut self, a: &Expr, b: &Expr) -> Result<Option<(Slot, Slot, u16)>> {
        let wide = |f: &FieldRef| !f.narrow() && !f.varbit;
        Ok(match (a, b) {
            (Expr::Field(f), Expr::Field(g))
                if wide(f)
                    && wide(g)
                    && f.limbs() == g.limbs()
                    && f.signed == g.signed
                    && (!f.signed || f.width == g.width) =>
            {
                Some((f.slot, g.slot, f.limbs() as u16))
            }
            (Expr::Field(f), Expr::Const(n)) | (Expr::Const(n), Expr::Field(f))
                if wide(f) && !f.signed && n.sign() != Sign::Minus && n.bits() <= u64::from(f.width) =>
            {
                let row = self.constant_wide(n, f.width)?;
                Some((f.slot, row, f.limbs() as u16))
            }
            _ => None,
        })
    }
}

/// If `e` is `x & (2^n - 1)` with n up to 64, returns x and n; otherwise returns `None`.
fn under_ones(e: &Expr) -> Option<(&Expr, u32)> {
    let ones = |e: &Expr| match e {
        Expr::Const(n) => u64::try_from(n).ok().filter(|n| *n > 0 && n & n.wrapping_add(1) == 0).map(u64::count_ones),
        _ => None,
    };
    match e {
        Expr::Bin(BinOp::And, a, b) => match (ones(b), ones(a)) {
            (Some(n), _) => Some((a, n)),
            (None, Some(n)) => Some((b, n)),
            _ => None,
        },
        _ => None,
    }
}

pub fn small_constant(e: &Expr) -> Option<u32> {
    match e {
        Expr::Const(n) if n.sign() != Sign::Minus => Some(u32::try_from(n).unwrap_or(u32::MAX)),
        _ => None,
    }
}
