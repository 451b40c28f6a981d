//! Compiles actions and control flow to instructions.

use super::expr::Scope;
use super::json::{J, Result};
use super::primitive::Context;
use super::table::{Control, Flow, no_action, node};
use crate::code::{Note, Op, Pc};
use crate::codegen::Gen;
use crate::layout::{Layout, Slot};
use crate::program::{Action, ActionId, Node, Objects};

/// The inputs for compiling actions and pipelines to instructions.
pub struct Compiler<'a, 'j> {
    pub root: J<'j>,
    pub actions_json: Vec<J<'j>>,
    pub layout: &'a Layout,
    pub objects: &'a Objects,
    pub actions: &'a [Action],
    pub control: &'a Control,
    pub drop_port: Slot,
}

impl Compiler<'_, '_> {
    /// Compiles the body of an action. With `inline`, the code does not return at its end but falls through.
    fn action<'j>(&self, g: &mut Gen<'_, 'j>, id: ActionId, inline: bool) -> Result<()>
    where
        Self: 'j,
    {
        let action = &self.actions[id.index()];
        let j = &self.actions_json[action.json];
        let context =
            Context { objects: self.objects, layout: self.layout, params: &action.params, drop_port: self.drop_port };
        if g.traced {
            let index = g.code.notes.len() as u32;
            g.code.notes.push(Note::Action(id.0));
            g.emit(Op::Note { index });
        }
        let primitives = j.list("primitives")?;
        let mut starts = Vec::new();
        let mut jumps: Vec<(usize, usize, J)> = Vec::new();
        let mut exits = false;
        for p in &primitives {
            starts.push(g.pc());
            let op = p.str("op")?;
            let args = p.list("parameters")?;
            match (op, &args[..]) {
                ("_jump", [to]) => jumps.push((g.jump(), jump_target(to)?, to.clone())),
                ("_jump_if_zero", [condition, to]) => {
                    let scope = Scope { layout: self.layout, params: &action.params };
                    for at in g.branch_unless(&scope.condition(condition)?, true)? {
                        jumps.push((at, jump_target(to)?, to.clone()));
                    }
                }
                _ => {
                    exits |= op == "exit";
                    context.primitive(g, p)?;
                }
            }
            g.free_temps();
        }
        starts.push(g.pc());
        for (at, index, j) in jumps {
            let &to = starts.get(index).ok_or_else(|| j.error(format!("the action has no primitive {index}")))?;
            if to as usize > at {
                g.patch(at, to);
            } else if let Op::Jump { .. } = g.code.ops[at] {
                g.code.ops[at] = Op::JumpBack { to };
            } else {
                return Err(j.error("a conditional jump leads backwards"));
            }
        }
        if !inline {
            g.emit(Op::Return);
        } else if exits {
            g.emit(Op::EndIfExit);
        }
        Ok(())
    }

    /// Compiles all actions as subroutines, and then both pipelines (ingress and egress).
    pub fn pipelines<'j>(&self, g: &mut Gen<'_, 'j>) -> Result<()>
    where
        Self: 'j,
    {
        for id in 0..self.actions.len() {
            let start = g.pc();
            g.code.actions.push(start);
            self.action(g, ActionId(id as u32), false)?;
        }
        let end = g.pc();
        g.emit(Op::Return);
        g.code.nodes = vec![Pc::MAX; self.control.flow.len() + 1];
        g.code.nodes[0] = end;
        let pipelines = self.root.list("pipelines")?;
        for (name, egress) in [("ingress", false), ("egress", true)] {
            let (i, pipeline) = self.root.named("pipelines", name)?;
            let init = pipeline.get("init_table")?;
            let first = node(&init, &self.control.node_by_name[i])?;
            self.flow(g, first, &pipelines)?;
            let start = g.code.nodes[first as usize];
            if egress {
                g.code.egress = start;
            } else {
                g.code.ingress = start;
            }
        }
        Ok(())
    }

    #[expect(clippy::too_many_lines, reason = "one walk through the graph: each turn needs all of its state")]
    fn flow<'j>(&self, g: &mut Gen<'_, 'j>, first: Node, pipelines: &[J]) -> Result<()>
    where
        Self: 'j,
    {
        let mut waiting = vec![first];
        let mut fixups: Vec<(usize, Node)> = Vec::new();
        while let Some(start) = waiting.pop() {
            let mut at = start;
            let mut entered = false;
            loop {
                if g.code.nodes[at as usize] != Pc::MAX {
                    // The node has been compiled already, so a jump to its code is enough. If `entered` is false, no
                    // instruction has been emitted that would continue here, and no jump is needed.
                    if entered {
                        let jump = g.jump();
                        fixups.push((jump, at));
                    }
                    break;
                }
                g.code.nodes[at as usize] = g.pc();
                entered = true;
                g.free_temps();
                match &self.control.flow[at as usize - 1] {
                    Flow::Table(id) => {
                        let t = &self.control.tables[id.index()];
                        match (&t.default, t.inline && !g.traced) {
                            (Some(default), true) if default.params.is_empty() => {
                                self.action(g, default.action, true)?;
                                at = t.next.after(Some(default.action), false);
                                continue;
                            }
                            _ => {}
                        }
                        g.emit(Op::Apply { table: id.0 as u16 });
                        let next = &t.next;
                        waiting.push(next.none);
                        waiting.extend(next.by_action.iter().map(|b| b.1));
                        waiting.extend(next.hit_miss.iter().flat_map(|h| [h.0, h.1]));
                        break;
                    }
                    &Flow::Condition { pipeline, index } => {
                        let j = &pipelines[pipeline].get("conditionals")?.at(index)?;
                        let scope = Scope { layout: self.layout, params: &[] };
                        let names = &self.control.node_by_name[pipeline];
                        let condition = scope.condition(&j.get("expression")?)?;
                        let jumps = if g.traced {
                            let c = g.boolean(&condition, None)?.slot;
                            let index = g.code.notes.len() as u32;
                            let text = j.source_fragment().unwrap_or(j.str("name")?.to_string());
                            g.code.notes.push(Note::Condition { text, a: c });
                            g.emit(Op::Note { index });
                            vec![g.jump_if_zero(c)]
                        } else {
                            g.branch_unless(&condition, true)?
                        };
                        let on_false = j.opt("false_next").map_or(Ok(0), |n| node(&n, names))?;
                        fixups.extend(jumps.into_iter().map(|at| (at, on_false)));
                        waiting.push(on_false);
                        at = j.opt("true_next").map_or(Ok(0), |n| node(&n, names))?;
                    }
                    &Flow::Call { pipeline, index } => {
                        let j = &pipelines[pipeline].get("action_calls")?.at(index)?;
                        let called = j.get("action_id")?;
                        let id = called.as_u32()?;
                        let action = (0..self.actions.len())
                            .find(|&a| self.actions_json[self.actions[a].json].u32("id").is_ok_and(|i| i == id));
                        let action = action.ok_or_else(|| no_action(&called, id))?;
                        if !self.actions[action].params.is_empty() {
                            let name = &self.actions[action].info.name;
                            return Err(j.error(format!("action '{name}' is called without its parameters")));
                        }
                        self.action(g, ActionId(action as u32), true)?;
                        let names = &self.control.node_by_name[pipeline];
                        at = j.opt("next_node").map_or(Ok(0), |n| node(&n, names))?;
                    }
                }
            }
        }
        for (jump, node) in fixups {
            let to = g.code.nodes[node as usize];
            // p4c's control flow has no cycles, but another compiler's may have some. Therefore a backward jump becomes
            // `JumpBack`, whose executions are limited to `machine::FUEL` in a pass through a pipeline.
            match g.code.ops[jump] {
                Op::Jump { .. } if (to as usize) <= jump && node != 0 => g.code.ops[jump] = Op::JumpBack { to },
                _ => g.patch(jump, to),
            }
        }
        Ok(())
    }
}

fn jump_target(j: &J) -> Result<usize> {
    Ok(usize::try_from(&j.hex("value")?).unwrap_or(usize::MAX))
}
