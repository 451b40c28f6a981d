//! What is known about the values of slots at one point of the code: equal and different values, results of
//! computations, and widths.

use std::collections::{HashMap, HashSet};

use super::effects::plain;
use crate::code::Op;
use crate::dataflow::World;
use crate::layout::{Slot, mask64};

/// The maximum number of computations that are recorded at one point. Each write to a slot scans all of them.
const MAX_COMPUTED: usize = 256;

#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// Maps a slot to another slot that is known to have the same value. The other slot is itself a key only if a later
    /// test showed that its value equals a constant.
    copies: HashMap<Slot, Slot>,
    /// Pairs of a slot and a constant's slot whose values are known to differ.
    differs: HashSet<(Slot, Slot)>,
    /// Computations without their destinations, each with a slot that contains the result.
    computed: HashMap<Op, Slot>,
    /// For each slot, the maximum number of bits of its value.
    bits: HashMap<Slot, u8>,
}

/// Returns the computation with its destination replaced by slot 0.
fn key(mut op: Op) -> Op {
    if let Some((d, _, _)) = plain(&mut op) {
        *d = 0;
    }
    op
}

impl Facts {
    /// Returns the first slot that had the value of `slot`.
    pub fn first(&self, mut slot: Slot) -> Slot {
        while let Some(&earlier) = self.copies.get(&slot) {
            slot = earlier;
        }
        slot
    }

    pub fn bits(&self, slot: Slot, world: &World) -> u8 {
        if let Some(v) = world.constants.get(&slot) {
            return (64 - v.leading_zeros()) as u8;
        }
        let fixed = world.bits.get(usize::from(slot)).copied().unwrap_or(64);
        self.bits.get(&slot).map_or(fixed, |&b| b.min(fixed))
    }

    /// Removes all facts about a slot that is about to be written.
    pub fn overwrite(&mut self, slot: Slot) {
        self.copies.retain(|&d, &mut a| d != slot && a != slot);
        self.differs.retain(|&(a, _)| a != slot);
        self.computed.retain(|&op, &mut d| {
            let mut op = op;
            d != slot && plain(&mut op).is_some_and(|(_, a, b)| *a != slot && b.is_none_or(|b| *b != slot))
        });
        self.bits.remove(&slot);
    }

    /// Returns a slot that contains the result of this computation, if there is one.
    pub fn find(&self, op: Op) -> Option<Slot> {
        self.computed.get(&key(op)).copied()
    }

    /// Records a computation. Each operand must already be replaced by the first slot that had the operand's value.
    pub fn record(&mut self, mut op: Op, world: &World) {
        let bits = self.result_bits(op, world);
        let Some((&mut d, &mut a, b)) = plain(&mut op) else { return };
        let b = b.map(|b| *b);
        if let Op::Mov { m: 0, .. } = op {
            if a != d {
                self.overwrite(d);
                self.copies.insert(d, a);
            }
            return;
        }
        self.overwrite(d);
        if d != a && Some(d) != b && self.computed.len() < MAX_COMPUTED {
            self.computed.insert(key(op), d);
        }
        if bits < 64 {
            self.bits.insert(d, bits);
        }
    }

    fn result_bits(&self, op: Op, world: &World) -> u8 {
        let of = |slot: Slot| self.bits(slot, world);
        match op {
            Op::Mov { m, a, .. } => of(a).min(64 - m),
            Op::ShrI { m, k, a, .. } => of(a).saturating_sub(k).min(64 - m),
            Op::And { a, b, .. } => of(a).min(of(b)),
            Op::Or { a, b, .. } | Op::Xor { a, b, .. } => of(a).max(of(b)),
            Op::Add { m, a, b, .. } => (of(a).max(of(b)) + 1).min(64 - m),
            Op::ShlI { m, k, a, .. } => of(a).saturating_add(k).min(64 - m),
            Op::Sub { m, .. } | Op::Mul { m, .. } | Op::Not { m, .. } | Op::Shl { m, .. } => 64 - m,
            Op::Eq { .. } | Op::Ne { .. } | Op::LtU { .. } | Op::LeU { .. } | Op::LtS { .. } | Op::LeS { .. } => 1,
            _ => 64,
        }
    }

    /// Records that both slots have equal values from here on, if exactly one of them is a constant. Otherwise does
    /// nothing.
    pub fn same(&mut self, a: Slot, b: Slot, world: &World) {
        let (a, b) = (self.first(a), self.first(b));
        match (world.constants.contains_key(&a), world.constants.contains_key(&b)) {
            (false, true) => {
                self.copies.insert(a, b);
            }
            (true, false) => {
                self.copies.insert(b, a);
            }
            _ => {}
        }
    }

    /// Records that the slots have different values from here on. The fact is recorded only if one of them is a
    /// constant.
    pub fn different(&mut self, a: Slot, b: Slot, world: &World) {
        let (a, b) = (self.first(a), self.first(b));
        for (a, b) in [(a, b), (b, a)] {
            if world.constants.contains_key(&b) {
                self.differs.insert((a, b));
                self.only_other_bit(a, b, world);
            }
        }
    }

    /// Records that a one-bit value that is not 0 is 1, and that a one-bit value that is not 1 is 0. `a` is the slot of
    /// the value, and `not` is the slot of a constant from which the value differs.
    fn only_other_bit(&mut self, a: Slot, not: Slot, world: &World) {
        if self.bits(a, world) <= 1
            && let Some(&v @ (0 | 1)) = world.constants.get(&not)
            && let Some(other) = world.constant(1 - v)
        {
            self.same(a, other, world);
        }
    }

    /// Returns whether the values of two slots are equal, or `None` if that is unknown.
    pub fn equal(&self, a: Slot, b: Slot, world: &World) -> Option<bool> {
        let (a, b) = (self.first(a), self.first(b));
        if a == b {
            return Some(true);
        }
        if let (Some(x), Some(y)) = (world.constants.get(&a), world.constants.get(&b)) {
            return Some(x == y);
        }
        let too_large = |slot: Slot, c: Slot| {
            world.constants.get(&c).is_some_and(|&c| c & !mask64(self.bits(slot, world).into()) != 0)
        };
        if self.differs.contains(&(a, b)) || self.differs.contains(&(b, a)) || too_large(a, b) || too_large(b, a) {
            return Some(false);
        }
        None
    }

    /// Returns the slot's value if it is a constant.
    pub fn value(&self, slot: Slot, world: &World) -> Option<u64> {
        world.constants.get(&self.first(slot)).copied()
    }

    /// Keeps only the facts that are true in `self` and in `other`. Of two limits on a slot's bits, the larger is kept.
    pub fn intersect(&mut self, other: &Facts) {
        self.copies.retain(|d, a| other.copies.get(d) == Some(a));
        self.differs.retain(|pair| other.differs.contains(pair));
        self.computed.retain(|op, d| other.computed.get(op) == Some(d));
        self.bits.retain(|slot, b| match other.bits.get(slot) {
            Some(&o) => {
                *b = o.max(*b);
                true
            }
            None => false,
        });
    }
}
