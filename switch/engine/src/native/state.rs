//! Emits machine code for registers, counters and hashes.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::I64;
use cranelift_codegen::ir::{InstBuilder, StackSlotData, StackSlotKind, Value};

use super::abi::{Frame, HASHES};
use super::emit::{Fun, trusted};
use crate::calc::{Calculation, Steps};
use crate::control::CounterData;
use crate::hash::Hash;
use crate::layout::{Slot, mask64};
use crate::machine::Machine;
use crate::phv::Word;
use crate::state::cell_shift;

impl Fun<'_, '_> {
    /// Returns the address of an array's first cell. Register arrays are numbered first, and counter arrays follow.
    fn array(&mut self, number: usize) -> Value {
        let arrays = self.frame_word(std::mem::offset_of!(Frame, arrays));
        self.b.ins().load(I64, trusted().with_readonly(), arrays, 8 * number as i32)
    }

    fn cell(&mut self, register: u16, index: Value) -> Value {
        let cells = self.array(register.into());
        let shift = cell_shift(self.p.objects.registers[usize::from(register)].width);
        let offset = self.b.ins().ishl_imm(index, i64::from(shift));
        self.b.ins().iadd(cells, offset)
    }

    /// Returns a value that is nonzero if the index is inside an array of this size. Returns `None` if it always is
    /// inside.
    fn inside(&mut self, index: Value, size: u64) -> Option<Value> {
        if mask64(self.bits(index)) < size {
            return None;
        }
        let size = self.number(size);
        Some(self.b.ins().icmp(IntCC::UnsignedLessThan, index, size))
    }

    /// Emits code that runs only if the index is inside an array of this size.
    fn if_inside(&mut self, index: Value, size: u64, then: impl FnOnce(&mut Self)) {
        let Some(ok) = self.inside(index, size) else { return then(self) };
        let (yes, on) = (self.b.create_block(), self.b.create_block());
        self.branch(ok, yes, on);
        self.b.switch_to_block(yes);
        then(self);
        self.jump(on);
        self.b.switch_to_block(on);
    }

    /// Emits a read of a register cell. If the index is out of range, the destination's value does not change.
    pub fn register_read(&mut self, register: u16, d: Slot, index: Slot) {
        let size = self.p.objects.registers[usize::from(register)].size;
        let index = self.get(index);
        let Some(ok) = self.inside(index, size) else {
            let v = self.load_cell(register, index);
            return self.set(d, v);
        };
        let old = self.get(d);
        let (read, on) = (self.b.create_block(), self.b.create_block());
        self.b.append_block_param(on, I64);
        let none: &[cranelift_codegen::ir::BlockArg] = &[];
        self.b.ins().brif(ok, read, none, on, &[old.into()]);
        self.b.switch_to_block(read);
        let v = self.load_cell(register, index);
        self.b.ins().jump(on, &[v.into()]);
        self.b.switch_to_block(on);
        let v = self.b.block_params(on)[0];
        self.set(d, v);
    }

    fn load_cell(&mut self, register: u16, index: Value) -> Value {
        let cell = self.cell(register, index);
        match cell_shift(self.p.objects.registers[usize::from(register)].width) {
            0 => self.b.ins().uload8(I64, trusted(), cell, 0),
            1 => self.b.ins().uload16(I64, trusted(), cell, 0),
            2 => self.b.ins().uload32(trusted(), cell, 0),
            _ => self.b.ins().load(I64, trusted(), cell, 0),
        }
    }

    pub fn register_write(&mut self, register: u16, index: Slot, a: Slot) {
        let info = &self.p.objects.registers[usize::from(register)];
        let (index, v) = (self.get(index), self.get(a));
        self.if_inside(index, info.size, |f| {
            let cell = f.cell(register, index);
            match cell_shift(info.width) {
                0 => f.b.ins().istore8(trusted(), v, cell, 0),
                1 => f.b.ins().istore16(trusted(), v, cell, 0),
                2 => f.b.ins().istore32(trusted(), v, cell, 0),
                _ => f.b.ins().store(trusted(), v, cell, 0),
            };
        });
    }

    pub fn count(&mut self, counter: u16, index: Slot) {
        let counter = usize::from(counter);
        let index = self.get(index);
        self.if_inside(index, self.p.objects.counters[counter].size, |f| {
            let cells = f.array(f.p.objects.registers.len() + counter);
            let offset = f.b.ins().imul_imm(index, size_of::<CounterData>() as i64);
            let cell = f.b.ins().iadd(cells, offset);
            let length = f.machine_word(std::mem::offset_of!(Machine, frame_length));
            let one_packet = f.number(1);
            for (field, increment) in [
                (std::mem::offset_of!(CounterData, packets), one_packet),
                (std::mem::offset_of!(CounterData, bytes), length),
            ] {
                let v = f.b.ins().load(I64, trusted(), cell, field as i32);
                let v = f.b.ins().iadd(v, increment);
                f.b.ins().store(trusted(), v, cell, field as i32);
            }
        });
    }

    /// Emits `d = base + hash % max`. A maximum of 0 is treated as 1.
    pub fn hash(&mut self, calculation: u16, d: Slot, base: Slot, max: Slot, ext: u32) {
        let c = &self.p.objects.calculations[usize::from(calculation)];
        let Some(hash) = self.hash_of(c) else { return self.call_rust("extension", ext) };
        let rest = match self.constant(max) {
            Some(max) if max.max(1).is_power_of_two() => self.b.ins().band_imm(hash, max.max(1) as i64 - 1),
            Some(max) => self.b.ins().urem_imm(hash, max as i64),
            None => {
                let (max, least) = (self.get(max), self.number(1));
                let max = self.b.ins().umax(max, least);
                self.b.ins().urem(hash, max)
            }
        };
        let base = self.get(base);
        let v = self.b.ins().iadd(base, rest);
        self.set(d, v);
    }

    /// Emits the computation of a hash, and returns its value. Returns `None` if machine code cannot compute the hash.
    pub fn hash_of(&mut self, c: &Calculation) -> Option<Value> {
        let Steps::Words(algorithm, words) = c.steps() else { return None };
        let number = HASHES.iter().position(|&h| h == algorithm)?;
        let length: usize = words.iter().map(|w| usize::from(w.bytes)).sum();
        Some(if algorithm == Hash::Crc32 && length <= 16 {
            let (high, low) = self.big_number(words);
            let of_zeros = Hash::Crc32.of(&vec![0; length]);
            let v = self.call("crc32_short", &[high, low])[0];
            self.b.ins().bxor_imm(v, of_zeros as i64)
        } else {
            self.hash_bytes(number, words, length)
        })
    }

    /// Combines up to 16 bytes to a 128-bit number, which is returned as two words: high and low.
    fn big_number(&mut self, words: &[Word]) -> (Value, Value) {
        let (mut high, mut low) = (self.number(0), self.number(0));
        let mut bytes = 0;
        for word in words {
            let v = self.word(0, word);
            let shift = 8 * i64::from(word.bytes);
            if shift == 64 {
                (high, low) = (low, v);
            } else if bytes == 0 {
                low = v;
            } else {
                let carried = self.b.ins().ushr_imm(low, 64 - shift);
                let before = self.b.ins().ishl_imm(high, shift);
                high = self.b.ins().bor(before, carried);
                let before = self.b.ins().ishl_imm(low, shift);
                low = self.b.ins().bor(before, v);
            }
            bytes += word.bytes;
        }
        (high, low)
    }

    fn hash_bytes(&mut self, number: usize, words: &[Word], length: usize) -> Value {
        let row = StackSlotData::new(StackSlotKind::ExplicitSlot, length as u32 + 8, 3);
        let row = self.b.create_sized_stack_slot(row);
        let bytes = self.b.ins().stack_addr(I64, row, 0);
        let mut offset = 0;
        for word in words {
            let v = self.word(0, word);
            self.store(bytes, offset, word, v);
            offset += i32::from(word.bytes);
        }
        let (number, length) = (self.number(number as u64), self.number(length as u64));
        self.call("hash", &[number, bytes, length])[0]
    }
}
