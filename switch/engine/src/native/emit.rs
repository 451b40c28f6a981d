//! Builds one function of machine code: its slots, values, blocks and calls.

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

/// For each slot, a value that is known to be equal to the slot's content in memory.
pub type Known = HashMap<Slot, Value>;

/// Data that all functions of a program share while they are built.
pub struct Plan<'a> {
    pub p: &'a Program,
    pub leaders: std::collections::BTreeSet<Pc>,
    /// Slots whose value never changes, with these values.
    pub constants: HashMap<Slot, u64>,
    /// For each slot, the maximum number of bits of its value.
    pub widths: Vec<u8>,
    pub raw: &'a Raw,
    /// Whether any action calls `exit`.
    pub exits: bool,
    /// The functions that machine code may call, by name.
    pub calls: HashMap<&'static str, FuncRef>,
}

/// A function of machine code under construction.
pub struct Fun<'a, 'b> {
    pub b: FunctionBuilder<'b>,
    pub plan: &'a Plan<'a>,
    pub p: &'a Program,
    pub frame: Value,
    pub slots: Value,
    pub machine: Value,
    /// Slots that are stored in processor registers, because no code outside of this function needs their values.
    pub own: HashMap<Slot, Variable>,
    pub known: Known,
    /// The slots that this function loads from memory.
    loaded: HashSet<Slot>,
    /// The maximum number of bits of values that were loaded or cut.
    bits: HashMap<Value, u32>,
    /// The known values at the beginning of each place that can be reached from only one place.
    entry: HashMap<Place, Known>,
    pub blocks: HashMap<Place, Block>,
    ways: HashMap<Place, u32>,
    /// The number of bytes that the parser has consumed; `None` outside of the parser.
    pub position: Option<Variable>,
    /// A variable of the machine code, which is nonzero if `exit` was called.
    pub exit: Variable,
    /// Variables of the machine code: whether the last lookup found an entry (`hit`), and the address of the action's
    /// parameters (`params`).
    pub hit: Variable,
    pub params: Variable,
    /// The blocks that follow embedded code, which is the code of a checksum's condition or of the deparser's
    /// primitives.
    after: HashMap<For, Block>,
    end_blocks: HashMap<i64, Block>,
    /// Backward jumps that still need a fuel check: code that counts the jump and ends the run after too many jumps
    /// ([`Machine::fuel`]). Each element contains the block of the check and the block to which the jump leads.
    pub fuel_checks: Vec<(Block, Block)>,
}

/// Returns the flags for accesses to memory that is always mapped and aligned.
pub fn trusted() -> MemFlags {
    MemFlags::trusted()
}

impl<'a, 'b> Fun<'a, 'b> {
    pub fn new(mut b: FunctionBuilder<'b>, plan: &'a Plan<'a>, reach: &Reach, own: &HashSet<Slot>) -> Fun<'a, 'b> {
        let first = b.create_block();
        b.append_block_params_for_function_params(first);
        b.switch_to_block(first);
        let frame = b.block_params(first)[0];
        let slots = b.ins().load(I64, trusted(), frame, std::mem::offset_of!(Frame, slots) as i32);
        let machine = b.ins().load(I64, trusted(), frame, std::mem::offset_of!(Frame, machine) as i32);
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
            end_blocks: HashMap::new(),
            fuel_checks: Vec::new(),
        }
    }

    /// Emits the code of all places, and then the fuel checks of backward jumps.
    pub fn places(&mut self, reach: &Reach) {
        for &place in &reach.order {
            self.b.switch_to_block(self.blocks[&place]);
            self.known = self.entry.remove(&place).unwrap_or_default();
            match place {
                Place::Code(on_behalf, pc) => self.code(on_behalf, pc),
                Place::Apply(table) => self.apply(table),
            }
        }
        for (fuel_check, to) in std::mem::take(&mut self.fuel_checks) {
            self.b.switch_to_block(fuel_check);
            self.use_fuel();
            self.jump(to);
        }
    }

    /// Emits the return instructions and completes the function. Returns the slots that the function loads from memory.
    pub fn finish(mut self) -> HashSet<Slot> {
        let mut ends: Vec<(i64, Block)> = self.end_blocks.iter().map(|(&s, &b)| (s, b)).collect();
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

    /// Returns the block whose code ends the function with this status.
    pub fn end(&mut self, status: i64) -> Block {
        if let Some(&block) = self.end_blocks.get(&status) {
            return block;
        }
        let block = self.b.create_block();
        self.end_blocks.insert(status, block);
        block
    }

    /// Returns the block that follows the embedded code of a condition or of the deparser.
    pub fn after(&mut self, on_behalf: For) -> Block {
        if let Some(&block) = self.after.get(&on_behalf) {
            return block;
        }
        let block = self.b.create_block();
        self.after.insert(on_behalf, block);
        block
    }

    /// Emits a jump to embedded code. The following code is emitted into the block after the embedded code.
    pub fn run(&mut self, on_behalf: For, pc: Pc) {
        self.known.clear();
        let start = self.blocks[&Place::Code(on_behalf, pc)];
        self.jump(start);
        let after = self.after(on_behalf);
        self.b.switch_to_block(after);
    }

    /// Returns the block of a place to which the current block jumps. If no other block jumps to this place, the place
    /// starts with the values that are known here.
    pub fn block_of(&mut self, place: Place) -> Block {
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

    /// Emits a jump to `yes` for a nonzero condition. The following code is emitted into a new block.
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

    /// Returns the value of a slot.
    pub fn get(&mut self, slot: Slot) -> Value {
        if let Some(v) = self.constant(slot) {
            return self.number(v);
        }
        if let Some(&v) = self.own.get(&slot) {
            let v = self.b.use_var(v);
            self.bound_by_slot(slot, v);
            return v;
        }
        if let Some(&v) = self.known.get(&slot) {
            return v;
        }
        if let Some(v) = self.unpack(slot) {
            return v;
        }
        self.loaded.insert(slot);
        let v = self.b.ins().load(I64, trusted(), self.slots, i32::from(slot) * 8);
        self.bound_by_slot(slot, v);
        self.known.insert(slot, v);
        v
    }

    /// Records that a value that is loaded from or stored in a slot has at most as many bits as values of this slot can
    /// have.
    pub fn bound_by_slot(&mut self, slot: Slot, v: Value) {
        if let Some(&bits) = self.plan.widths.get(usize::from(slot)) {
            self.has_bits(v, bits.into());
        }
    }

    pub fn set(&mut self, slot: Slot, v: Value) {
        self.bound_by_slot(slot, v);
        if let Some(&own) = self.own.get(&slot) {
            self.b.def_var(own, v);
            return;
        }
        self.b.ins().store(trusted(), v, self.slots, i32::from(slot) * 8);
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

    /// Returns the bitwise AND of a value and a mask. If the mask has no effect, no instruction is emitted.
    pub fn masked(&mut self, v: Value, mask: u64) -> Value {
        if mask64(self.bits(v)) & !mask == 0 {
            return v;
        }
        self.b.ins().band_imm(v, mask as i64)
    }

    /// Returns the low `64 - m` bits of a value.
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

    /// Returns the result of a comparison as a 64-bit value, which is 0 or 1.
    pub fn compare(&mut self, code: IntCC, a: Value, b: Value) -> Value {
        let c = self.b.ins().icmp(code, a, b);
        self.b.ins().uextend(I64, c)
    }

    pub fn not_zero(&mut self, v: Value) -> Value {
        self.b.ins().icmp_imm(IntCC::NotEqual, v, 0)
    }

    pub fn is_zero(&mut self, v: Value) -> Value {
        self.b.ins().icmp_imm(IntCC::Equal, v, 0)
    }

    /// Emits a call of a function of [`super::abi`], and returns the results of the call.
    pub fn call(&mut self, name: &'static str, args: &[Value]) -> Vec<Value> {
        let call = self.b.ins().call(self.plan.calls[name], args);
        self.b.inst_results(call).to_vec()
    }

    /// Emits a call of a function that may read and write slots and the parser's position.
    pub fn call_out(&mut self, name: &'static str, args: &[Value]) -> Vec<Value> {
        self.save_position();
        let all: Vec<Value> = std::iter::once(self.frame).chain(args.iter().copied()).collect();
        let results = self.call(name, &all);
        self.known.clear();
        if let Some(variable) = self.position {
            let v = self.b.ins().load(I64, trusted(), self.machine, std::mem::offset_of!(Machine, position) as i32);
            self.b.def_var(variable, v);
        }
        results
    }

    pub fn save_position(&mut self) {
        if let Some(variable) = self.position {
            let v = self.b.use_var(variable);
            self.b.ins().store(trusted(), v, self.machine, std::mem::offset_of!(Machine, position) as i32);
        }
    }

    /// Loads the field of [`Machine`] at this offset.
    pub fn machine_word(&mut self, offset: usize) -> Value {
        self.b.ins().load(I64, trusted(), self.machine, offset as i32)
    }

    pub fn set_machine_word(&mut self, offset: usize, v: Value) {
        self.b.ins().store(trusted(), v, self.machine, offset as i32);
    }

    pub fn frame_word(&mut self, offset: usize) -> Value {
        self.b.ins().load(I64, trusted(), self.frame, offset as i32)
    }

    pub fn set_frame_word(&mut self, offset: usize, v: Value) {
        self.b.ins().store(trusted(), v, self.frame, offset as i32);
    }

    /// Emits a fuel check: code that decrements [`Machine::fuel`] for a backward jump, or ends the run if it is 0.
    pub fn use_fuel(&mut self) {
        let offset = std::mem::offset_of!(Machine, fuel) as i32;
        let fuel = self.b.ins().uload32(trusted(), self.machine, offset);
        let empty = self.is_zero(fuel);
        let out = self.end(NO_FUEL);
        self.branch_off(empty, out);
        let remaining = self.b.ins().iadd_imm(fuel, -1);
        self.b.ins().istore32(trusted(), remaining, self.machine, offset);
    }
}

/// An access by a 16-bit slot number is always within the array, because the array has 2^16 slots.
const _: () = assert!(size_of::<Slots>() == 8 * (1 << 16));

/// Returns the signature of a function with `takes` parameters and `gives` results, which are 64-bit integers.
pub fn signature(module: &JITModule, takes: usize, gives: usize) -> Signature {
    let mut signature = module.make_signature();
    signature.params = vec![AbiParam::new(I64); takes];
    signature.returns = vec![AbiParam::new(I64); gives];
    signature
}
