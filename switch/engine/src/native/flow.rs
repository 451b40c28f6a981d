//! Emits machine code for basic blocks, jumps, parser transitions and the application of tables.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I32, I64};
use cranelift_codegen::ir::{Block, InstBuilder, StackSlotData, StackSlotKind, Value};

use super::abi::{ASSERTION, DONE, Frame, PARSER_ERROR};
use super::emit::{Fun, trusted};
use super::reach::{For, Place, is_bytes, is_plain, next, target, targets};
use crate::code::{Case, Ext, KeyPart, Op, Pc};
use crate::layout::{Slot, mask64};
use crate::program::Direct;
use crate::table::answer::NONE;
use crate::table::key::KeyTerm;

impl Fun<'_, '_> {
    /// Emits the instructions of a basic block.
    #[expect(clippy::too_many_lines, reason = "one arm an instruction")]
    pub fn code(&mut self, on_behalf: For, start: Pc) {
        if let For::Action(_, action) = on_behalf
            && start == self.p.code.actions[action as usize]
        {
            self.parameters(action);
        }
        let mut pc = start;
        loop {
            if pc != start && self.plan.leaders.contains(&pc) {
                let to = self.block_of(Place::Code(on_behalf, pc));
                return self.jump(to);
            }
            let op = self.p.code.ops[pc as usize];
            pc += 1;
            if self.compute(op) {
                continue;
            }
            match op {
                Op::Jump { to } => {
                    let to = self.block_of(Place::Code(on_behalf, to));
                    return self.jump(to);
                }
                Op::JumpBack { to } => {
                    self.use_fuel();
                    let to = self.block_of(Place::Code(on_behalf, to));
                    return self.jump(to);
                }
                Op::Apply { table } => {
                    let to = self.block_of(Place::Apply(table));
                    return self.jump(to);
                }
                Op::Select { index } => return self.transition(on_behalf, index, pc),
                Op::Return => return self.end_of_code(on_behalf),
                Op::EndIfExit => self.end_if_exit(),
                Op::Exit => {
                    let exited = self.number(1);
                    self.b.def_var(self.exit, exited);
                }
                Op::SetValid { header } => self.change_validity(header, true),
                Op::SetInvalid { header } => self.change_validity(header, false),
                Op::RegisterRead { register, d, index } => self.register_read(register, d, index),
                Op::RegisterWrite { register, index, a } => self.register_write(register, index, a),
                Op::Count { counter, index } => self.count(counter, index),
                Op::Meter { meter, d, index } => {
                    let meter = self.number(meter.into());
                    let (index, old) = (self.get(index), self.get(d));
                    let colour = self.call("meter", &[self.frame, meter, index, old])[0];
                    self.set(d, colour);
                }
                Op::Extract { header } => self.extract(header),
                Op::Ext { index } => self.extension(index),
                // Traced packets are always interpreted, so machine code records no trace.
                Op::Note { .. } => {}
                op => {
                    let (Some(test), Some(to)) = (self.test(op), target(op)) else {
                        unreachable!("an instruction that neither computes nor jumps is named above")
                    };
                    let yes = self.block_of(Place::Code(on_behalf, to));
                    let no = self.block_of(Place::Code(on_behalf, pc));
                    return self.branch(test, yes, no);
                }
            }
        }
    }

    /// Emits the code that follows the end of an action, of a checksum's condition, of the deparser's primitives, or of
    /// the whole function.
    fn end_of_code(&mut self, on_behalf: For) {
        match on_behalf {
            For::Main => {
                let end = self.end(DONE);
                self.jump(end);
            }
            For::Condition(_) | For::Deparser => {
                let after = self.after(on_behalf);
                self.jump(after);
            }
            For::Action(table, action) => {
                self.end_if_exit();
                self.after_table(table, Some(action));
            }
        }
    }

    fn end_if_exit(&mut self) {
        if self.plan.exits {
            let exit = self.b.use_var(self.exit);
            let end = self.end(DONE);
            self.branch_off(exit, end);
        }
    }

    /// Emits the jump to the node that follows a table.
    fn after_table(&mut self, table: u16, action: Option<u32>) {
        let (hit, miss) = (next(self.p, table, action, true), next(self.p, table, action, false));
        if hit == miss {
            let to = self.block_of(hit);
            return self.jump(to);
        }
        let was_hit = self.b.use_var(self.hit);
        let (hit, miss) = (self.block_of(hit), self.block_of(miss));
        self.branch(was_hit, hit, miss);
    }

    /// Emits code that copies the parameters of the selected action to their slots.
    fn parameters(&mut self, action: u32) {
        let fields = self.p.actions[action as usize].params.clone();
        let mut at = 0;
        for f in fields {
            for i in 0..f.limbs() {
                let words = self.b.use_var(self.params);
                let v = self.b.ins().load(I64, trusted(), words, at);
                self.bound_by_slot(f.slot + i as u16, v);
                self.set(f.slot + i as u16, v);
                at += 8;
            }
        }
    }

    /// Emits the application of a table: building the key, the lookup, and the jump to the selected action.
    pub fn apply(&mut self, table: u16) {
        let t = &self.p.tables[usize::from(table)];
        let key = self.key(&t.key.terms(), t.key.words);
        let id = self.number(table.into());
        self.save_position();
        if !t.plain() {
            self.pass_selector_hash(table);
        }
        let answer = match key.as_slice() {
            [] if t.plain() => self.miss(table),
            words if t.direct() == Some(Direct::Exact) => self.exact(table, words),
            words if t.direct() == Some(Direct::Prefix) => {
                let words: Vec<Value> = t.key.order().into_iter().map(|word| words[word]).collect();
                self.longest(table, &words)
            }
            [] => {
                let zero = self.number(0);
                self.call("find_row", &[self.frame, id, self.frame, zero])
            }
            [a] => self.call(if t.plain() { "answer_one" } else { "find_one" }, &[self.frame, id, *a]),
            [a, b] => self.call(if t.plain() { "answer_two" } else { "find_two" }, &[self.frame, id, *a, *b]),
            words => {
                let size = 8 * words.len() as u32;
                let row = self.b.create_sized_stack_slot(StackSlotData::new(StackSlotKind::ExplicitSlot, size, 3));
                let (row, n) = (self.b.ins().stack_addr(I64, row, 0), self.number(words.len() as u64));
                for (i, &v) in words.iter().enumerate() {
                    self.b.ins().store(trusted(), v, row, 8 * i as i32);
                }
                self.call("find_row", &[self.frame, id, row, n])
            }
        };
        if let Some(target) = t.info.direct_meter.and_then(|m| self.p.objects.meter_targets[m.index()]) {
            self.forget(&[target.slot]);
        }
        let (outcome, params) = (answer[0], answer[1]);
        self.b.def_var(self.params, params);
        let hit = self.b.ins().ushr_imm(outcome, 32);
        self.b.def_var(self.hit, hit);
        let action = self.b.ins().ireduce(I32, outcome);
        for &a in &self.p.world.tables[usize::from(table)].actions {
            let this = self.b.ins().icmp_imm(IntCC::Equal, action, a as i64);
            let to = self.block_of(Place::Code(For::Action(table, a as u32), self.p.code.actions[a]));
            self.branch_off(this, to);
        }
        self.after_table(table, None);
    }

    /// Emits code that computes the hash by which the table's action profile selects a member, and that passes the hash
    /// to the lookup. If machine code cannot compute this hash, the emitted code only sets `hashed` to 0.
    fn pass_selector_hash(&mut self, table: u16) {
        let profile = self.p.tables[usize::from(table)].info.profile;
        let selector = profile.and_then(|i| self.p.profiles[i.index()].selector.as_ref());
        let hash = selector.and_then(|c| self.hash_of(c));
        let hashed = self.number(hash.is_some().into());
        self.set_frame_word(std::mem::offset_of!(Frame, hashed), hashed);
        if let Some(hash) = hash {
            self.set_frame_word(std::mem::offset_of!(Frame, hash), hash);
        }
    }

    /// Emits code that builds a table's key, and returns the words of the key.
    fn key(&mut self, terms: &[KeyTerm], words: usize) -> Vec<Value> {
        let mut key: Vec<Option<Value>> = vec![None; words];
        for t in terms {
            let v = self.get(t.slot);
            let v = if t.mask == u64::MAX { v } else { self.cut(v, t.mask.leading_zeros() as u8) };
            let v = if t.shift == 0 { v } else { self.b.ins().ishl_imm(v, i64::from(t.shift)) };
            let v = t.valid.map_or(v, |valid| self.if_valid(valid, v));
            key[t.word] = Some(match key[t.word] {
                Some(before) => self.b.ins().bor(before, v),
                None => v,
            });
        }
        let masks: Vec<u64> =
            (0..words).map(|w| terms.iter().find(|t| t.word == w).map_or(0, |t| t.word_mask)).collect();
        let mut out = Vec::new();
        for (v, mask) in key.into_iter().zip(masks) {
            let v = v.unwrap_or_else(|| self.number(0));
            out.push(self.masked(v, mask));
        }
        out
    }

    /// Returns `v`, or 0 if the header with this validity slot is not valid.
    pub fn if_valid(&mut self, valid: Slot, v: Value) -> Value {
        let (valid, zero) = (self.get(valid), self.number(0));
        self.b.ins().select(valid, v, zero)
    }

    /// Emits a parser's transition. `after` is the address after the transition's instruction.
    fn transition(&mut self, on_behalf: For, index: u32, after: Pc) {
        let select = &self.p.code.selects[index as usize];
        if !is_plain(select) {
            return self.transition_in_rust(on_behalf, index, after);
        }
        let mut row = Vec::new();
        for key_part in &select.parts {
            if let KeyPart::Field(f) = key_part {
                let v = self.get(f.slot);
                row.push((v, mask64(f.width)));
            }
        }
        for case in &select.cases {
            let Case::Value { value, mask, to } = case else { continue };
            let mut test: Option<Value> = None;
            for ((&(v, full), &value), &mask) in row.iter().zip(value).zip(mask) {
                let mask = mask & full;
                if mask == 0 && value == 0 {
                    continue;
                }
                let v = self.masked(v, mask);
                let same = self.b.ins().icmp_imm(IntCC::Equal, v, value as i64);
                test = Some(match test {
                    Some(t) => self.b.ins().band(t, same),
                    None => same,
                });
            }
            match test {
                Some(test) => {
                    let yes = self.backward(on_behalf, *to, after);
                    self.branch_off(test, yes);
                }
                // This case matches every key, so the cases after it are never reached.
                None => {
                    let to = self.backward(on_behalf, *to, after);
                    return self.jump(to);
                }
            }
        }
        let to = self.backward(on_behalf, select.default, after);
        self.jump(to);
    }

    /// Returns the block of a place. For a backward jump, returns the block of a fuel check that jumps to the place.
    fn backward(&mut self, on_behalf: For, to: Pc, after: Pc) -> Block {
        let place = Place::Code(on_behalf, to);
        if to > after {
            return self.block_of(place);
        }
        let fuel_check = self.b.create_block();
        let to = self.block_of(place);
        self.fuel_checks.push((fuel_check, to));
        fuel_check
    }

    fn transition_in_rust(&mut self, on_behalf: For, index: u32, after: Pc) {
        let id = self.number(index.into());
        let to = self.call_out("select", &[id])[0];
        let failed = self.b.ins().icmp_imm(IntCC::Equal, to, i64::from(NONE));
        let end = self.end(PARSER_ERROR);
        self.branch_off(failed, end);
        let mut all: Vec<Pc> = targets(&self.p.code.selects[index as usize]).collect();
        all.sort_unstable();
        all.dedup();
        let last = all.pop().unwrap_or(0);
        for pc in all {
            let this = self.b.ins().icmp_imm(IntCC::Equal, to, i64::from(pc));
            let yes = self.backward(on_behalf, pc, after);
            self.branch_off(this, yes);
        }
        let to = self.backward(on_behalf, last, after);
        self.jump(to);
    }

    /// Emits code that raises a parser error for a nonzero condition.
    pub fn fail_if(&mut self, condition: Value, error: Value) {
        let (fail, end) = (self.b.create_block(), self.end(PARSER_ERROR));
        self.branch_off(condition, fail);
        let Some(on) = self.b.current_block() else { return };
        self.b.set_cold_block(fail);
        self.b.switch_to_block(fail);
        self.b.ins().store(trusted(), error, self.frame, std::mem::offset_of!(Frame, error) as i32);
        self.jump(end);
        self.b.switch_to_block(on);
    }

    fn extension(&mut self, index: u32) {
        match &self.p.code.ext[index as usize] {
            Ext::Hash { calculation, d, base, max } => self.hash(*calculation, *d, *base, *max, index),
            Ext::Verify { condition, error } => {
                let (condition, error) = (self.get(*condition), self.get(*error));
                let failed = self.is_zero(condition);
                self.fail_if(failed, error);
            }
            Ext::Lookahead { offset, width, d } if is_bytes(*offset, *width) => {
                self.lookahead(*offset as usize / 8, *width as usize / 8, *d);
            }
            Ext::LastIndex { d, next } => {
                let v = self.get(*next);
                let v = self.b.ins().iadd_imm(v, -1);
                let v = self.cut(v, 32);
                self.set(*d, v);
            }
            Ext::Assert { a } => {
                let v = self.get(*a);
                let failed = self.is_zero(v);
                let end = self.end(ASSERTION);
                self.branch_off(failed, end);
            }
            Ext::Log { .. } => {}
            _ => self.call_rust("extension", index),
        }
    }

    /// Emits a call of a Rust function that executes an instruction.
    pub fn call_rust(&mut self, name: &'static str, index: u32) {
        let id = self.number(index.into());
        let status = self.call_out(name, &[id])[0];
        let failed = self.not_zero(status);
        let stop = self.b.create_block();
        self.branch_off(failed, stop);
        let Some(on) = self.b.current_block() else { return };
        self.b.set_cold_block(stop);
        self.b.switch_to_block(stop);
        self.b.ins().return_(&[status]);
        self.b.switch_to_block(on);
    }
}
