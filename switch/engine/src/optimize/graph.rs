//! Represents instructions as a graph of basic blocks.

use std::collections::BTreeSet;

use crate::code::{Case, Code, Near, Op, Pc};
use crate::dataflow::World;

/// An index into [`Graph::blocks`].
pub type BlockId = usize;

/// The end of a block, which determines where the run continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    Goto(BlockId),
    /// A conditional jump. The target in `op` is ignored; `taken` and `fall` are the blocks that follow.
    Branch {
        op: Op,
        taken: BlockId,
        fall: BlockId,
    },
    Select(u32),
    Apply(u16),
    /// The end of an action. The run continues after the table that ran the action; any table that has the action may
    /// be this table.
    ActionReturn(usize),
    /// The end of a pipeline.
    PipelineReturn,
    /// The end of a checksum's condition or of the deparser's primitives.
    ConditionReturn,
    /// The end of the parser.
    ParserReturn,
}

#[derive(Debug, Clone)]
pub struct Block {
    pub ops: Vec<Op>,
    pub end: End,
}

/// The code of a program as basic blocks.
pub struct Graph {
    pub blocks: Vec<Block>,
    /// The blocks that are entered from outside, where no facts about slots are known: the first blocks of parser,
    /// ingress, egress, actions, conditions and deparser.
    pub roots: Vec<BlockId>,
    /// For each parser transition, the blocks of its cases, followed by the block of the default.
    pub selects: Vec<Vec<BlockId>>,
    pub nodes: Vec<Option<BlockId>>,
    pub actions: Vec<BlockId>,
    pub conditions: Vec<Option<BlockId>>,
    pub deparser: Option<BlockId>,
    pub parser: BlockId,
    pub ingress: BlockId,
    pub egress: BlockId,
    /// For each table, the blocks that may follow the table.
    pub table_next: Vec<Vec<BlockId>>,
    /// For each action, the blocks at which the run may continue after the action.
    pub action_next: Vec<Vec<BlockId>>,
}

/// Returns the target of a jump, or `None` for an instruction of another kind.
pub fn target(op: Op) -> Option<Pc> {
    Some(match op {
        Op::Jump { to } | Op::JumpBack { to } | Op::JumpIfZero { to, .. } | Op::JumpIfNotZero { to, .. } => to,
        Op::JumpEq { to, .. }
        | Op::JumpNe { to, .. }
        | Op::JumpLtU { to, .. }
        | Op::JumpLeU { to, .. }
        | Op::JumpLtS { to, .. }
        | Op::JumpLeS { to, .. } => to.pc() as Pc,
        _ => return None,
    })
}

fn redirected(op: Op, pc: Pc) -> Option<Op> {
    let near = Near::new(pc)?;
    Some(match op {
        Op::JumpIfZero { a, .. } => Op::JumpIfZero { a, to: pc },
        Op::JumpIfNotZero { a, .. } => Op::JumpIfNotZero { a, to: pc },
        Op::JumpEq { a, b, .. } => Op::JumpEq { to: near, a, b },
        Op::JumpNe { a, b, .. } => Op::JumpNe { to: near, a, b },
        Op::JumpLtU { a, b, .. } => Op::JumpLtU { to: near, a, b },
        Op::JumpLeU { a, b, .. } => Op::JumpLeU { to: near, a, b },
        Op::JumpLtS { a, b, .. } => Op::JumpLtS { to: near, a, b },
        Op::JumpLeS { a, b, .. } => Op::JumpLeS { to: near, a, b },
        other => other,
    })
}

/// Returns the jump with the opposite condition.
fn inverted(op: Op) -> Op {
    match op {
        Op::JumpIfZero { a, to } => Op::JumpIfNotZero { a, to },
        Op::JumpIfNotZero { a, to } => Op::JumpIfZero { a, to },
        Op::JumpEq { to, a, b } => Op::JumpNe { to, a, b },
        Op::JumpNe { to, a, b } => Op::JumpEq { to, a, b },
        Op::JumpLtU { to, a, b } => Op::JumpLeU { to, a: b, b: a },
        Op::JumpLeU { to, a, b } => Op::JumpLtU { to, a: b, b: a },
        Op::JumpLtS { to, a, b } => Op::JumpLeS { to, a: b, b: a },
        Op::JumpLeS { to, a, b } => Op::JumpLtS { to, a: b, b: a },
        other => other,
    }
}

fn case_target(case: &mut Case) -> &mut Pc {
    match case {
        Case::Value { to, .. } | Case::ValueSet { to, .. } => to,
    }
}

impl Graph {
    #[expect(clippy::too_many_lines, reason = "leaders, blocks and edges: each step needs the one before")]
    pub fn new(code: &mut Code, world: &World) -> Graph {
        let ops = &code.ops;
        let mut leaders: BTreeSet<Pc> = [0, code.parser, code.ingress, code.egress].into();
        leaders.extend(code.nodes.iter().copied().filter(|&n| n != Pc::MAX));
        leaders.extend(&code.actions);
        leaders.extend(code.conditions.iter().filter_map(|c| c.0).chain(code.deparser));
        for select in &mut code.selects {
            leaders.extend(select.cases.iter_mut().map(|c| *case_target(c)));
            leaders.insert(select.default);
        }
        for (pc, &op) in ops.iter().enumerate() {
            leaders.extend(target(op));
            if target(op).is_some() || matches!(op, Op::Select { .. } | Op::Apply { .. } | Op::Return) {
                leaders.insert(pc as Pc + 1);
            }
        }
        leaders.retain(|&l| (l as usize) < ops.len());
        let starts: Vec<Pc> = leaders.into_iter().collect();
        let at = |pc: Pc| starts.partition_point(|&s| s <= pc) - 1;
        let end_node = code.nodes[0];
        let action_of = |pc: Pc| {
            let after = code.actions.partition_point(|&a| a <= pc);
            (after > 0 && pc < end_node).then(|| after - 1)
        };
        let mut blocks = Vec::new();
        for (i, &start) in starts.iter().enumerate() {
            let stop = starts.get(i + 1).copied().unwrap_or(ops.len() as Pc);
            let body = &ops[start as usize..stop as usize];
            let (&last, rest) = body.split_last().unwrap_or((&Op::Return, &[]));
            let end = match last {
                Op::Jump { to } | Op::JumpBack { to } => End::Goto(at(to)),
                Op::Select { index } => End::Select(index),
                Op::Apply { table } => End::Apply(table),
                Op::Return => match action_of(stop - 1) {
                    Some(action) => End::ActionReturn(action),
                    None if stop - 1 == end_node => End::PipelineReturn,
                    None if stop - 1 > end_node => End::ConditionReturn,
                    None => End::ParserReturn,
                },
                op => match target(op) {
                    Some(to) => End::Branch { op, taken: at(to), fall: at(stop) },
                    None => End::Goto(at(stop)),
                },
            };
            let keeps_last = matches!(end, End::Goto(_)) && target(last).is_none();
            blocks.push(Block { ops: if keeps_last { body.to_vec() } else { rest.to_vec() }, end });
        }
        let nodes: Vec<Option<BlockId>> = code.nodes.iter().map(|&n| (n != Pc::MAX).then(|| at(n))).collect();
        let selects = code.selects.iter_mut().map(|s| {
            let default = s.default;
            s.cases.iter_mut().map(|c| *case_target(c)).chain([default]).map(at).collect()
        });
        let selects = selects.collect();
        let (parser, ingress, egress) = (at(code.parser), at(code.ingress), at(code.egress));
        let actions: Vec<BlockId> = code.actions.iter().map(|&a| at(a)).collect();
        let conditions: Vec<Option<BlockId>> = code.conditions.iter().map(|c| c.0.map(at)).collect();
        let deparser = code.deparser.map(at);
        let table_next: Vec<Vec<BlockId>> =
            world.tables.iter().map(|t| t.next.iter().filter_map(|&n| nodes[n]).collect()).collect();
        let mut action_next = vec![Vec::new(); actions.len()];
        for (t, next) in world.tables.iter().zip(&table_next) {
            for &a in &t.actions {
                action_next[a].extend(next);
            }
        }
        let last = conditions.iter().flatten().copied().chain(deparser);
        let roots = [parser, ingress, egress].into_iter().chain(actions.clone()).chain(last).collect();
        Graph {
            blocks,
            roots,
            selects,
            nodes,
            actions,
            conditions,
            deparser,
            parser,
            ingress,
            egress,
            table_next,
            action_next,
        }
    }

    /// Returns the first blocks of the code that may run after a pipeline: of the checksums' conditions and of the
    /// deparser's primitives.
    pub fn after_pipelines(&self) -> impl Iterator<Item = BlockId> {
        self.conditions.iter().flatten().copied().chain(self.deparser)
    }

    /// Returns the blocks to which the end of a block leads; the end of an action, pipeline, condition or parser leads
    /// to none. [`Graph::order`] places the last of these blocks directly after `block`, if possible, to save a jump.
    pub fn successors(&self, block: BlockId) -> Vec<BlockId> {
        match &self.blocks[block].end {
            End::Goto(to) => vec![*to],
            End::Branch { taken, fall, .. } => vec![*taken, *fall],
            End::Select(index) => self.selects[*index as usize].clone(),
            End::Apply(table) => self.table_next[usize::from(*table)].clone(),
            End::ActionReturn(_) | End::PipelineReturn | End::ConditionReturn | End::ParserReturn => Vec::new(),
        }
    }

    /// Returns the reachable blocks. Except in cycles, each block precedes its successors.
    pub fn order(&self) -> Vec<BlockId> {
        let mut visited = vec![false; self.blocks.len()];
        let mut done = Vec::new();
        for &root in self.roots.iter().rev() {
            if visited[root] {
                continue;
            }
            visited[root] = true;
            let mut stack = vec![(root, self.successors(root), 0)];
            while let Some((block, next, i)) = stack.last_mut() {
                if let Some(&to) = next.get(*i) {
                    *i += 1;
                    if !visited[to] {
                        visited[to] = true;
                        let after = self.successors(to);
                        stack.push((to, after, 0));
                    }
                } else {
                    done.push(*block);
                    stack.pop();
                }
            }
        }
        done.reverse();
        done
    }

    /// Converts the blocks back to instructions, and replaces the instructions in `code`.
    #[expect(clippy::too_many_lines, reason = "blocks are laid out, then their jumps are resolved")]
    pub fn write_back(&self, code: &mut Code) {
        let order = self.order();
        let mut place = vec![usize::MAX; self.blocks.len()];
        for (i, &b) in order.iter().enumerate() {
            place[b] = i;
        }
        let mut ops: Vec<Op> = Vec::new();
        let mut starts = vec![Pc::MAX; self.blocks.len()];
        // The instructions whose targets have not been set yet, each with the block to which it jumps.
        let mut unresolved: Vec<(usize, BlockId)> = Vec::new();
        let jump = |ops: &mut Vec<Op>, unresolved: &mut Vec<(usize, BlockId)>, from: usize, to: BlockId| {
            unresolved.push((ops.len(), to));
            ops.push(if place[to] <= from { Op::JumpBack { to: 0 } } else { Op::Jump { to: 0 } });
        };
        for (i, &b) in order.iter().enumerate() {
            let block = &self.blocks[b];
            starts[b] = ops.len() as Pc;
            ops.extend(&block.ops);
            let next = order.get(i + 1).copied();
            match block.end {
                End::Goto(to) if Some(to) == next => {}
                End::Goto(to) => jump(&mut ops, &mut unresolved, i, to),
                End::Branch { op, taken, fall } => {
                    let (op, taken, fall) = if Some(taken) == next || place[taken] <= i {
                        (inverted(op), fall, taken)
                    } else {
                        (op, taken, fall)
                    };
                    if place[taken] <= i {
                        // The block `taken` lies backwards, but conditional jumps only lead forwards. Therefore the
                        // inverted jump skips an unconditional jump to `taken`.
                        let after_jump = ops.len() as Pc + 2;
                        let Some(op) = redirected(inverted(op), after_jump) else { return };
                        ops.push(op);
                        jump(&mut ops, &mut unresolved, i, taken);
                    } else {
                        unresolved.push((ops.len(), taken));
                        ops.push(op);
                    }
                    if Some(fall) != next {
                        jump(&mut ops, &mut unresolved, i, fall);
                    }
                }
                End::Select(index) => ops.push(Op::Select { index }),
                End::Apply(table) => ops.push(Op::Apply { table }),
                End::ActionReturn(_) | End::PipelineReturn | End::ConditionReturn | End::ParserReturn => {
                    ops.push(Op::Return)
                }
            }
        }
        for (at, to) in unresolved {
            let pc = starts[to];
            let op = match ops[at] {
                Op::Jump { .. } => Some(Op::Jump { to: pc }),
                Op::JumpBack { .. } => Some(Op::JumpBack { to: pc }),
                op => redirected(op, pc),
            };
            // The target is too far away for the jump, so the original code remains unchanged.
            let Some(op) = op else { return };
            ops[at] = op;
        }
        code.ops = ops;
        for (select, targets) in code.selects.iter_mut().zip(&self.selects) {
            for (case, &to) in select.cases.iter_mut().zip(targets) {
                *case_target(case) = starts[to];
            }
            select.default = targets.last().map_or(select.default, |&to| starts[to]);
            if let Some(small) = &mut select.small {
                for (case, &to) in small.iter_mut().zip(targets) {
                    case.2 = starts[to];
                }
            }
        }
        code.nodes = self.nodes.iter().map(|n| n.map_or(Pc::MAX, |b| starts[b])).collect();
        code.actions = self.actions.iter().map(|&b| starts[b]).collect();
        for (condition, b) in code.conditions.iter_mut().zip(&self.conditions) {
            condition.0 = b.map(|b| starts[b]);
        }
        code.deparser = self.deparser.map(|b| starts[b]);
        (code.parser, code.ingress, code.egress) = (starts[self.parser], starts[self.ingress], starts[self.egress]);
    }
}
