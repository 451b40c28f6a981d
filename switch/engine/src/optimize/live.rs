//! Analyzes liveness: a slot is live if it is read later. Removes writes to slots of `World::private` that are not
//! live.

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
            let mut live_slots = at_end(graph, world, &live, b);
            for &op in graph.blocks[b].ops.iter().rev() {
                update_before(op, &mut live_slots, code, world);
            }
            if live_slots != live[b] {
                live[b] = live_slots;
                changed = true;
            }
        }
    }
    for &b in &order {
        let mut live_slots = at_end(graph, world, &live, b);
        let ops = std::mem::take(&mut graph.blocks[b].ops);
        let mut remaining = Vec::with_capacity(ops.len());
        for op in ops.into_iter().rev() {
            let e = effects::of(op, code, world);
            if e.pure && e.writes.iter().all(|&w| world.private.has(w) && !live_slots.has(w)) {
                continue;
            }
            update_before(op, &mut live_slots, code, world);
            remaining.push(op);
        }
        remaining.reverse();
        graph.blocks[b].ops = remaining;
    }
}

/// Returns the slots that may be read after the end of the block.
fn at_end(graph: &Graph, world: &World, live: &[Slots], b: usize) -> Slots {
    let mut live_slots = Slots::none(world.used);
    for to in graph.successors(b) {
        live_slots.add_all(&live[to]);
    }
    match graph.blocks[b].end {
        End::Goto(_) => {}
        End::Branch { mut op, .. } => {
            if let Some((&mut a, b)) = effects::tested(&mut op) {
                live_slots.add(a);
                if let Some(&mut b) = b {
                    live_slots.add(b);
                }
            }
        }
        End::Apply(table) => {
            let t = &world.tables[usize::from(table)];
            t.reads.iter().for_each(|&r| live_slots.add(r));
            t.actions.iter().for_each(|&a| live_slots.add_all(&live[graph.actions[a]]));
        }
        // The slot with a condition's result is not in `World::private`, so it need not be added.
        End::ConditionReturn => {}
        // The parser ends here, or may raise an error and end here. Afterwards, ingress may read any slot.
        End::Select(_) | End::ParserReturn => live_slots.add_all(&world.private),
        End::ActionReturn(action) => {
            graph.action_next[action].iter().for_each(|&to| live_slots.add_all(&live[to]));
            // If `exit` was called, or if the control flow ends after the table, the run continues with egress and the
            // deparser.
            live_slots.add_all(&live[graph.egress]);
            graph.after_pipelines().for_each(|b| live_slots.add_all(&live[b]));
        }
        End::PipelineReturn => {
            live_slots.add_all(&live[graph.egress]);
            graph.after_pipelines().for_each(|b| live_slots.add_all(&live[b]));
        }
    }
    live_slots
}

fn update_before(op: Op, live_slots: &mut Slots, code: &Code, world: &World) {
    let e = effects::of(op, code, world);
    if !e.writes_all {
        for &w in &e.writes {
            live_slots.remove(w);
        }
    }
    for &r in &e.reads {
        live_slots.add(r);
    }
    if e.reads_all {
        live_slots.add_all(&world.private);
    }
}
