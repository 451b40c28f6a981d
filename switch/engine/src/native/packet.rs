//! Emits machine code that extracts headers from a packet, writes headers to the header buffer, and computes checksums.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I8, I16, I32, I64};
use cranelift_codegen::ir::{InstBuilder, MemFlags, Type, Value};

use super::abi::Frame;
use super::emit::Fun;
use crate::calc::{Group, Steps, Term};
use crate::layout::{FieldRef, Slot};
use crate::machine::Machine;
use crate::phv::Word;

/// Returns the flags for accesses to the packet's bytes, which may be at any address.
fn unaligned() -> MemFlags {
    MemFlags::new().with_notrap()
}

impl Fun<'_, '_> {
    /// Loads the big-endian number in the `n` bytes at `base + at`. The header ends at `base + end`; memory must not be
    /// read beyond this address.
    fn load(&mut self, base: Value, at: usize, n: usize, end: usize) -> Value {
        let word_type: Option<Type> = Type::int(8 * n as u16);
        if let Some(t) = word_type {
            let v = self.b.ins().load(t, unaligned(), base, at as i32);
            let v = if t == I8 { v } else { self.b.ins().bswap(v) };
            return if t == I64 { v } else { self.b.ins().uextend(I64, v) };
        }
        if at + 8 <= end {
            let v = self.b.ins().load(I64, unaligned(), base, at as i32);
            let v = self.b.ins().bswap(v);
            return self.b.ins().ushr_imm(v, 64 - 8 * n as i64);
        }
        if at + n >= 8 {
            let v = self.b.ins().load(I64, unaligned(), base, (at + n) as i32 - 8);
            let v = self.b.ins().bswap(v);
            return self.b.ins().band_imm(v, (u64::MAX >> (64 - 8 * n)) as i64);
        }
        let low = if n > 4 { 4 } else { n - 1 };
        let high = self.load(base, at, n - low, end);
        let low_part = self.load(base, at + n - low, low, end);
        let high = self.b.ins().ishl_imm(high, 8 * low as i64);
        self.b.ins().bor(high, low_part)
    }

    /// Returns the address of the packet's byte at the parser's position `at`. Raises a parser error if fewer than
    /// `bytes` bytes follow.
    fn ahead(&mut self, at: Value, bytes: usize) -> Value {
        let length = self.frame_word(std::mem::offset_of!(Frame, length));
        let rest = self.b.ins().isub(length, at);
        let short = self.b.ins().icmp_imm(IntCC::UnsignedLessThan, rest, bytes as i64);
        let error = self.number(self.p.errors.packet_too_short);
        self.fail_if(short, error);
        let data = self.frame_word(std::mem::offset_of!(Frame, data));
        self.b.ins().iadd(data, at)
    }

    /// Reads `bytes` bytes that begin `offset` bytes after the parser's position. The position does not change.
    pub fn lookahead(&mut self, offset: usize, bytes: usize, d: FieldRef) {
        let at = match self.position {
            Some(position) => self.b.use_var(position),
            None => self.machine_word(std::mem::offset_of!(Machine, position)),
        };
        let end = offset + bytes;
        let base = self.ahead(at, end);
        for i in 0..d.limbs() {
            let take = (bytes - 8 * i).min(8);
            let v = self.load(base, end - 8 * i - take, take, end);
            self.set(d.slot + i as Slot, v);
        }
    }

    /// Emits the extraction of a header of fixed length.
    pub fn extract(&mut self, header: u16) {
        let h = &self.p.phv.headers[usize::from(header)];
        let plan = &self.p.phv.plans[usize::from(h.plan)];
        let (Some(position), Some(words)) = (self.position, plan.words()) else {
            return self.call_rust("extract", header.into());
        };
        let at = self.b.use_var(position);
        let base = self.ahead(at, plan.fixed_bytes);
        let mut offset = 0;
        let raw = self.plan.raw.words(header);
        for (i, word) in words.iter().enumerate() {
            let v = self.load(base, offset, word.bytes.into(), plan.fixed_bytes);
            offset += usize::from(word.bytes);
            if let Some(raw) = raw.get(i).filter(|raw| raw.mask != 0) {
                self.set(raw.slot, v);
            }
            self.split_word(h.base, word, v);
        }
        if let Some(v) = plan.varbit {
            // The header is extracted without its variable-length field, so this field becomes empty.
            let zero = self.number(0);
            for i in 0..=plan.varbit_limbs() {
                self.set(h.base.wrapping_add(v + i as Slot), zero);
            }
        }
        let at = self.b.use_var(position);
        let at = self.b.ins().iadd_imm(at, plan.fixed_bytes as i64);
        self.b.def_var(position, at);
        self.valid(header);
    }

    /// Emits code that splits a word of the packet into the fields of a header.
    fn split_word(&mut self, base: Slot, word: &Word, v: Value) {
        for p in word.fields() {
            if self.is_packed(base.wrapping_add(p.slot)) {
                continue;
            }
            let mut field = if p.shift == 0 { v } else { self.b.ins().ushr_imm(v, i64::from(p.shift)) };
            let top = u32::from(p.shift) + u32::from(64 - p.m) == 8 * u32::from(word.bytes);
            if !top {
                field = self.cut(field, p.m);
            }
            if p.signed {
                let high = self.b.ins().ishl_imm(field, i64::from(p.m));
                field = self.b.ins().sshr_imm(high, i64::from(p.m));
            }
            self.set(base.wrapping_add(p.slot), field);
        }
    }

    fn valid(&mut self, header: u16) {
        let h = &self.p.phv.headers[usize::from(header)];
        let (valid, invalid) = (self.number(1), self.number(0));
        self.set(h.valid, valid);
        for &other in &h.union_others {
            self.set(other, invalid);
        }
    }

    /// Emits P4's `setValid` and `setInvalid`.
    pub fn change_validity(&mut self, header: u16, valid: bool) {
        let h = &self.p.phv.headers[usize::from(header)];
        let plan = &self.p.phv.plans[usize::from(h.plan)];
        let now = self.get(h.valid);
        let (change, on) = (self.b.create_block(), self.b.create_block());
        if valid {
            self.branch(now, on, change)
        } else {
            self.branch(now, change, on)
        }
        self.b.switch_to_block(change);
        let before = self.known.clone();
        let length = self.machine_word(std::mem::offset_of!(Machine, packet_length));
        let mut bytes = self.number(plan.fixed_bytes as u64);
        let length = if valid {
            let zero = self.number(0);
            for slot in h.base..h.valid {
                if !self.is_packed(slot) {
                    self.set(slot, zero);
                }
            }
            for raw in self.plan.raw.words(header).iter().filter(|raw| raw.mask != 0) {
                self.set(raw.slot, zero);
            }
            self.valid(header);
            self.b.ins().iadd(length, bytes)
        } else {
            if let Some(v) = plan.varbit {
                let bits = self.get(h.base + v);
                let varbit_bytes = self.b.ins().ushr_imm(bits, 3);
                bytes = self.b.ins().iadd(bytes, varbit_bytes);
            }
            let zero = self.number(0);
            self.set(h.valid, zero);
            self.b.ins().isub(length, bytes)
        };
        self.set_machine_word(std::mem::offset_of!(Machine, packet_length), length);
        self.jump(on);
        self.b.switch_to_block(on);
        self.known = before;
        let touched = self.p.world.headers[usize::from(header)].clone();
        self.forget(&touched);
        for raw in self.plan.raw.words(header) {
            self.forget(&[raw.slot]);
        }
    }

    /// Emits code that writes the valid headers into the header buffer. Returns the length of these headers.
    pub fn headers(&mut self) -> Value {
        let head = self.frame_word(std::mem::offset_of!(Frame, head));
        let length = self.b.declare_var(I64);
        let zero = self.number(0);
        self.b.def_var(length, zero);
        for &header in &self.p.order {
            let h = &self.p.phv.headers[usize::from(header)];
            let plan = &self.p.phv.plans[usize::from(h.plan)];
            let valid = self.get(h.valid);
            let (write, on) = (self.b.create_block(), self.b.create_block());
            self.branch(valid, write, on);
            let before = self.known.clone();
            self.b.switch_to_block(write);
            let at = self.b.use_var(length);
            match plan.words() {
                Some(words) if plan.varbit.is_none() => {
                    let to = self.b.ins().iadd(head, at);
                    let mut offset = 0;
                    let raw = self.plan.raw.words(header);
                    for (i, word) in words.iter().enumerate() {
                        let v = self.header_word(h.base, word, raw.get(i).copied());
                        self.store(to, offset, word, v);
                        offset += i32::from(word.bytes);
                    }
                    let at = self.b.ins().iadd_imm(at, plan.fixed_bytes as i64);
                    self.b.def_var(length, at);
                }
                _ => {
                    let id = self.number(header.into());
                    let at = self.call("deparse", &[self.frame, id, at])[0];
                    self.b.def_var(length, at);
                }
            }
            self.jump(on);
            self.b.switch_to_block(on);
            self.known = before;
        }
        self.b.use_var(length)
    }

    /// Emits code that combines fields of a header to a word of the packet.
    pub fn word(&mut self, base: Slot, word: &Word) -> Value {
        let mut all: Option<Value> = None;
        for p in word.fields() {
            let v = self.get(base.wrapping_add(p.slot));
            let v = if p.signed { self.cut(v, p.m) } else { v };
            let v = if p.shift == 0 { v } else { self.b.ins().ishl_imm(v, i64::from(p.shift)) };
            all = Some(match all {
                Some(a) => self.b.ins().bor(a, v),
                None => v,
            });
        }
        all.unwrap_or_else(|| self.number(0))
    }

    /// Writes a word at `to + offset`. The store may overwrite up to eight bytes from there: the bytes after the word
    /// are either overwritten by later words, or follow the headers.
    pub fn store(&mut self, to: Value, offset: i32, word: &Word, v: Value) {
        let v = match word.bytes {
            1 => return self.put(I8, v, to, offset),
            2 => {
                let v = self.b.ins().ireduce(I16, v);
                self.b.ins().bswap(v)
            }
            4 => {
                let v = self.b.ins().ireduce(I32, v);
                self.b.ins().bswap(v)
            }
            n => {
                let v = self.b.ins().ishl_imm(v, 64 - 8 * i64::from(n));
                self.b.ins().bswap(v)
            }
        };
        self.b.ins().store(unaligned(), v, to, offset);
    }

    fn put(&mut self, t: Type, v: Value, to: Value, offset: i32) {
        let v = self.b.ins().ireduce(t, v);
        self.b.ins().store(unaligned(), v, to, offset);
    }

    /// Emits the computation of a hash or checksum, and returns its value.
    pub fn calculation(&mut self, calculation: usize) -> Value {
        match self.p.objects.calculations[calculation].steps() {
            Steps::Sum { groups, tail, payload } => {
                let mut sum = self.number(0);
                for group in groups {
                    let group_sum = self.group(group);
                    sum = self.add_ones_complement(sum, group_sum);
                }
                if let Some((f, valid)) = tail {
                    let field_sum = self.tail(f.slot, f.limbs(), valid);
                    sum = self.add_ones_complement(sum, field_sum);
                }
                if payload {
                    let payload_sum = self.call("sum_payload", &[self.frame])[0];
                    sum = self.add_ones_complement(sum, payload_sum);
                }
                self.fold(sum)
            }
            _ => {
                let id = self.number(calculation as u64);
                self.call("calculate", &[self.frame, id])[0]
            }
        }
    }

    fn group(&mut self, group: &Group) -> Value {
        let mut sum = self.number(0);
        let (words, terms) = self.summed(&group.terms);
        for (slot, bits) in words {
            // Add the two 32-bit halves of the word separately, so that the sum of a narrow group cannot overflow 64
            // bits.
            let v = self.get(slot);
            let v = self.masked(v, bits);
            let (high, low) = (self.b.ins().ushr_imm(v, 32), self.b.ins().band_imm(v, 0xffff_ffff));
            for v in [high, low] {
                sum = if group.narrow { self.b.ins().iadd(sum, v) } else { self.add_ones_complement(sum, v) };
            }
        }
        for &Term { slot, m, shift } in &terms {
            let v = self.get(slot);
            let v = self.cut(v, m);
            let v = if shift == 0 { v } else { self.b.ins().rotl_imm(v, i64::from(shift)) };
            sum = if group.narrow { self.b.ins().iadd(sum, v) } else { self.add_ones_complement(sum, v) };
        }
        group.valid.map_or(sum, |valid| self.if_valid(valid, sum))
    }

    /// Emits the sum of a variable-length field. The code calls Rust for the sum only if the field is not empty and its
    /// header is valid; in most packets it is not.
    fn tail(&mut self, slot: Slot, limbs: usize, valid: Option<Slot>) -> Value {
        let sum = self.b.declare_var(I64);
        let zero = self.number(0);
        self.b.def_var(sum, zero);
        let bits = self.get(slot);
        let is_present = valid.map_or(bits, |valid| self.if_valid(valid, bits));
        let (nonempty, on) = (self.b.create_block(), self.b.create_block());
        self.branch(is_present, nonempty, on);
        self.b.switch_to_block(nonempty);
        let (slot, limbs) = (self.number(slot.into()), self.number(limbs as u64));
        let v = self.call("sum_varbit", &[self.frame, slot, limbs])[0];
        self.b.def_var(sum, v);
        self.jump(on);
        self.b.switch_to_block(on);
        self.b.use_var(sum)
    }

    /// Emits a one's complement addition of 64 bits: the carry is added to the sum.
    fn add_ones_complement(&mut self, a: Value, b: Value) -> Value {
        let sum = self.b.ins().iadd(a, b);
        let carry = self.compare(IntCC::UnsignedLessThan, sum, b);
        self.b.ins().iadd(sum, carry)
    }

    /// Emits code that folds the sum to 16 bits, and returns the complement of the folded sum.
    fn fold(&mut self, sum: Value) -> Value {
        let mut sum = sum;
        for (shift, m) in [(32, 32), (16, 48), (16, 48), (16, 48)] {
            let high = self.b.ins().ushr_imm(sum, shift);
            let low = self.cut(sum, m);
            sum = self.b.ins().iadd(high, low);
        }
        let v = self.b.ins().bnot(sum);
        self.cut(v, 48)
    }
}
