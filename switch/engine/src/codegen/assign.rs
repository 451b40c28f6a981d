//! Compiles assignments to fields and to fields of stack elements.

use super::shift::moved_left;
use super::{Gen, Result};
use crate::code::{Element, Ext, Op};
use crate::expr::{Expr, Place};
use crate::layout::FieldRef;

impl Gen<'_, '_> {
    /// Compiles `place = expr`. The value is cut to the width of `place`.
    pub fn assign(&mut self, place: &Place, expr: &Expr) -> Result<()> {
        match place {
            Place::Field(f) => self.assign_field(*f, expr),
            Place::StackLast(stack, f) => self.assign_element(*stack, Element::Last, *f, expr),
            Place::StackIndexed(stack, index, f) => {
                let index = self.index(index)?;
                self.assign_element(*stack, Element::Index(index), *f, expr)
            }
        }
    }

    fn assign_element(&mut self, stack: usize, element: Element, f: FieldRef, expr: &Expr) -> Result<()> {
        let t = if f.narrow() { FieldRef { slot: self.temp()?, ..f } } else { self.temp_row(f)? };
        self.assign_field(t, expr)?;
        self.ext(Ext::StoreElement { stack: stack as u16, element, field: f, a: t.slot });
        Ok(())
    }

    /// Compiles `f = expr`. The value is cut to the width of the field `f`.
    pub fn assign_field(&mut self, f: FieldRef, expr: &Expr) -> Result<()> {
        if f.varbit {
            return match expr {
                Expr::Field(a) if a.varbit => {
                    self.ext(Ext::CopyVarbit { d: f, a: *a });
                    Ok(())
                }
                _ => Err(self.at.error("only a variable-length field can be assigned to one")),
            };
        }
        if !f.narrow() {
            return self.assign_wide(f, expr);
        }
        if f.signed {
            let v = self.value(expr, Some(f.slot))?;
            if !v.fits_signed(f.width) {
                self.emit(Op::Sext { m: (64 - f.width) as u8, d: f.slot, a: v.slot });
            }
        } else {
            self.masked(expr, f.width, Some(f.slot))?;
        }
        Ok(())
    }

    fn assign_wide(&mut self, f: FieldRef, expr: &Expr) -> Result<()> {
        let n = f.limbs() as u16;
        match expr {
            Expr::Field(a) if !a.varbit && a.width == f.width => self.emit(Op::Copy { d: f.slot, a: a.slot, n }),
            Expr::Const(c) => {
                let a = self.constant_wide(c, f.width)?;
                self.emit(Op::Copy { d: f.slot, a, n });
            }
            Expr::Field(a) if a.narrow() && !a.signed => {
                self.emit(Op::Mov { m: 0, d: f.slot, a: a.slot });
                self.emit(Op::Zero { d: f.slot + 1, n: n - 1 });
            }
            Expr::StackLast(..) | Expr::StackIndexed(..) => {
                // Copy the stack's element to a temporary field first, then assign the temporary field to `f`.
                let fetched = self.without_headers(expr)?;
                return self.assign_wide(f, &fetched);
            }
            _ => match moved_left(expr, f.width) {
                Some((a, k)) => self.shift_words(f, a, k),
                None => return self.wide(expr, f),
            },
        }
        Ok(())
    }

    /// Returns a field that contains the value and has the type of `like`. If the expression is already such a field,
    /// returns this field; otherwise, returns a temporary.
    pub fn as_field(&mut self, expr: &Expr, like: FieldRef) -> Result<FieldRef> {
        if let Expr::Field(a) = expr
            && a.width == like.width
            && a.signed == like.signed
            && a.varbit == like.varbit
        {
            return Ok(*a);
        }
        let t = if like.narrow() { FieldRef { slot: self.temp()?, ..like } } else { self.temp_row(like)? };
        self.assign_field(t, expr)?;
        Ok(t)
    }
}
