//! Emits table lookups that machine code performs without calling Rust.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::I64;
use cranelift_codegen::ir::{Block, InstBuilder, Value};

use super::abi::Frame;
use super::emit::{Fun, trusted};
use crate::machine::TableState;
use crate::table::answer::Answer;
use crate::table::answers::{self, Answers, FREE};
use crate::table::hash::{FACTOR, SEED};
use crate::table::store::Store;
use crate::table::trie::{Node, STRIDE};

impl Fun<'_, '_> {
    /// Returns the table's result for a key that no entry matches: the action word and the address of the parameters.
    pub fn miss(&mut self, table: u16) -> Vec<Value> {
        let misses = self.frame_word(std::mem::offset_of!(Frame, misses));
        let at = usize::from(table) * size_of::<Answer>();
        let fields = [std::mem::offset_of!(Answer, action), std::mem::offset_of!(Answer, params)];
        fields.map(|field| self.b.ins().load(I64, trusted(), misses, (at + field) as i32)).to_vec()
    }

    /// Returns the address of a field of a table's [`TableState`], as a base address and an offset.
    fn table_field(&mut self, table: u16, offset: usize) -> (Value, i32) {
        let tables = self.frame_word(std::mem::offset_of!(Frame, tables));
        (tables, (usize::from(table) * size_of::<TableState>() + offset) as i32)
    }

    /// Emits a lookup in the [`Answers`] of an exact table. Returns the result.
    pub fn exact(&mut self, table: u16, key: &[Value]) -> Vec<Value> {
        let (tables, at) = self.table_field(table, std::mem::offset_of!(TableState, answers));
        let fields = [std::mem::offset_of!(Answers, first), std::mem::offset_of!(Answers, mask)];
        let [first, mask] = fields.map(|field| self.b.ins().load(I64, trusted(), tables, at + field as i32));
        let [missed, done] = std::array::from_fn(|_| self.b.create_block());
        self.probe(first, mask, key, missed, done);
        self.b.switch_to_block(missed);
        self.join_miss(table, done)
    }

    /// Emits a lookup in the trie ([`crate::table::trie`]) of a longest-prefix-match table. The most significant word
    /// of `key` comes first. Returns the result.
    pub fn longest(&mut self, table: u16, key: &[Value]) -> Vec<Value> {
        let (tables, at) = self.table_field(table, std::mem::offset_of!(TableState, store));
        let root = self.b.ins().load(I64, trusted(), tables, at + std::mem::offset_of!(Store, root) as i32);
        let (tables, at) = self.table_field(table, std::mem::offset_of!(TableState, first));
        let first = self.b.ins().load(I64, trusted(), tables, at);
        let words: Vec<Block> = key.iter().map(|_| self.node_block()).collect();
        let (off_path_block, ends) = (self.node_block(), self.node_block());
        let chunk = self.b.append_block_param(ends, I64);
        let done = self.b.create_block();
        let entry = self.b.append_block_param(done, I64);
        self.b.ins().jump(words[0], &[root.into()]);
        for (i, &word) in key.iter().enumerate() {
            self.down(word, words[i], words.get(i + 1).copied(), off_path_block, ends);
        }

        self.b.switch_to_block(ends);
        let node = self.b.block_params(ends)[0];
        let runs = self.node_field(node, std::mem::offset_of!(Node, runs));
        let answers = self.node_field(node, std::mem::offset_of!(Node, answers));
        let from_here = self.b.ins().ushr(runs, chunk);
        let nth = self.b.ins().popcnt(from_here);
        let nth = self.b.ins().ishl_imm(nth, i64::from(size_of::<u32>().ilog2()));
        let answer = self.b.ins().iadd(answers, nth);
        let answer = self.b.ins().uload32(trusted(), answer, 0);
        self.b.ins().jump(done, &[answer.into()]);

        self.b.switch_to_block(off_path_block);
        let node = self.b.block_params(off_path_block)[0];
        let inherited = self.b.ins().uload32(trusted(), node, std::mem::offset_of!(Node, inherited) as i32);
        self.b.ins().jump(done, &[inherited.into()]);

        self.b.switch_to_block(done);
        let offset = self.b.ins().ishl_imm(entry, i64::from(size_of::<Answer>().ilog2()));
        let answer = self.b.ins().iadd(first, offset);
        let fields = [std::mem::offset_of!(Answer, action), std::mem::offset_of!(Answer, params)];
        fields.map(|field| self.b.ins().load(I64, trusted(), answer, field as i32)).to_vec()
    }

    /// Creates a block that has the address of a node as its parameter.
    fn node_block(&mut self) -> Block {
        let block = self.b.create_block();
        self.b.append_block_param(block, I64);
        block
    }

    fn node_field(&mut self, node: Value, field: usize) -> Value {
        self.b.ins().load(I64, trusted(), node, field as i32)
    }

    /// Emits the descent from the node of `block` along a word of the key. If the selected chunk has no child, the code
    /// jumps to `ends` with the node and the chunk. If the key differs from the node's path, the code jumps to
    /// `off_path_block`. After the word's last bit, the code jumps to `next_word` with the child. `next_word` is `None`
    /// for the key's last word, after whose last bit there is no child.
    fn down(&mut self, word: Value, block: Block, next_word: Option<Block>, off_path_block: Block, ends: Block) {
        self.b.switch_to_block(block);
        let node = self.b.block_params(block)[0];
        let path = self.node_field(node, std::mem::offset_of!(Node, path));
        let differ = self.b.ins().bxor(word, path);
        let differ = self.b.ins().ushr(differ, path);
        let off_path = self.b.ins().icmp_imm(IntCC::UnsignedGreaterThan, differ, (1 << STRIDE) - 1);
        let [on, below] = std::array::from_fn(|_| self.b.create_block());
        self.b.ins().brif(off_path, off_path_block, &[node.into()], on, &[]);

        self.b.switch_to_block(on);
        let chunk = self.b.ins().ushr(word, path);
        let forks = self.node_field(node, std::mem::offset_of!(Node, forks));
        let forks = self.b.ins().ushr(forks, chunk);
        let has_child = self.b.ins().band_imm(forks, 1);
        self.b.ins().brif(has_child, below, &[], ends, &[node.into(), chunk.into()]);

        self.b.switch_to_block(below);
        let children = self.node_field(node, std::mem::offset_of!(Node, children));
        let nth = self.b.ins().popcnt(forks);
        let offset = self.b.ins().imul_imm(nth, size_of::<Node>() as i64);
        let child = self.b.ins().iadd(children, offset);
        match next_word {
            Some(next) => {
                let shift = self.b.ins().band_imm(path, 63);
                self.b.ins().brif(shift, block, &[child.into()], next, &[child.into()]);
            }
            None => {
                self.b.ins().jump(block, &[child.into()]);
            }
        }
    }

    /// Emits a jump to `done` with the result of a miss. Code for hits jumps to `done` too. Returns the parameters of
    /// `done`, which contain the result of the lookup.
    fn join_miss(&mut self, table: u16, done: Block) -> Vec<Value> {
        let miss: Vec<_> = self.miss(table).into_iter().map(Into::into).collect();
        self.b.ins().jump(done, &miss);
        self.b.switch_to_block(done);
        self.b.block_params(done).to_vec()
    }

    /// Emits a lookup of the key in [`Answers`]. The code jumps to `done` with the result of the key, or to `missed` if
    /// the hash table does not contain the key.
    fn probe(&mut self, first: Value, mask: Value, key: &[Value], missed: Block, done: Block) {
        let home = self.hash_of_key(key);
        let home = self.b.ins().band(home, mask);
        let [compare, next_cell, matches] = std::array::from_fn(|_| self.b.create_block());
        let index = self.b.append_block_param(compare, I64);
        self.b.ins().jump(compare, &[home.into()]);
        self.b.switch_to_block(compare);
        let offset = self.b.ins().imul_imm(index, 8 * answers::stride(key.len()) as i64);
        let cell = self.b.ins().iadd(first, offset);
        for (i, &k) in key.iter().enumerate() {
            let word = self.b.ins().load(I64, trusted(), cell, 8 * i as i32);
            let differs = self.b.ins().icmp(IntCC::NotEqual, word, k);
            self.branch_off(differs, next_cell);
        }
        self.jump(matches);

        self.b.switch_to_block(next_cell);
        let action = self.b.ins().load(I64, trusted(), cell, 8 * key.len() as i32);
        let free = self.b.ins().icmp_imm(IntCC::Equal, action, FREE as i64);
        self.branch_off(free, missed);
        let next = self.b.ins().iadd_imm(index, 1);
        let next = self.b.ins().band(next, mask);
        self.b.ins().jump(compare, &[next.into()]);

        // A free cell contains zeros and so seems to match the key zero, so the code checks whether the cell is in use.
        self.b.switch_to_block(matches);
        let action = self.b.ins().load(I64, trusted(), cell, 8 * key.len() as i32);
        let free = self.b.ins().icmp_imm(IntCC::Equal, action, FREE as i64);
        self.branch_off(free, missed);
        let params = self.b.ins().load(I64, trusted(), cell, 8 * key.len() as i32 + 8);
        for _ in 0..2 {
            self.b.append_block_param(done, I64);
        }
        self.b.ins().jump(done, &[action.into(), params.into()]);
    }

    /// Emits the computation of a key's hash, which must be equal to the result of [`crate::table::hash::hash`].
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
