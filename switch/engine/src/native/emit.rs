//! One function of machine code in the making: slots, values, blocks, calls.

use std::collections::{HashMap, HashSet};

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::I64;
use cranelift_codegen::ir::{AbiParam, Block, BlockArg, FuncRef, InstBuilder, MemFlags, Signature, Type, Value};
use cranelift_frontend::{FunctionBuilder, Variable};
use cranelift_jit::JITModule;
use cranelift_module::Module;

use super::abi::{DONE, Frame, NO_FUEL};
use super::raw::Raw;
use super::reach::{For, Place, Reach};
use crate::code::Pc;
use crate::layout::{Slot, Slots, mask64};
use crate::machine::Machine;
use crate::program::Program;

/// What is known of slots in memory: the values they hold.
pub type Known = HashMap<Slot, Value>;

/// What all functions of a program share.
pub struct Plan<'a> {
    pub p: &'a Program,
    pub leaders: std::collections::BTreeSet<Pc>,
    /// Slots that never change.
    pub constants: HashMap<Slot, u64>,
    /// Bits that each slot's value can have.
    pub widths: Vec<u8>,
    pub raw: &'a Raw,
    /// Some action calls `exit`.
    pub exits: bool,
    /// Functions that machine code may call.
    pub calls: HashMap<&'static str, FuncRef>,
}

/// A function in the making.
pub struct Fun<'a, 'b> {
    pub b: FunctionBuilder<'b>,
    pub plan: &'a Plan<'a>,
    pub p: &'a Program,
    pub frame: Value,
    pub slots: Value,
    pub machine: Value,
    /// Slots that live in registers: only this function's own machine code uses them.
    pub own: HashMap<Slot, Variable>,
    pub known: Known,
    /// Slots that are loaded from memory.
    loaded: HashSet<Slot>,
    /// Bits that values can have, of values that were loaded or cut.
    bits: HashMap<Value, u32>,
    /// What is known at the beginning of places with one way to them.
    entry: HashMap<Place, Known>,
    pub blocks: HashMap<Place, Block>,
    ways: HashMap<Place, u32>,
    /// The parser's: bytes parsed.
    pub position: Option<Variable>,
    /// `exit` was called.
    pub exit: Variable,
    /// The table's lookup hit; the parameters it found.
    pub hit: Variable,
    pub params: Variable,
    /// Where code goes on that a function has for itself: conditions, the deparser's.
    after: HashMap<For, Block>,
    ended: HashMap<i64, Block>,
    /// Jumps backwards that are still to be written: the block, and where it goes once it has paid.
    pub tolls: Vec<(Block, Block)>,
}

/// Memory that is there and aligned.
pub fn there() -> MemFlags {
    MemFlags::trusted()
}

impl<'a, 'b> Fun<'a, 'b> {
    pub fn new(mut b: FunctionBuilder<'b>, plan: &'a Plan<'a>, reach: &Reach, own: &HashSet<Slot>) -> Fun<'a, 'b> {
        let first = b.create_block();
        b.append_block_params_for_function_params(first);
        b.switch_to_block(first);
        let frame = b.block_params(first)[0];
        let slots = b.ins().load(I64, there(), frame, std::mem::offset_of!(Frame, slots) as i32);
        let machine = b.ins().load(I64, there(), frame, std::mem::offset_of!(Frame, machine) as i32);
        let zero = b.ins().iconst(I64, 0);
        let mut variable = || {
            let v = b.declare_var(I64);
            b.def_var(v, zero);
            v
        };
        let (exit, hit, params) = (variable(), variable(), variable());
        let mut sorted: Vec<Slot> = own.iter().copied().collect();
        sorted.sort_unstable();
        let own = sorted.into_iter().map(|slot| (slot, variable())).collect();
        let blocks = reach.order.iter().map(|&place| (place, b.create_block())).collect();
        Fun {
            p: plan.p,
            b,
            plan,
            frame,
            slots,
            machine,
            own,
            known: Known::new(),
            loaded: HashSet::new(),
            bits: HashMap::new(),
            entry: HashMap::new(),
            blocks,
            ways: reach.ways.clone(),
            position: None,
            exit,
            hit,
            params,
            after: HashMap::new(),
            ended: HashMap::new(),
            tolls: Vec::new(),
        }
    }

    /// All places, then the common ends.
    pub fn places(&mut self, reach: &Reach) {
        for &place in &reach.order {
            self.b.switch_to_block(self.blocks[&place]);
            self.known = self.entry.remove(&place).unwrap_or_default();
            match place {
                Place::Code(on_behalf, pc) => self.code(on_behalf, pc),
                Place::Apply(table) => self.apply(table),
            }
        }
        for (toll, to) in std::mem::take(&mut self.tolls) {
            self.b.switch_to_block(toll);
            self.burn();
            self.jump(to);
        }
    }

    /// Seals and ends the function; returns the slots that it loads from memory.
    pub fn finish(mut self) -> HashSet<Slot> {
        let mut ends: Vec<(i64, Block)> = self.ended.iter().map(|(&s, &b)| (s, b)).collect();
        ends.sort_unstable_by_key(|e| e.0);
        for (status, block) in ends {
            self.b.switch_to_block(block);
            if status != DONE {
                self.b.set_cold_block(block);
            }
            self.save_position();
            let status = self.number(status as u64);
            self.b.ins().return_(&[status]);
        }
        self.b.seal_all_blocks();
        self.b.finalize();
        self.loaded
    }

    /// The block that returns with this status.
    pub fn end(&mut self, status: i64) -> Block {
        if let Some(&block) = self.ended.get(&status) {
            return block;
        }
        let block = self.b.create_block();
        self.ended.insert(status, block);
        block
    }

    /// Where the code goes on that is run on behalf of a condition or the deparser.
    pub fn after(&mut self, on_behalf: For) -> Block {
        if let Some(&block) = self.after.get(&on_behalf) {
            return block;
        }
        let block = self.b.create_block();
        self.after.insert(on_behalf, block);
        block
    }

    /// Runs such code, and goes on behind it.
    pub fn run(&mut self, on_behalf: For, pc: Pc) {
        self.known.clear();
        let start = self.blocks[&Place::Code(on_behalf, pc)];
        self.jump(start);
        let after = self.after(on_behalf);
        self.b.switch_to_block(after);
    }

    /// The block of a place that is about to be jumped to; what is known goes along.
    pub fn to(&mut self, place: Place) -> Block {
        if self.ways[&place] == 1 {
            self.entry.insert(place, self.known.clone());
        }
        self.blocks[&place]
    }

    pub fn jump(&mut self, block: Block) {
        self.b.ins().jump(block, &[]);
    }

    pub fn branch(&mut self, condition: Value, yes: Block, no: Block) {
        let none: &[BlockArg] = &[];
        self.b.ins().brif(condition, yes, none, no, none);
    }

    /// Goes to `yes`, or goes on.
    pub fn branch_off(&mut self, condition: Value, yes: Block) {
        let no = self.b.create_block();
        self.branch(condition, yes, no);
        self.b.switch_to_block(no);
    }

    pub fn number(&mut self, v: u64) -> Value {
        self.b.ins().iconst(I64, v as i64)
    }

    pub fn constant(&self, slot: Slot) -> Option<u64> {
        self.plan.constants.get(&slot).copied()
    }

    /// A slot's value.
    pub fn get(&mut self, slot: Slot) -> Value {
        if let Some(v) = self.constant(slot) {
            return self.number(v);
        }
        if let Some(&v) = self.own.get(&slot) {
            let v = self.b.use_var(v);
            self.came_from(slot, v);
            return v;
        }
        if let Some(&v) = self.known.get(&slot) {
            return v;
        }
        if let Some(v) = self.take_out(slot) {
            return v;
        }
        self.loaded.insert(slot);
        let v = self.b.ins().load(I64, there(), self.slots, i32::from(slot) * 8);
        self.came_from(slot, v);
        self.known.insert(slot, v);
        v
    }

    /// A slot's value has no more bits than the slot can have.
    pub fn came_from(&mut self, slot: Slot, v: Value) {
        if let Some(&bits) = self.plan.widths.get(usize::from(slot)) {
            self.has_bits(v, bits.into());
        }
    }

    pub fn set(&mut self, slot: Slot, v: Value) {
        self.came_from(slot, v);
        if let Some(&own) = self.own.get(&slot) {
            self.b.def_var(own, v);
            return;
        }
        self.b.ins().store(there(), v, self.slots, i32::from(slot) * 8);
        self.known.insert(slot, v);
    }

    pub fn forget(&mut self, slots: &[Slot]) {
        for slot in slots {
            self.known.remove(slot);
        }
    }

    pub fn has_bits(&mut self, v: Value, bits: u32) {
        if bits < self.bits(v) {
            self.bits.insert(v, bits);
        }
    }

    pub fn bits(&self, v: Value) -> u32 {
        self.bits.get(&v).copied().unwrap_or(64)
    }

    /// The bits under a mask.
    pub fn under(&mut self, v: Value, mask: u64) -> Value {
        if mask64(self.bits(v)) & !mask == 0 {
            return v;
        }
        self.b.ins().band_imm(v, mask as i64)
    }

    /// The low `64 - m` bits.
    pub fn cut(&mut self, v: Value, m: u8) -> Value {
        let bits = 64 - u32::from(m);
        if self.bits(v) <= bits {
            return v;
        }
        let v = self.low(v, m);
        self.has_bits(v, bits);
        v
    }

    fn low(&mut self, v: Value, m: u8) -> Value {
        let narrow: Option<Type> = Type::int(64 - u16::from(m)).filter(|t| t.bits() < 64);
        match narrow {
            Some(t) => {
                let low = self.b.ins().ireduce(t, v);
                self.b.ins().uextend(I64, low)
            }
            None if m == 0 => v,
            None => self.b.ins().band_imm(v, (u64::MAX >> m) as i64),
        }
    }

    /// 0 or 1 as 64 bits.
    pub fn truth(&mut self, code: IntCC, a: Value, b: Value) -> Value {
        let c = self.b.ins().icmp(code, a, b);
        self.b.ins().uextend(I64, c)
    }

    pub fn not_zero(&mut self, v: Value) -> Value {
        self.b.ins().icmp_imm(IntCC::NotEqual, v, 0)
    }

    pub fn is_zero(&mut self, v: Value) -> Value {
        self.b.ins().icmp_imm(IntCC::Equal, v, 0)
    }

    /// Calls a function of [`super::abi`].
    pub fn call(&mut self, name: &'static str, args: &[Value]) -> Vec<Value> {
        let call = self.b.ins().call(self.plan.calls[name], args);
        self.b.inst_results(call).to_vec()
    }

    /// Calls a function that may read and write slots and the parser's position.
    pub fn call_out(&mut self, name: &'static str, args: &[Value]) -> Vec<Value> {
        self.save_position();
        let all: Vec<Value> = std::iter::once(self.frame).chain(args.iter().copied()).collect();
        let results = self.call(name, &all);
        self.known.clear();
        if let Some(variable) = self.position {
            let v = self.b.ins().load(I64, there(), self.machine, std::mem::offset_of!(Machine, position) as i32);
            self.b.def_var(variable, v);
        }
        results
    }

    pub fn save_position(&mut self) {
        if let Some(variable) = self.position {
            let v = self.b.use_var(variable);
            self.b.ins().store(there(), v, self.machine, std::mem::offset_of!(Machine, position) as i32);
        }
    }

    /// A word of the machine's.
    pub fn machine_word(&mut self, offset: usize) -> Value {
        self.b.ins().load(I64, there(), self.machine, offset as i32)
    }

    pub fn set_machine_word(&mut self, offset: usize, v: Value) {
        self.b.ins().store(there(), v, self.machine, offset as i32);
    }

    pub fn frame_word(&mut self, offset: usize) -> Value {
        self.b.ins().load(I64, there(), self.frame, offset as i32)
    }

    pub fn set_frame_word(&mut self, offset: usize, v: Value) {
        self.b.ins().store(there(), v, self.frame, offset as i32);
    }

    /// Pays for a jump backwards.
    pub fn burn(&mut self) {
        let offset = std::mem::offset_of!(Machine, fuel) as i32;
        let fuel = self.b.ins().uload32(there(), self.machine, offset);
        let empty = self.is_zero(fuel);
        let out = self.end(NO_FUEL);
        self.branch_off(empty, out);
        let less = self.b.ins().iadd_imm(fuel, -1);
        self.b.ins().istore32(there(), less, self.machine, offset);
    }
}

/// Every slot a 16-bit number can name is there.
const _: () = assert!(size_of::<Slots>() == 8 * (1 << 16));

/// The signature of a function that takes and returns so many integers of 64 bits.
pub fn signature(module: &JITModule, takes: usize, gives: usize) -> Signature {
    let mut signature = module.make_signature();
    signature.params = vec![AbiParam::new(I64); takes];
    signature.returns = vec![AbiParam::new(I64); gives];
    signature
}
