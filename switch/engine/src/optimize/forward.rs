//! Propagates facts along the code, and simplifies instructions according to the facts.

use super::effects::{self, plain, tested};
use super::facts::Facts;
use super::graph::{Block, BlockId, End, Graph};
use crate::code::{Code, Op};
use crate::dataflow::{TableEffects, World};
use crate::layout::Slot;

/// The maximum number of instructions that are copied for one path. If a path decides the tests of some blocks, these
/// blocks' other instructions are copied for this path, so that the path skips the tests.
const MAX_COPIED_OPS: usize = 4;
/// The maximum number of blocks of copied instructions that one round adds, as a multiple of the number of blocks.
const GROWTH: usize = 1;

/// The facts that are true at the beginning of a block.
#[derive(Clone, Default)]
struct Entry {
    facts: Option<Facts>,
    /// The number of paths to the block that have not been analyzed yet.
    pending: usize,
}

struct Pass<'a> {
    world: &'a World,
    entries: Vec<Entry>,
    /// The position of each block in the order of visits. A block whose position is larger than `now` has not been
    /// visited.
    positions: Vec<usize>,
    now: usize,
    remaining_copies: usize,
    /// For each table, the slots that it may write; `None` means any slot.
    table_writes: Vec<Option<Vec<Slot>>>,
}

pub fn run(graph: &mut Graph, code: &Code, world: &World) {
    let order = graph.order();
    let n = graph.blocks.len();
    let mut pass = Pass {
        world,
        entries: vec![Entry::default(); n],
        positions: vec![usize::MAX; n],
        now: 0,
        remaining_copies: n * GROWTH,
        table_writes: table_writes(graph, code, world),
    };
    for (i, &b) in order.iter().enumerate() {
        pass.positions[b] = i;
        for to in graph.successors(b) {
            pass.entries[to].pending += 1;
        }
    }
    for &root in &graph.roots {
        // The block is also entered from outside, where no facts are known. This path stays pending, so the block is
        // analyzed without facts.
        pass.entries[root].pending += 1;
    }
    for (i, &b) in order.iter().enumerate() {
        pass.now = i;
        pass.block(graph, code, b);
    }
}

/// Returns, for each table, the slots that applying it may write, either in the lookup or in an action.
fn table_writes(graph: &Graph, code: &Code, world: &World) -> Vec<Option<Vec<Slot>>> {
    let action = |first: BlockId| -> Option<Vec<Slot>> {
        let (mut visited, mut waiting, mut writes) = (vec![first], vec![first], Vec::new());
        while let Some(b) = waiting.pop() {
            for &op in &graph.blocks[b].ops {
                let e = effects::of(op, code, world);
                if e.writes_all {
                    return None;
                }
                writes.extend(e.writes);
            }
            for to in graph.successors(b) {
                if !visited.contains(&to) {
                    visited.push(to);
                    waiting.push(to);
                }
            }
        }
        Some(writes)
    };
    let actions: Vec<_> = graph.actions.iter().map(|&a| action(a)).collect();
    let table = |t: &TableEffects| {
        let mut writes = t.writes.clone();
        for &a in &t.actions {
            writes.extend(actions[a].as_ref()?);
        }
        writes.sort_unstable();
        writes.dedup();
        Some(writes)
    };
    world.tables.iter().map(table).collect()
}

impl Pass<'_> {
    fn block(&mut self, graph: &mut Graph, code: &Code, b: BlockId) {
        let entry = std::mem::take(&mut self.entries[b]);
        let mut facts = entry.facts.filter(|_| entry.pending == 0).unwrap_or_default();
        let ops = std::mem::take(&mut graph.blocks[b].ops);
        graph.blocks[b].ops = self.rewrite(ops, &mut facts, code);
        match graph.blocks[b].end {
            End::Goto(to) => {
                let to = self.follow(graph, code, to, facts);
                graph.blocks[b].end = End::Goto(to);
            }
            End::Branch { mut op, taken, fall } => {
                operands(&mut op, &facts);
                match self.decide(op, &facts) {
                    Some(yes) => {
                        let (to, not) = if yes { (taken, fall) } else { (fall, taken) };
                        self.abandon(not);
                        let to = self.follow(graph, code, to, facts);
                        graph.blocks[b].end = End::Goto(to);
                    }
                    None => {
                        let (yes, no) = self.split(op, &facts);
                        let taken = self.follow(graph, code, taken, yes);
                        let fall = self.follow(graph, code, fall, no);
                        graph.blocks[b].end = End::Branch { op, taken, fall };
                    }
                }
            }
            End::Select(index) => {
                for to in graph.selects[index as usize].clone() {
                    self.arrive(to, facts.clone());
                }
            }
            End::Apply(table) => {
                match &self.table_writes[usize::from(table)] {
                    Some(writes) => writes.iter().for_each(|&w| facts.overwrite(w)),
                    None => facts = Facts::default(),
                }
                for to in graph.table_next[usize::from(table)].clone() {
                    self.arrive(to, facts.clone());
                }
            }
            End::ActionReturn(_) | End::PipelineReturn | End::ConditionReturn | End::ParserReturn => {}
        }
    }

    /// Records that a path to a block is never taken, so that the analysis of the block does not wait for this path.
    fn abandon(&mut self, to: BlockId) {
        self.entries[to].pending = self.entries[to].pending.saturating_sub(1);
    }

    fn arrive(&mut self, to: BlockId, facts: Facts) {
        let entry = &mut self.entries[to];
        entry.pending = entry.pending.saturating_sub(1);
        match &mut entry.facts {
            Some(existing) => existing.intersect(&facts),
            None => entry.facts = Some(facts),
        }
    }

    /// Follows the path to a block, and then through all blocks whose tests are decided on this path. Returns the block
    /// to which the path must lead.
    fn follow(&mut self, graph: &mut Graph, code: &Code, mut to: BlockId, mut facts: Facts) -> BlockId {
        let world = self.world;
        let mut ops: Vec<Op> = Vec::new();
        loop {
            let block = &graph.blocks[to];
            let short = ops.len() + block.ops.len() <= MAX_COPIED_OPS
                && block.ops.iter().all(|&op| effects::of(op, code, world).pure)
                && (block.ops.is_empty() || self.remaining_copies > 0);
            let End::Branch { mut op, taken, fall } = block.end else { break };
            if !short || self.positions[to] <= self.now {
                break;
            }
            let mut after = facts.clone();
            let rewritten = self.rewrite(block.ops.clone(), &mut after, code);
            operands(&mut op, &after);
            let Some(yes) = self.decide(op, &after) else { break };
            let next = if yes { taken } else { fall };
            if self.positions[next] <= self.now || self.positions[next] == usize::MAX {
                break;
            }
            self.abandon(to);
            // The path now leads to the block `next`.
            self.entries[next].pending += 1;
            ops.extend(rewritten);
            (to, facts) = (next, after);
        }
        self.arrive(to, facts);
        if ops.is_empty() {
            return to;
        }
        self.remaining_copies = self.remaining_copies.saturating_sub(1);
        graph.blocks.push(Block { ops, end: End::Goto(to) });
        self.entries.push(Entry::default());
        self.positions.push(usize::MAX);
        graph.blocks.len() - 1
    }

    /// Returns the facts that are true if the jump `op` is taken, and the facts that are true if it is not taken.
    fn split(&self, mut op: Op, facts: &Facts) -> (Facts, Facts) {
        let world = self.world;
        let (mut yes, mut no) = (facts.clone(), facts.clone());
        match op {
            Op::JumpEq { a, b, .. } => {
                yes.same(a, b, world);
                no.different(a, b, world);
            }
            Op::JumpNe { a, b, .. } => {
                no.same(a, b, world);
                yes.different(a, b, world);
            }
            Op::JumpIfZero { .. } | Op::JumpIfNotZero { .. } => {
                if let (Some((&mut a, _)), Some(zero)) = (tested(&mut op), world.constant(0)) {
                    let (is, is_not) =
                        if matches!(op, Op::JumpIfZero { .. }) { (&mut yes, &mut no) } else { (&mut no, &mut yes) };
                    is.same(a, zero, world);
                    is_not.different(a, zero, world);
                }
            }
            _ => {}
        }
        (yes, no)
    }

    /// Returns whether the jump is taken, or `None` if that is unknown.
    fn decide(&self, op: Op, facts: &Facts) -> Option<bool> {
        let world = self.world;
        let values = |a: Slot, b: Slot| facts.value(a, world).zip(facts.value(b, world));
        match op {
            Op::JumpEq { a, b, .. } => facts.equal(a, b, world),
            Op::JumpNe { a, b, .. } => facts.equal(a, b, world).map(|e| !e),
            Op::JumpIfZero { a, .. } => self.is_zero(a, facts),
            Op::JumpIfNotZero { a, .. } => self.is_zero(a, facts).map(|z| !z),
            Op::JumpLtU { a, b, .. } => values(a, b).map(|(x, y)| x < y),
            Op::JumpLeU { a, b, .. } => values(a, b).map(|(x, y)| x <= y),
            Op::JumpLtS { a, b, .. } => values(a, b).map(|(x, y)| (x as i64) < y as i64),
            Op::JumpLeS { a, b, .. } => values(a, b).map(|(x, y)| x as i64 <= y as i64),
            _ => None,
        }
    }

    fn is_zero(&self, a: Slot, facts: &Facts) -> Option<bool> {
        match facts.value(a, self.world) {
            Some(v) => Some(v == 0),
            None => facts.equal(a, self.world.constant(0)?, self.world),
        }
    }

    fn rewrite(&self, mut ops: Vec<Op>, facts: &mut Facts, code: &Code) -> Vec<Op> {
        let world = self.world;
        for i in 1..ops.len() {
            // A value is computed into a temporary and then moved to a field. Compute it into the field first, so that
            // the move copies from the field to the temporary.
            if let Op::Mov { m: 0, d: field, a: temp } = ops[i]
                && temp >= world.first_temporary
                && field < world.first_temporary
                && let Some((d, _, _)) = plain(&mut ops[i - 1])
                && *d == temp
            {
                *d = field;
                ops[i] = Op::Mov { m: 0, d: temp, a: field };
            }
        }
        let mut out = Vec::with_capacity(ops.len());
        for mut op in ops {
            operands(&mut op, facts);
            op = self.simplified(op, facts);
            if plain(&mut op).is_some() {
                if !matches!(op, Op::Mov { m: 0, .. })
                    && let Some(earlier) = facts.find(op)
                    && let Some((&mut d, _, _)) = plain(&mut op)
                {
                    op = Op::Mov { m: 0, d, a: facts.first(earlier) };
                }
                if let Op::Mov { m: 0, d, a } = op
                    && facts.first(d) == a
                {
                    // The slot already contains the value, so the instruction is not needed.
                    continue;
                }
                facts.record(op, world);
            } else {
                let e = effects::of(op, code, world);
                if e.writes_all {
                    *facts = Facts::default();
                }
                for w in e.writes {
                    facts.overwrite(w);
                }
            }
            out.push(op);
        }
        out
    }

    /// Returns a simpler instruction with the same effect, or the instruction itself if none is known.
    fn simplified(&self, op: Op, facts: &Facts) -> Op {
        let world = self.world;
        let value = |slot: Slot| facts.value(slot, world);
        let constant = |d: Slot, v: u64| world.constant(v).map_or(op, |a| Op::Mov { m: 0, d, a });
        match op {
            Op::Mov { m, d, a } if m > 0 => match value(a) {
                _ if facts.bits(a, world) <= 64 - m => Op::Mov { m: 0, d, a },
                Some(v) => constant(d, v & (u64::MAX >> m)),
                None => op,
            },
            Op::And { d, a, b } => match (value(a), value(b)) {
                (Some(x), Some(y)) => constant(d, x & y),
                (Some(0), _) | (_, Some(0)) => constant(d, 0),
                _ if a == b => Op::Mov { m: 0, d, a },
                _ => op,
            },
            Op::Or { d, a, b } => match (value(a), value(b)) {
                (Some(x), Some(y)) => constant(d, x | y),
                (Some(0), _) => Op::Mov { m: 0, d, a: b },
                (_, Some(0)) => Op::Mov { m: 0, d, a },
                _ if a == b => Op::Mov { m: 0, d, a },
                _ => op,
            },
            Op::Not { m, d, a } => value(a).map_or(op, |v| constant(d, !v & (u64::MAX >> m))),
            Op::Eq { d, a, b } => facts.equal(a, b, world).map_or(op, |e| constant(d, u64::from(e))),
            Op::Ne { d, a, b } => facts.equal(a, b, world).map_or(op, |e| constant(d, u64::from(!e))),
            _ => op,
        }
    }
}

/// Replaces each operand by the first slot that had the operand's value.
fn operands(op: &mut Op, facts: &Facts) {
    let first = |slot: &mut Slot| *slot = facts.first(*slot);
    if let Some((_, a, b)) = plain(op) {
        first(a);
        b.map(first);
        return;
    }
    if let Some((a, b)) = tested(op) {
        first(a);
        b.map(first);
        return;
    }
    match op {
        Op::RegisterRead { index, .. } | Op::Meter { index, .. } | Op::Count { index, .. } => first(index),
        Op::RegisterWrite { index, a, .. } => {
            first(index);
            first(a);
        }
        _ => {}
    }
}
