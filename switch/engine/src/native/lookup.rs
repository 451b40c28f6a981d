//! Lookups that machine code does by itself.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::I64;
use cranelift_codegen::ir::{Block, InstBuilder, Value};

use super::abi::Frame;
use super::emit::{Fun, there};
use crate::machine::{Answer, TableState};
use crate::table::answers::{self, Answers, FREE};
use crate::table::prefixes::{self, Prefixes};
use crate::table::store::{FACTOR, SEED};

impl Fun<'_, '_> {
    /// What a table answers that nothing can match.
    pub fn miss(&mut self, table: u16) -> Vec<Value> {
        let misses = self.frame_word(std::mem::offset_of!(Frame, misses));
        let at = usize::from(table) * size_of::<Answer>();
        let fields = [std::mem::offset_of!(Answer, action), std::mem::offset_of!(Answer, params)];
        fields.map(|field| self.b.ins().load(I64, there(), misses, (at + field) as i32)).to_vec()
    }

    /// The address of something in a table.
    fn of_table(&mut self, table: u16, offset: usize) -> (Value, i32) {
        let tables = self.frame_word(std::mem::offset_of!(Frame, tables));
        (tables, (usize::from(table) * size_of::<TableState>() + offset) as i32)
    }

    /// What an exact table ([`Answers`]) answers.
    pub fn exact(&mut self, table: u16, key: &[Value]) -> Vec<Value> {
        let (tables, at) = self.of_table(table, std::mem::offset_of!(TableState, answers));
        let fields = [std::mem::offset_of!(Answers, first), std::mem::offset_of!(Answers, mask)];
        let [first, mask] = fields.map(|field| self.b.ins().load(I64, there(), tables, at + field as i32));
        let [missed, done] = std::array::from_fn(|_| self.b.create_block());
        self.probe(first, mask, key, missed, done);
        self.b.switch_to_block(missed);
        self.answered(table, done)
    }

    /// What a table of prefixes ([`Prefixes`]) answers.
    pub fn longest(&mut self, table: u16, key: &[Value]) -> Vec<Value> {
        let (tables, at) = self.of_table(table, std::mem::offset_of!(TableState, prefixes));
        let fields = [std::mem::offset_of!(Prefixes, first), std::mem::offset_of!(Prefixes, end)];
        let [first, end] = fields.map(|field| self.b.ins().load(I64, there(), tables, at + field as i32));
        let [level, next, missed, done] = std::array::from_fn(|_| self.b.create_block());
        let row = self.b.append_block_param(level, I64);
        self.b.ins().jump(level, &[first.into()]);

        self.b.switch_to_block(level);
        let none_left = self.b.ins().icmp(IntCC::Equal, row, end);
        self.branch_off(none_left, missed);
        let mut word = |i: usize| self.b.ins().load(I64, there(), row, 8 * i as i32);
        let masks: Vec<Value> = (0..key.len()).map(&mut word).collect();
        let (first, mask) = (word(key.len()), word(key.len() + 1));
        let masked: Vec<Value> = key.iter().zip(masks).map(|(&k, m)| self.b.ins().band(k, m)).collect();
        self.probe(first, mask, &masked, next, done);

        self.b.switch_to_block(next);
        let row = self.b.ins().iadd_imm(row, 8 * prefixes::stride(key.len()) as i64);
        self.b.ins().jump(level, &[row.into()]);

        self.b.switch_to_block(missed);
        self.answered(table, done)
    }

    /// Takes the answer of a miss to where those of hits go; the answer.
    fn answered(&mut self, table: u16, done: Block) -> Vec<Value> {
        let miss: Vec<_> = self.miss(table).into_iter().map(Into::into).collect();
        self.b.ins().jump(done, &miss);
        self.b.switch_to_block(done);
        self.b.block_params(done).to_vec()
    }

    /// Looks for the key among some [`Answers`]; goes to `done` with what is found.
    fn probe(&mut self, first: Value, mask: Value, key: &[Value], missed: Block, done: Block) {
        let home = self.hash_of_key(key);
        let home = self.b.ins().band(home, mask);
        let [look, other, found] = std::array::from_fn(|_| self.b.create_block());
        let index = self.b.append_block_param(look, I64);
        self.b.ins().jump(look, &[home.into()]);
        self.b.switch_to_block(look);
        let offset = self.b.ins().imul_imm(index, 8 * answers::stride(key.len()) as i64);
        let cell = self.b.ins().iadd(first, offset);
        for (i, &k) in key.iter().enumerate() {
            let word = self.b.ins().load(I64, there(), cell, 8 * i as i32);
            let differs = self.b.ins().icmp(IntCC::NotEqual, word, k);
            self.branch_off(differs, other);
        }
        self.jump(found);

        self.b.switch_to_block(other);
        let action = self.b.ins().load(I64, there(), cell, 8 * key.len() as i32);
        let free = self.b.ins().icmp_imm(IntCC::Equal, action, FREE as i64);
        self.branch_off(free, missed);
        let next = self.b.ins().iadd_imm(index, 1);
        let next = self.b.ins().band(next, mask);
        self.b.ins().jump(look, &[next.into()]);

        // the words of a free cell are zero, and so may be the key
        self.b.switch_to_block(found);
        let action = self.b.ins().load(I64, there(), cell, 8 * key.len() as i32);
        let free = self.b.ins().icmp_imm(IntCC::Equal, action, FREE as i64);
        self.branch_off(free, missed);
        let params = self.b.ins().load(I64, there(), cell, 8 * key.len() as i32 + 8);
        for _ in 0..2 {
            self.b.append_block_param(done, I64);
        }
        self.b.ins().jump(done, &[action.into(), params.into()]);
    }

    /// [`crate::table::store::hash`].
    fn hash_of_key(&mut self, key: &[Value]) -> Value {
        let (mut hash, factor) = (self.number(SEED), self.number(FACTOR));
        for &word in key {
            let v = self.b.ins().bxor(hash, word);
            let (high, low) = (self.b.ins().umulhi(v, factor), self.b.ins().imul(v, factor));
            hash = self.b.ins().bxor(high, low);
        }
        hash
    }
}
