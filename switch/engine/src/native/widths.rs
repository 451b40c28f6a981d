//! How many bits the values of slots can have, where that does not follow from a declaration: temporaries, above all.
//!
//! A slot that only instructions write holds no more than the widest of what they write.

use std::collections::HashSet;

use crate::code::{Ext, Op};
use crate::layout::Slot;
use crate::program::Program;

/// By slot. `outside`: slots that Rust may write.
pub fn widths(p: &Program, outside: &HashSet<Slot>) -> Vec<u8> {
    let mut widths = p.world.bits.clone();
    for (&slot, &v) in &p.world.constants {
        if let Some(width) = widths.get_mut(usize::from(slot)) {
            *width = bits(v) as u8;
        }
    }
    let params: HashSet<Slot> =
        p.actions.iter().flat_map(|a| &a.params).flat_map(|f| (0..f.slots() as Slot).map(|i| f.slot + i)).collect();
    let written_here = |slot: &Slot| {
        p.world.private.has(*slot)
            && widths[usize::from(*slot)] == 64
            && !outside.contains(slot)
            && !params.contains(slot)
            && !p.world.constants.contains_key(slot)
    };
    let slots: HashSet<Slot> = (0..widths.len() as Slot).filter(written_here).collect();
    for &slot in &slots {
        widths[usize::from(slot)] = p.phv.fresh.get(usize::from(slot)).map_or(0, |&v| bits(v)) as u8;
    }
    let mut changed = true;
    while changed {
        changed = false;
        for &op in &p.code.ops {
            for (d, width) in results(p, op, |slot| widths.get(usize::from(slot)).map_or(64, |&w| w.into())) {
                if slots.contains(&d) && u32::from(widths[usize::from(d)]) < width {
                    widths[usize::from(d)] = width as u8;
                    changed = true;
                }
            }
        }
    }
    widths
}

/// Bits of a number.
fn bits(v: u64) -> u32 {
    64 - v.leading_zeros()
}

/// What an instruction writes: the slots, and the bits that the values can have.
fn results(p: &Program, op: Op, of: impl Fn(Slot) -> u32) -> Vec<(Slot, u32)> {
    let most = |m: u8| 64 - u32::from(m);
    // arithmetic shifts keep a sign, which only 64 bits have
    let shifted = |a: Slot, k: u8| if of(a) < 64 { of(a).saturating_sub(k.into()) } else { 64 };
    let one = match op {
        Op::Mov { m, d, a } | Op::ClampUU { m, d, a } => (d, of(a).min(most(m))),
        Op::Add { m, d, a, b } => (d, (of(a).max(of(b)) + 1).min(most(m))),
        Op::Mul { m, d, a, b } => (d, (of(a) + of(b)).min(most(m))),
        Op::Sub { m, d, .. } | Op::Not { m, d, .. } | Op::Shl { m, d, .. } | Op::Funnel { m, d, .. } => (d, most(m)),
        Op::ClampSU { m, d, .. } => (d, most(m)),
        Op::And { d, a, b } | Op::Rem { d, a, b } => (d, of(a).min(of(b))),
        Op::Or { d, a, b } | Op::Xor { d, a, b } => (d, of(a).max(of(b))),
        Op::Shr { d, a, .. } | Op::Div { d, a, .. } => (d, of(a)),
        Op::Sar { d, a, .. } => (d, shifted(a, 0)),
        Op::ShlI { m, k, d, a } => (d, (of(a) + u32::from(k)).min(most(m))),
        Op::ShrI { m, k, d, a } => (d, of(a).saturating_sub(k.into()).min(most(m))),
        Op::SarI { k, d, a } => (d, shifted(a, k)),
        Op::Eq { d, .. }
        | Op::Ne { d, .. }
        | Op::LtU { d, .. }
        | Op::LeU { d, .. }
        | Op::LtS { d, .. }
        | Op::LeS { d, .. } => (d, 1),
        Op::Sext { d, .. } | Op::ClampSS { d, .. } | Op::Meter { d, .. } => (d, 64),
        Op::RegisterRead { register, d, .. } => (d, p.objects.registers[usize::from(register)].width.min(64)),
        Op::Copy { d, a, n } => return (0..n).map(|i| (d.wrapping_add(i), of(a.wrapping_add(i)))).collect(),
        Op::Zero { .. } => return Vec::new(),
        Op::Ext { index } => match &p.code.ext[index as usize] {
            Ext::Hash { d, base, max, .. } => {
                let constant = |slot: &Slot| p.world.constants.get(slot).copied();
                match (constant(base), constant(max)) {
                    (Some(0), Some(max)) => (*d, bits(max.saturating_sub(1))),
                    _ => (*d, 64),
                }
            }
            Ext::LastIndex { d, .. } => (*d, 32),
            _ => return Vec::new(),
        },
        _ => return Vec::new(),
    };
    vec![one]
}
