//! Compiles a program's instructions to machine code when the first engine for this program is created.
//!
//! The optimized instructions ([`crate::code`]) of parser, ingress and egress become one function each. The checksums
//! to verify become another function, and the deparser with the checksums to update becomes another. The fast path
//! ([`fast_path`]) is a function that calls these functions in order for a packet. [Cranelift](https://cranelift.dev)
//! generates the machine code.
//!
//! Parameters, metadata and temporaries that only one function uses ([`reach`]) are stored in processor registers. All
//! other values are in the slots that the interpreter uses, except headers that only machine code reads, which are
//! stored as they were received ([`raw`]). Machine code itself performs arithmetic, register and counter accesses,
//! parsing, deparsing and the most common lookups ([`ops`], [`state`], [`packet`], [`lookup`]). For other lookups,
//! meters and rare operations, machine code calls the Rust functions that the interpreter also uses ([`abi`]).
//!
//! The interpreter ([`crate::machine`]) is the reference. It is used if the engine's options select it, if a trace is
//! requested, on processors that Cranelift does not support, and for programs with more than [`MAX_INSTRUCTIONS`]
//! instructions. `tests/suite/native.rs` compares machine code with the interpreter.

mod abi;
mod emit;
mod fast_path;
mod flow;
mod fresh;
mod lookup;
mod ops;
mod packet;
mod parts;
mod raw;
mod reach;
mod state;

use std::collections::{BTreeSet, HashMap, HashSet};

use cranelift_codegen::Context;
use cranelift_codegen::ir::types::I64;
use cranelift_codegen::ir::{Function, UserFuncName};
use cranelift_codegen::settings::{self, Configurable};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{FuncId, Linkage, Module};

use self::abi::{ASSERTION, CALLS, DONE, Frame, PARSER_ERROR, PAST_EGRESS, PAST_INGRESS, SENT};
use self::emit::{Fun, Plan, signature};
use self::fast_path::FastPath;
use self::parts::{STAGES, name};
use self::raw::Raw;
use self::reach::{For, Place, Reach};
use crate::code::{Op, Pc};
use crate::layout::{Slot, Slots};
use crate::machine::{Machine, Stop};
use crate::machine_code::{Entry, Fresh, MachineCode};
use crate::phv::Head;
use crate::program::Program;

pub use self::parts::Stage;

/// The maximum number of instructions to compile, because compiling more takes seconds. Larger programs are
/// interpreted.
const MAX_INSTRUCTIONS: usize = 50_000;

/// The point at which the fast path ended for a packet.
pub enum Progress {
    /// The parser ended early, for this reason.
    Parser(Stop),
    /// Ingress ended with this result. The caller must perform the steps that follow ingress.
    Ingress(Result<(), Stop>),
    /// Egress ended with this result. The caller must perform the steps that follow egress. The packet's egress port is
    /// `port`, and the parser consumed `parsed` bytes.
    Egress { port: u32, parsed: usize, ended: Result<(), Stop> },
    /// The deparser has written the headers of a packet with this egress port and this number of parsed bytes.
    Deparsed { port: u32, parsed: usize },
}

impl Program {
    /// Returns the program's machine code, which is compiled when an engine first needs it. The error is the reason why
    /// the program has no machine code.
    #[inline]
    pub(crate) fn native(&self) -> Result<&MachineCode, &str> {
        self.native.get_or_init(|| MachineCode::new(self)).as_ref().map_err(String::as_str)
    }
}

impl MachineCode {
    /// Compiles a program to machine code. The error is the reason why the program cannot be compiled.
    pub fn new(p: &Program) -> Result<MachineCode, String> {
        if p.code.ops.len() > MAX_INSTRUCTIONS {
            return Err(format!(
                "the program has {} instructions; up to {MAX_INSTRUCTIONS} are compiled",
                p.code.ops.len()
            ));
        }
        let mut module = module()?;
        let compiled = Self::compile(p, &mut module);
        let compiled = compiled.and_then(|(ids, fast_path, fresh, reads_backlog)| {
            module.finalize_definitions().map_err(|e| e.to_string())?;
            let entry = |id: FuncId| {
                let code = module.get_finalized_function(id);
                // SAFETY: the function was compiled with the signature of `Entry`.
                unsafe { std::mem::transmute::<*const u8, Entry>(code) }
            };
            let fresh = fresh.map(|id| {
                let code = module.get_finalized_function(id);
                // SAFETY: the function was compiled with the signature of `Fresh`.
                unsafe { std::mem::transmute::<*const u8, Fresh>(code) }
            });
            Ok((ids.map(entry), entry(fast_path), fresh, reads_backlog))
        });
        match compiled {
            Ok((entries, fast_path, fresh, reads_backlog)) => {
                let nonempty = STAGES.map(|stage| is_nonempty(p, stage));
                Ok(MachineCode { entries, fast_path, nonempty, reads_backlog, fresh, module: Some(module) })
            }
            Err(e) => {
                // SAFETY: no pointer to a function of the module exists outside of the module.
                unsafe { module.free_memory() };
                Err(e)
            }
        }
    }

    /// Compiles the stages, the fast path and the function for initial values. Also returns whether the program reads
    /// the backlog of a port.
    fn compile(p: &Program, module: &mut JITModule) -> Result<([FuncId; 5], FuncId, Option<FuncId>, bool), String> {
        let leaders = reach::leaders(&p.code);
        let reaches = STAGES.map(|stage| Reach::new(p, &leaders, starts(p, stage)));
        let outside: HashSet<Slot> = reaches.iter().flat_map(|r| r.outside.iter().copied()).collect();
        let mut users: HashMap<Slot, usize> = HashMap::new();
        for slot in reaches.iter().flat_map(|r| &r.inside) {
            *users.entry(*slot).or_default() += 1;
        }
        let exposed = |slot: Slot| reaches.iter().any(|r| r.exposes(slot));
        let constants: HashMap<Slot, u64> = p.world.constants.clone();
        let mut widths = p.world.bits.clone();
        for (&slot, &value) in &p.world.constants {
            if let Some(width) = widths.get_mut(usize::from(slot)) {
                *width = (64 - value.leading_zeros()) as u8;
            }
        }
        let raw = Raw::new(p);
        for (slot, width) in raw.widths(p) {
            widths[usize::from(slot)] = width;
        }
        let (ids, fast_path_id) = declare(module)?;
        let mut read = outside.clone();
        for (stage, reach) in STAGES.into_iter().zip(&reaches) {
            let own = |slot: &&Slot| {
                // A slot can be in a processor register if no other stage uses it, or if no stage reads it before
                // writing it. Rust must not access the slot, and the slot must not be a constant.
                (users[slot] == 1 || !exposed(**slot))
                    && p.world.private.has(**slot)
                    && !outside.contains(slot)
                    && !constants.contains_key(slot)
            };
            let own: HashSet<Slot> = reach.inside.iter().filter(own).copied().collect();
            let loaded = define(p, module, &ids, stage, reach, &own, &leaders, &widths, &raw)?;
            read.extend(loaded.into_iter().filter(|&slot| exposed(slot)));
        }
        let needed = |slot: &Slot| (!p.world.private.has(*slot) || read.contains(slot)) && !raw.unused(*slot);
        let needed: Vec<Slot> = (0..p.phv.fresh.len() as Slot).filter(needed).collect();
        let fresh = fresh::define(module, &needed, &p.phv.fresh)?;
        let mut touched: HashSet<Slot> =
            reaches.iter().flat_map(|r| r.inside.iter().chain(&r.outside)).copied().collect();
        touched.extend(p.objects.carried_slots());
        touched.extend(p.world.calculations.iter().flatten());
        touched.extend(p.code.conditions.iter().map(|c| c.1));
        let st = &p.standard;
        let backlog = [st.enq_qdepth, st.deq_qdepth, st.deq_timedelta].iter().any(|cell| touched.contains(&cell.slot));
        let fast_path = FastPath {
            fresh: fresh.is_some().then_some(&needed),
            read: &touched,
            verify: is_nonempty(p, Stage::Verify),
            egress: is_nonempty(p, Stage::Egress),
            backlog,
        };
        let constants = p.world.constants.clone();
        let plan = Plan { p, leaders, constants, widths, raw: &raw, exits: false, calls: HashMap::new() };
        build(module, &ids, fast_path_id, 5, plan, &Reach::default(), &HashSet::new(), |fun| {
            fun.fast_path(&fast_path);
            HashSet::new()
        })?;
        Ok((ids, fast_path_id, fresh, backlog))
    }

    /// Returns whether the program reads the backlog of a port: the number of waiting frames, or their waiting time.
    #[inline]
    pub fn reads_backlog(&self) -> bool {
        self.reads_backlog
    }

    /// Returns whether a stage has any code.
    #[inline]
    pub fn is_nonempty(&self, stage: Stage) -> bool {
        self.nonempty[stage as usize]
    }

    /// Sets the initial values of the slots that may be read before they are written.
    #[inline]
    pub fn fresh(&self, p: &Program, s: &mut Slots) {
        match self.fresh {
            // SAFETY: the function writes only slots of the program, which are within the array.
            Some(fresh) => unsafe { fresh(s) },
            None => p.phv.start(s),
        }
    }

    /// Runs a stage. [`Stage::Verify`] returns 0 if no checksum was wrong, and [`Stage::Deparser`] returns the length
    /// of the headers in bytes. For other stages the returned number has no meaning.
    pub fn run(
        &self,
        stage: Stage,
        p: &Program,
        m: &mut Machine,
        s: &mut Slots,
        head: &mut Head,
        data: &[u8],
    ) -> Result<i64, Stop> {
        let (result, frame) = self.enter(self.entries[stage as usize], p, m, s, head, data, 0);
        match stage {
            Stage::Verify => Ok(result),
            Stage::Deparser => outcome(result, frame.error).map(|()| frame.head_length as i64),
            _ => outcome(result, frame.error).map(|()| DONE),
        }
    }

    /// Runs the fast path for a packet that was received at `port`: all steps from the initial values to the deparsed
    /// headers. Returns the point at which the fast path ended, which is earlier for example if the packet is dropped.
    #[inline]
    pub fn fast_path(
        &self,
        p: &Program,
        m: &mut Machine,
        s: &mut Slots,
        head: &mut Head,
        data: &[u8],
        port: u32,
    ) -> Progress {
        if self.fresh.is_none() {
            p.phv.start(s);
        }
        let (result, frame) = self.enter(self.fast_path, p, m, s, head, data, port);
        let (port, parsed) = (frame.port as u32, frame.parsed);
        if result == SENT {
            head.cut(frame.head_length);
            Progress::Deparsed { port, parsed }
        } else if result >= PAST_EGRESS {
            Progress::Egress { port, parsed, ended: outcome(result - PAST_EGRESS, frame.error) }
        } else if result >= PAST_INGRESS {
            Progress::Ingress(outcome(result - PAST_INGRESS, frame.error))
        } else {
            Progress::Parser(outcome(result, frame.error).err().unwrap_or(Stop::Fuel))
        }
    }

    /// Calls machine code. Returns its status, and the frame with its results.
    #[inline(always)]
    #[expect(clippy::too_many_arguments)]
    fn enter(
        &self,
        entry: Entry,
        p: &Program,
        m: &mut Machine,
        s: &mut Slots,
        head: &mut Head,
        data: &[u8],
        port: u32,
    ) -> (i64, Frame) {
        let mut frame = Frame {
            slots: s,
            arrays: m.arrays.as_ptr(),
            tables: m.tables.as_ptr(),
            misses: m.misses.as_ptr(),
            micros: m.now / 1000,
            machine: m,
            data: data.as_ptr(),
            length: data.len(),
            head: head.start(),
            buffer: head,
            error: 0,
            port: port.into(),
            parsed: 0,
            head_length: 0,
            hash: 0,
            hashed: 0,
            program: p,
        };
        // SAFETY: the code was compiled from this program, and `Pass` calls it only with the machine of an engine for
        // this program. The frame fulfils the requirements that are listed in `abi`.
        let result = unsafe { entry((&raw mut frame).cast()) };
        (result, frame)
    }
}

/// Converts the status of a stage to a result.
fn outcome(result: i64, error: u64) -> Result<(), Stop> {
    match result {
        DONE => Ok(()),
        PARSER_ERROR => Err(Stop::Parser(error)),
        ASSERTION => Err(Stop::Assertion),
        _ => Err(Stop::Fuel),
    }
}

fn module() -> Result<JITModule, String> {
    let mut flags = settings::builder();
    for (name, value) in [("opt_level", "speed"), ("is_pic", "false"), ("enable_verifier", verifier())] {
        flags.set(name, value).map_err(|e| e.to_string())?;
    }
    let isa = cranelift_native::builder().map_err(str::to_string)?;
    let isa = isa.finish(settings::Flags::new(flags)).map_err(|e| e.to_string())?;
    if isa.pointer_type() != I64 || !cfg!(unix) {
        return Err("only 64-bit Unix systems".into());
    }
    let mut builder = JITBuilder::with_isa(isa, cranelift_module::default_libcall_names());
    for (name, function, ..) in CALLS {
        builder.symbol(name, function);
    }
    for (name, function) in abi::faster_calls() {
        builder.symbol(name, function);
    }
    Ok(JITModule::new(builder))
}

/// Returns Cranelift's setting for verifying its input, which is enabled only in debug builds and tests.
fn verifier() -> &'static str {
    if cfg!(debug_assertions) { "true" } else { "false" }
}

/// Returns whether a stage of the program has any code.
fn is_nonempty(p: &Program, stage: Stage) -> bool {
    match stage {
        Stage::Egress => !matches!(p.code.ops[p.code.egress as usize], Op::Return),
        Stage::Verify => !p.verify.is_empty(),
        _ => true,
    }
}

/// Returns the places at which the code of a stage begins.
fn starts(p: &Program, stage: Stage) -> Vec<Place> {
    let conditions = |list: &[usize]| -> Vec<Place> {
        let of = |&i: &usize| p.code.conditions[i].0.map(|pc| Place::Code(For::Condition(i as u16), pc));
        list.iter().filter_map(of).collect()
    };
    match stage {
        Stage::Parser => vec![Place::Code(For::Main, p.code.parser)],
        Stage::Ingress => vec![Place::Code(For::Main, p.code.ingress)],
        Stage::Egress => vec![Place::Code(For::Main, p.code.egress)],
        Stage::Verify => conditions(&p.verify),
        Stage::Deparser => {
            let primitives = p.code.deparser.map(|pc| Place::Code(For::Deparser, pc));
            conditions(&p.update).into_iter().chain(primitives).collect()
        }
    }
}

/// Declares the functions of the stages and the function of the fast path.
fn declare(module: &mut JITModule) -> Result<([FuncId; 5], FuncId), String> {
    let signature = signature(module, 1, 1);
    let mut declare = || module.declare_anonymous_function(&signature).map_err(|e| e.to_string());
    let ids = STAGES.iter().map(|_| declare()).collect::<Result<Vec<FuncId>, String>>()?;
    Ok((ids.try_into().map_err(|_| "a function is missing".to_string())?, declare()?))
}

#[expect(clippy::too_many_arguments)]
/// Compiles the function of a stage. Returns the slots that the function loads from memory.
fn define(
    p: &Program,
    module: &mut JITModule,
    ids: &[FuncId; 5],
    stage: Stage,
    reach: &Reach,
    own: &HashSet<Slot>,
    leaders: &BTreeSet<Pc>,
    widths: &[u8],
    raw: &Raw,
) -> Result<HashSet<Slot>, String> {
    let exits = p.code.ops.iter().any(|op| matches!(op, Op::Exit));
    let plan = Plan {
        p,
        leaders: leaders.clone(),
        constants: p.world.constants.clone(),
        widths: widths.to_vec(),
        raw,
        exits,
        calls: HashMap::new(),
    };
    build(module, ids, ids[stage as usize], stage as u32, plan, reach, own, |fun| match stage {
        Stage::Parser | Stage::Ingress | Stage::Egress => fun.main(stage == Stage::Parser, reach),
        Stage::Verify => fun.verify(reach),
        Stage::Deparser => fun.deparser(reach),
    })
}

/// Compiles the function that `emit` builds. Returns the slots that the function loads from memory.
#[expect(clippy::too_many_arguments)]
fn build(
    module: &mut JITModule,
    ids: &[FuncId; 5],
    id: FuncId,
    number: u32,
    mut plan: Plan,
    reach: &Reach,
    own: &HashSet<Slot>,
    emit: impl FnOnce(Fun) -> HashSet<Slot>,
) -> Result<HashSet<Slot>, String> {
    let error = |e: cranelift_module::ModuleError| format!("function {number}: {e}");
    let signature = signature(module, 1, 1);
    let mut context = Context::new();
    context.func = Function::with_name_signature(UserFuncName::user(0, number), signature);
    for (name, _, takes, gives) in CALLS {
        let signature = emit::signature(module, takes, gives);
        let function = module.declare_function(name, Linkage::Import, &signature).map_err(error)?;
        plan.calls.insert(name, module.declare_func_in_func(function, &mut context.func));
    }
    for stage in STAGES {
        let call = module.declare_func_in_func(ids[stage as usize], &mut context.func);
        // Call by the full address: in a large program the called function may be too far away for a relative call.
        context.func.dfg.ext_funcs[call].colocated = false;
        plan.calls.insert(name(stage), call);
    }
    let mut buffers = FunctionBuilderContext::new();
    let builder = FunctionBuilder::new(&mut context.func, &mut buffers);
    let loaded = emit(Fun::new(builder, &plan, reach, own));
    module.define_function(id, &mut context).map_err(|e| format!("function {number}: {e:?}"))?;
    module.clear_context(&mut context);
    Ok(loaded)
}
