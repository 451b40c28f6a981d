//! What is read later; writes that nobody sees go.

use super::effects;
use super::graph::{End, Graph};
use crate::code::{Code, Op};
use crate::dataflow::{Slots, World};

pub fn run(graph: &mut Graph, code: &Code, world: &World) {
    let order = graph.order();
    let mut live = vec![Slots::none(world.used); graph.blocks.len()];
    let mut changed = true;
    while changed {
        changed = false;
        for &b in order.iter().rev() {
            let mut now = at_end(graph, world, &live, b);
            for &op in graph.blocks[b].ops.iter().rev() {
                before(op, &mut now, code, world);
            }
            if now != live[b] {
                live[b] = now;
                changed = true;
            }
        }
    }
    for &b in &order {
        let mut now = at_end(graph, world, &live, b);
        let ops = std::mem::take(&mut graph.blocks[b].ops);
        let mut kept = Vec::with_capacity(ops.len());
        for op in ops.into_iter().rev() {
            let e = effects::of(op, code, world);
            if e.pure && e.writes.iter().all(|&w| world.private.has(w) && !now.has(w)) {
                continue;
            }
            before(op, &mut now, code, world);
            kept.push(op);
        }
        kept.reverse();
        graph.blocks[b].ops = kept;
    }
}

/// What is read from the end of the block on.
fn at_end(graph: &Graph, world: &World, live: &[Slots], b: usize) -> Slots {
    let mut now = Slots::none(world.used);
    for to in graph.successors(b) {
        now.add_all(&live[to]);
    }
    match graph.blocks[b].end {
        End::Goto(_) => {}
        End::Branch { mut op, .. } => {
            if let Some((&mut a, b)) = effects::tested(&mut op) {
                now.add(a);
                if let Some(&mut b) = b {
                    now.add(b);
                }
            }
        }
        End::Apply(table) => {
            let t = &world.tables[usize::from(table)];
            t.reads.iter().for_each(|&r| now.add(r));
            t.actions.iter().for_each(|&a| now.add_all(&live[graph.actions[a]]));
        }
        // its result is not private
        End::ConditionReturn => {}
        // the parser's end, or an error of the parser
        End::Select(_) | End::ParserReturn => now.add_all(&world.private),
        End::ActionReturn(action) => {
            graph.action_next[action].iter().for_each(|&to| now.add_all(&live[to]));
            // after `exit`, or when no action of the table leads anywhere
            now.add_all(&live[graph.egress]);
            graph.behind().for_each(|b| now.add_all(&live[b]));
        }
        End::PipelineReturn => {
            now.add_all(&live[graph.egress]);
            graph.behind().for_each(|b| now.add_all(&live[b]));
        }
    }
    now
}

fn before(op: Op, now: &mut Slots, code: &Code, world: &World) {
    let e = effects::of(op, code, world);
    if !e.writes_all {
        for &w in &e.writes {
            now.remove(w);
        }
    }
    for &r in &e.reads {
        now.add(r);
    }
    if e.reads_all {
        now.add_all(&world.private);
    }
}
