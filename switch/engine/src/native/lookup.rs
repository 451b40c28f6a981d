//! Lookups that machine code does by itself.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::I64;
use cranelift_codegen::ir::{InstBuilder, Value};

use super::abi::Frame;
use super::emit::{Fun, there};
use crate::machine::{Answer, TableState};
use crate::table::answers::{Answers, FREE, stride};
use crate::table::store::{FACTOR, SEED};

impl Fun<'_, '_> {
    /// What a table answers that nothing can match.
    pub fn miss(&mut self, table: u16) -> Vec<Value> {
        let misses = self.frame_word(std::mem::offset_of!(Frame, misses));
        let at = usize::from(table) * size_of::<Answer>();
        let fields = [std::mem::offset_of!(Answer, action), std::mem::offset_of!(Answer, params)];
        fields.map(|field| self.b.ins().load(I64, there(), misses, (at + field) as i32)).to_vec()
    }

    /// What a direct table ([`Answers`]) answers.
    pub fn answer(&mut self, table: u16, key: &[Value]) -> Vec<Value> {
        let tables = self.frame_word(std::mem::offset_of!(Frame, tables));
        let at = usize::from(table) * size_of::<TableState>() + std::mem::offset_of!(TableState, answers);
        let fields = [std::mem::offset_of!(Answers, first), std::mem::offset_of!(Answers, mask)];
        let [first, mask] = fields.map(|field| self.b.ins().load(I64, there(), tables, (at + field) as i32));
        let home = self.hash_of_key(key);
        let home = self.b.ins().band(home, mask);

        let [look, other, found, missed, done] = std::array::from_fn(|_| self.b.create_block());
        let index = self.b.append_block_param(look, I64);
        self.b.ins().jump(look, &[home.into()]);
        self.b.switch_to_block(look);
        let offset = self.b.ins().imul_imm(index, 8 * stride(key.len()) as i64);
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
        self.b.ins().jump(done, &[action.into(), params.into()]);

        self.b.switch_to_block(missed);
        let miss: Vec<_> = self.miss(table).into_iter().map(Into::into).collect();
        self.b.ins().jump(done, &miss);

        let outcome = [I64, I64].map(|t| self.b.append_block_param(done, t));
        self.b.switch_to_block(done);
        outcome.to_vec()
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
