//! Compiles expressions and assignments to instructions.
//!
//! BMv2 computes with integers of any size. This code generator computes every value modulo 2^64 and proves bounds of
//! the exact value. Sums, products, bit operations and left shifts are correct modulo 2^64, because their results are
//! cut to a width anyway. Comparisons, right shifts, divisions and clamps need exact operands; the operands are exact
//! if their bounds fit into 64 bits. If the bounds do not fit, or if the destination is wider than 64 bits, the
//! expression is compiled to arithmetic on several words ([`crate::wide`]).

mod arith;
mod assign;
mod branch;
mod shift;
#[cfg(test)]
mod tests;
mod wide;

use std::collections::HashMap;

use num_bigint::BigInt;

use crate::bits::to_limbs;
use crate::code::{Code, Ext, Near, Op, Pc};
use crate::error::LoadError;
use crate::expr::Expr;
use crate::layout::{FieldRef, Layout, Slot};
use crate::load::json::J;
use crate::load::slots::take;

/// Proven lower and upper bound of an exact value; `None` if the value may be too large for bounds.
pub type Bounds = Option<(i128, i128)>;

/// A slot, which contains a value modulo 2^64, and the bounds of the exact value.
#[derive(Debug, Clone, Copy)]
pub struct Val {
    pub slot: Slot,
    pub bounds: Bounds,
}

impl Val {
    fn within(self, low: i128, high: i128) -> bool {
        self.bounds.is_some_and(|(l, h)| l >= low && h <= high)
    }
    /// Whether the slot, read as `u64`, is equal to the exact value.
    pub fn is_u64(self) -> bool {
        self.within(0, u64::MAX.into())
    }
    /// Whether the slot, read as `i64`, is equal to the exact value.
    pub fn is_i64(self) -> bool {
        self.within(i64::MIN.into(), i64::MAX.into())
    }
    fn fits_unsigned(self, width: u32) -> bool {
        self.is_u64() && (width >= 64 || self.within(0, (1 << width) - 1))
    }
    fn fits_signed(self, width: u32) -> bool {
        self.is_i64() && (width >= 64 || self.within(-(1 << (width - 1)), (1 << (width - 1)) - 1))
    }
}

/// The code generator for one variant of the code (optimized or traced).
pub struct Gen<'a, 'j> {
    pub layout: &'a mut Layout,
    pub pool: &'a mut Pool,
    pub code: Code,
    /// Whether to generate instructions that record events for the trace.
    pub traced: bool,
    /// The place in the program's JSON that error messages name.
    pub at: J<'j>,
    /// Whether the code has more instructions than a jump's three-byte target can address.
    pub too_long: bool,
    temps: usize,
    /// Expressions that the current statement has already computed, each with the width to which its value was cut (if
    /// it was cut). p4c repeats a common subexpression in full, as in `x + (x >> 16)`.
    known: HashMap<(Expr, Option<u32>), Val>,
    /// The keys of `known` in the order of insertion. Values that are computed only under a condition are removed
    /// again.
    recorded: Vec<(Expr, Option<u32>)>,
}

/// Slots that all statements of the code share: constants and temporaries.
#[derive(Default)]
pub struct Pool {
    rows: HashMap<Vec<u64>, Slot>,
    /// The slots of the constants, with their values.
    pub init: Vec<(Slot, u64)>,
    pub temps: Vec<Slot>,
    /// The number of scratch words that arithmetic on several words needs at most.
    pub wide: usize,
}

pub type Result<T> = std::result::Result<T, LoadError>;

impl<'a, 'j> Gen<'a, 'j> {
    pub fn new(layout: &'a mut Layout, pool: &'a mut Pool, traced: bool, at: J<'j>) -> Self {
        Gen {
            layout,
            pool,
            code: Code::default(),
            traced,
            at,
            too_long: false,
            temps: 0,
            known: HashMap::new(),
            recorded: Vec::new(),
        }
    }

    pub fn pc(&self) -> Pc {
        self.code.ops.len() as Pc
    }

    pub fn emit(&mut self, op: Op) {
        self.code.ops.push(op);
    }

    pub fn ext(&mut self, ext: Ext) {
        let index = self.code.ext.len() as u32;
        self.code.ext.push(ext);
        self.emit(Op::Ext { index });
    }

    /// Emits a jump whose target is set later by [`Gen::patch`]. Returns the index of the jump.
    pub fn jump_if_zero(&mut self, a: Slot) -> usize {
        self.emit(Op::JumpIfZero { a, to: 0 });
        self.code.ops.len() - 1
    }

    pub fn jump(&mut self) -> usize {
        self.emit(Op::Jump { to: 0 });
        self.code.ops.len() - 1
    }

    /// Sets the target of the jump at index `at`, or sets `too_long` if the target does not fit into three bytes.
    pub fn patch(&mut self, at: usize, target: Pc) {
        let Some(near) = Near::new(target) else {
            self.too_long = true;
            return;
        };
        match &mut self.code.ops[at] {
            Op::Jump { to } | Op::JumpBack { to } | Op::JumpIfZero { to, .. } | Op::JumpIfNotZero { to, .. } => {
                *to = target
            }
            Op::JumpEq { to, .. }
            | Op::JumpNe { to, .. }
            | Op::JumpLtU { to, .. }
            | Op::JumpLeU { to, .. }
            | Op::JumpLtS { to, .. }
            | Op::JumpLeS { to, .. } => *to = near,
            _ => {}
        }
    }

    pub fn patch_here(&mut self, at: usize) {
        let here = self.pc();
        self.patch(at, here);
    }

    /// Frees all temporaries, and forgets the values in them, at the end of a statement.
    pub fn free_temps(&mut self) {
        self.temps = 0;
        self.forget(0);
    }

    /// Records that `v` contains the value of `e`, cut to `width` if given.
    fn record(&mut self, e: &Expr, width: Option<u32>, v: Val) {
        self.known.insert((e.clone(), width), v);
        self.recorded.push((e.clone(), width));
    }

    /// Removes all recorded values except the first `mark`.
    fn forget(&mut self, mark: usize) {
        for key in self.recorded.drain(mark..) {
            self.known.remove(&key);
        }
    }

    pub fn temp(&mut self) -> Result<Slot> {
        if self.temps == self.pool.temps.len() {
            let slot = take(self.layout, 1, &self.at)?;
            self.pool.temps.push(slot);
        }
        self.temps += 1;
        Ok(self.pool.temps[self.temps - 1])
    }

    /// Allocates consecutive temporaries for a wide or variable-length value. These temporaries are not reused.
    pub fn temp_row(&mut self, like: FieldRef) -> Result<FieldRef> {
        let slot = take(self.layout, like.slots(), &self.at)?;
        Ok(FieldRef { slot, ..like })
    }

    fn constant_row(&mut self, row: Vec<u64>) -> Result<Slot> {
        if let Some(&slot) = self.pool.rows.get(&row) {
            return Ok(slot);
        }
        let slot = take(self.layout, row.len(), &self.at)?;
        self.pool.init.extend(row.iter().enumerate().map(|(i, &v)| (slot + i as Slot, v)));
        self.pool.rows.insert(row, slot);
        Ok(slot)
    }

    /// Returns a slot that always contains `value`.
    pub fn constant(&mut self, value: u64) -> Result<Slot> {
        self.constant_row(vec![value])
    }

    /// Returns the first of the slots that always contain `value` modulo 2^width.
    fn constant_wide(&mut self, value: &BigInt, width: u32) -> Result<Slot> {
        self.constant_row(to_limbs(value, width))
    }

    /// Returns a slot with the value of `expr` as an index, read as `u64`. A value that is negative or too large is cut
    /// to its low 64 bits.
    pub fn index(&mut self, expr: &Expr) -> Result<Slot> {
        Ok(self.value(expr, None)?.slot)
    }
}
