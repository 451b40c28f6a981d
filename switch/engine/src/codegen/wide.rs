//! Compiles expressions to arithmetic on several words.

use super::{Gen, Result, Val};
use crate::code::{Element, Ext};
use crate::expr::Expr;
use crate::layout::{FieldRef, Slot};
use crate::wide::Wide;

impl Gen<'_, '_> {
    /// Computes the exact value by arithmetic on several words, and stores the value modulo 2^64.
    pub fn general(&mut self, e: &Expr, d: Option<Slot>) -> Result<Val> {
        let d = self.or_temp(d)?;
        self.wide(e, FieldRef { slot: d, width: 64, signed: false, varbit: false })?;
        Ok(Val { slot: d, bounds: None })
    }

    /// Compiles `d = e` by exact arithmetic on several words. The value is cut to the width of `d`.
    pub fn wide(&mut self, e: &Expr, d: FieldRef) -> Result<()> {
        let e = self.without_headers(e)?;
        let wide = Wide::new(&e, d).map_err(|e| self.at.error(e.to_string()))?;
        self.pool.wide = self.pool.wide.max(wide.scratch);
        self.ext(Ext::Wide(wide));
        Ok(())
    }

    /// Replaces the parts of an expression that need separate instructions by fields that contain the parts' values.
    /// These parts are elements and last indices of stacks, comparisons of headers and unions, and unions' validities.
    pub fn without_headers(&mut self, e: &Expr) -> Result<Expr> {
        let mut go = |e: &Expr| self.without_headers(e).map(Box::new);
        Ok(match e {
            Expr::Const(_) | Expr::Bool(_) | Expr::Field(_) => e.clone(),
            Expr::Bin(op, a, b) => Expr::Bin(*op, go(a)?, go(b)?),
            Expr::BitNot(a) => Expr::BitNot(go(a)?),
            Expr::Cmp(op, a, b) => Expr::Cmp(*op, go(a)?, go(b)?),
            Expr::And(a, b) => Expr::And(go(a)?, go(b)?),
            Expr::Or(a, b) => Expr::Or(go(a)?, go(b)?),
            Expr::Not(a) => Expr::Not(go(a)?),
            Expr::ToBool(a) => Expr::ToBool(go(a)?),
            Expr::Select(c, a, b) => Expr::Select(go(c)?, go(a)?, go(b)?),
            Expr::Wrap(a, width) => Expr::Wrap(go(a)?, *width),
            Expr::SatSigned(a, width) => Expr::SatSigned(go(a)?, *width),
            Expr::SatUnsigned(a, width) => Expr::SatUnsigned(go(a)?, *width),
            Expr::StackLast(stack, f) => Expr::Field(self.fetch(e, *stack, Element::Last, *f)?),
            Expr::StackIndexed(stack, index, f) => {
                let index = self.index(index)?;
                Expr::Field(self.fetch(e, *stack, Element::Index(index), *f)?)
            }
            Expr::LastIndex(_) => {
                let slot = self.value(e, None)?.slot;
                Expr::Field(FieldRef { slot, width: 32, signed: false, varbit: false })
            }
            Expr::HeaderEq(..) | Expr::UnionEq(..) | Expr::UnionValid(_) => {
                let slot = self.boolean(e, None)?.slot;
                Expr::Field(FieldRef { slot, width: 1, signed: false, varbit: false })
            }
        })
    }

    /// Copies a field of a stack's element to temporaries. A statement that uses the field again reuses the copy.
    fn fetch(&mut self, e: &Expr, stack: usize, element: Element, f: FieldRef) -> Result<FieldRef> {
        if let Some(known) = self.known.get(&(e.clone(), None)) {
            return Ok(FieldRef { slot: known.slot, ..f });
        }
        let row = if f.narrow() { FieldRef { slot: self.temp()?, ..f } } else { self.temp_row(f)? };
        self.ext(Ext::LoadElement { stack: stack as u16, element, field: f, d: row.slot });
        self.record(e, None, Val { slot: row.slot, bounds: None });
        Ok(row)
    }
}
