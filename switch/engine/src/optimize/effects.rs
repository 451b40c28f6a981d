//! Determines the slots that each instruction reads and writes.

use crate::code::{Code, Ext, Op};
use crate::dataflow::World;
use crate::layout::Slot;

/// The slots that an instruction accesses.
#[derive(Default)]
pub struct Effects {
    pub reads: Vec<Slot>,
    pub writes: Vec<Slot>,
    /// Whether the instruction may read any slot. Also true if the run may end at the instruction, because any slot may
    /// be read afterwards.
    pub reads_all: bool,
    pub writes_all: bool,
    /// Whether the writes to the slots in `writes` are the instruction's only effect.
    pub pure: bool,
}

/// Returns the destination and the operands of an instruction that only computes one value from up to two slots.
/// Returns `None` for an instruction of another kind.
pub fn plain(op: &mut Op) -> Option<(&mut Slot, &mut Slot, Option<&mut Slot>)> {
    Some(match op {
        Op::Mov { d, a, .. }
        | Op::Not { d, a, .. }
        | Op::ShlI { d, a, .. }
        | Op::ShrI { d, a, .. }
        | Op::SarI { d, a, .. }
        | Op::Sext { d, a, .. }
        | Op::ClampSU { d, a, .. }
        | Op::ClampUU { d, a, .. }
        | Op::ClampSS { d, a, .. } => (d, a, None),
        Op::Add { d, a, b, .. }
        | Op::Sub { d, a, b, .. }
        | Op::Mul { d, a, b, .. }
        | Op::And { d, a, b }
        | Op::Or { d, a, b }
        | Op::Xor { d, a, b }
        | Op::Shl { d, a, b, .. }
        | Op::Shr { d, a, b }
        | Op::Sar { d, a, b }
        | Op::Div { d, a, b }
        | Op::Rem { d, a, b }
        | Op::Eq { d, a, b }
        | Op::Ne { d, a, b }
        | Op::LtU { d, a, b }
        | Op::LeU { d, a, b }
        | Op::LtS { d, a, b }
        | Op::LeS { d, a, b } => (d, a, Some(b)),
        _ => return None,
    })
}

/// Returns the operands of a conditional jump, or `None` for an instruction of another kind.
pub fn tested(op: &mut Op) -> Option<(&mut Slot, Option<&mut Slot>)> {
    Some(match op {
        Op::JumpIfZero { a, .. } | Op::JumpIfNotZero { a, .. } => (a, None),
        Op::JumpEq { a, b, .. }
        | Op::JumpNe { a, b, .. }
        | Op::JumpLtU { a, b, .. }
        | Op::JumpLeU { a, b, .. }
        | Op::JumpLtS { a, b, .. }
        | Op::JumpLeS { a, b, .. } => (a, Some(b)),
        _ => return None,
    })
}

fn row(first: Slot, n: u16) -> Vec<Slot> {
    (0..n).map(|i| first.wrapping_add(i)).collect()
}

/// Returns the effects of an instruction that is not a jump.
pub fn of(op: Op, code: &Code, world: &World) -> Effects {
    let mut copy = op;
    if let Some((d, a, b)) = plain(&mut copy) {
        let reads = std::iter::once(*a).chain(b.map(|b| *b)).collect();
        return Effects { reads, writes: vec![*d], pure: true, ..Effects::default() };
    }
    let effects = |reads: Vec<Slot>, writes: Vec<Slot>| Effects { reads, writes, ..Effects::default() };
    match op {
        Op::Funnel { d, a, .. } => Effects { pure: true, ..effects(vec![a, a.wrapping_add(1)], vec![d]) },
        Op::Copy { d, a, n } => Effects { pure: true, ..effects(row(a, n), row(d, n)) },
        Op::Zero { d, n } => Effects { pure: true, ..effects(Vec::new(), row(d, n)) },
        Op::Exit => Effects::default(),
        Op::SetValid { header } | Op::SetInvalid { header } => {
            let slots = world.headers[usize::from(header)].clone();
            effects(slots.clone(), slots)
        }
        // The destination counts as read, because it does not change if the index is out of range.
        Op::RegisterRead { d, index, .. } | Op::Meter { d, index, .. } => effects(vec![index, d], vec![d]),
        Op::RegisterWrite { index, a, .. } => effects(vec![index, a], Vec::new()),
        Op::Count { index, .. } => effects(vec![index], Vec::new()),
        // A parser error ends the run at this instruction, so any slot may be read afterwards.
        Op::Extract { header } => {
            Effects { reads_all: true, ..effects(Vec::new(), world.headers[usize::from(header)].clone()) }
        }
        Op::EndIfExit => Effects { reads_all: true, ..Effects::default() },
        Op::Ext { index } => match &code.ext[index as usize] {
            Ext::Hash { calculation, d, base, max } => {
                let inputs = &world.calculations[usize::from(*calculation)];
                effects(inputs.iter().copied().chain([*base, *max]).collect(), vec![*d])
            }
            // A lookahead beyond the packet's end raises a parser error and ends the run, so any slot may be read then.
            Ext::Lookahead { d, .. } => {
                Effects { reads_all: true, ..effects(Vec::new(), row(d.slot, d.slots() as u16)) }
            }
            Ext::RowEq { d, a, b, n } => {
                Effects { pure: true, ..effects([row(*a, *n), row(*b, *n)].concat(), vec![*d]) }
            }
            Ext::CloneIngress { session: a, .. }
            | Ext::CloneEgress { session: a, .. }
            | Ext::Truncate { length: a }
            | Ext::Assert { a } => effects(vec![*a], Vec::new()),
            // The slots of field lists and digests are not in `World::private`, so they need not be listed here.
            Ext::Resubmit { .. } | Ext::Recirculate { .. } | Ext::Digest { .. } => Effects::default(),
            Ext::Log { args, .. } => {
                effects(args.iter().flat_map(|(f, _)| row(f.slot, f.slots() as u16)).collect(), Vec::new())
            }
            Ext::Random { d, low, high } => effects(vec![*low, *high, *d], vec![*d]),
            Ext::LastIndex { d, next } => Effects { pure: true, ..effects(vec![*next], vec![*d]) },
            _ => Effects { reads_all: true, writes_all: true, ..Effects::default() },
        },
        _ => Effects { reads_all: true, writes_all: true, ..Effects::default() },
    }
}
