//! Compiles a program's instructions to machine code, once, when an engine starts.
//!
//! The optimized instructions ([`crate::code`]) of the parser, of ingress and of egress become one function each, and so do the
//! checksums to verify and the deparser with the checksums to update; [Cranelift](https://cranelift.dev) makes the machine code. Parameters,
//! metadata and temporaries that only one function uses ([`reach`]) live in processor registers; everything else stays where the
//! interpreter has it, so that both can take turns. Arithmetic, registers, counters, parsing and deparsing are done in place ([`ops`],
//! [`state`], [`packet`]); lookups, meters and whatever is rare call Rust ([`abi`]), which is what the interpreter runs.
//!
//! The interpreter ([`crate::machine`]) is the reference. It runs when a trace is wanted, on processors that Cranelift does not
//! know, and for programs beyond [`MOST`]; `tests/native.rs` holds both against each other.

mod abi;
mod emit;
mod flow;
mod fresh;
mod lookup;
mod ops;
mod packet;
mod parts;
mod reach;
mod state;

use std::collections::{BTreeSet, HashMap, HashSet};

use cranelift_codegen::Context;
use cranelift_codegen::ir::types::I64;
use cranelift_codegen::ir::{AbiParam, Function, Signature, UserFuncName};
use cranelift_codegen::settings::{self, Configurable};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{FuncId, Linkage, Module};

use self::abi::{ASSERTION, CALLS, DONE, ENTERED, Frame, PARSER_ERROR};
use self::emit::{Fun, Plan};
use self::parts::{INGRESS, VERIFY};
use self::reach::{For, Place, Reach};
use crate::code::{Op, Pc};
use crate::layout::{Slot, Slots};
use crate::machine::{Machine, Stop};
use crate::phv::Head;
use crate::program::Program;

/// More instructions than this are interpreted: compiling them would take seconds.
const MOST: usize = 50_000;

/// What machine code there is of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    Parser,
    /// Returns whether a checksum was wrong.
    Verify,
    Ingress,
    Egress,
    /// Returns the length of the headers.
    Deparser,
}

const PARTS: [Part; 5] = [Part::Parser, Part::Verify, Part::Ingress, Part::Egress, Part::Deparser];

type Entry = unsafe extern "C" fn(*mut Frame) -> i64;
type Fresh = unsafe extern "C" fn(*mut Slots);

/// A program's machine code.
pub struct Native {
    entries: [Entry; 5],
    /// What there is something to do in.
    has: [bool; 5],
    /// Gives slots their start values; `None`: all of them are to be copied.
    fresh: Option<Fresh>,
    /// Owns the code.
    module: Option<JITModule>,
}

// SAFETY: the module is not touched any more until it is dropped; its code is read-only and holds no state.
unsafe impl Send for Native {}
// SAFETY: as above.
unsafe impl Sync for Native {}

impl Drop for Native {
    fn drop(&mut self) {
        if let Some(module) = self.module.take() {
            // SAFETY: the entries go with it, and nobody runs them: that needs a reference to this
            unsafe { module.free_memory() };
        }
    }
}

impl Native {
    /// Why not, otherwise.
    pub fn new(p: &Program) -> Result<Native, String> {
        if p.code.ops.len() > MOST {
            return Err(format!("the program has {} instructions; up to {MOST} are compiled", p.code.ops.len()));
        }
        let mut module = module()?;
        let compiled = Self::compile(p, &mut module);
        let compiled = compiled.and_then(|(ids, fresh)| {
            module.finalize_definitions().map_err(|e| e.to_string())?;
            let entries = ids.map(|id| {
                let code = module.get_finalized_function(id);
                // SAFETY: the function was compiled with this very signature
                unsafe { std::mem::transmute::<*const u8, Entry>(code) }
            });
            let fresh = fresh.map(|id| {
                let code = module.get_finalized_function(id);
                // SAFETY: as above
                unsafe { std::mem::transmute::<*const u8, Fresh>(code) }
            });
            Ok((entries, fresh))
        });
        match compiled {
            Ok((entries, fresh)) => {
                Ok(Native { entries, has: PARTS.map(|part| has(p, part)), fresh, module: Some(module) })
            }
            Err(e) => {
                // SAFETY: nothing of it was handed out
                unsafe { module.free_memory() };
                Err(e)
            }
        }
    }

    /// The parts, and the start values.
    fn compile(p: &Program, module: &mut JITModule) -> Result<([FuncId; 5], Option<FuncId>), String> {
        let leaders = reach::leaders(&p.code);
        let reaches = PARTS.map(|part| Reach::new(p, &leaders, starts(p, part)));
        let outside: HashSet<Slot> = reaches.iter().flat_map(|r| r.outside.iter().copied()).collect();
        let mut users: HashMap<Slot, usize> = HashMap::new();
        for slot in reaches.iter().flat_map(|r| &r.inside) {
            *users.entry(*slot).or_default() += 1;
        }
        let constants: HashMap<Slot, u64> = p.world.constants.clone();
        let ids = declare(module)?;
        let mut read = outside.clone();
        for (part, reach) in PARTS.into_iter().zip(&reaches) {
            let own = |slot: &&Slot| {
                users[slot] == 1
                    && p.world.private.has(**slot)
                    && !outside.contains(slot)
                    && !constants.contains_key(slot)
            };
            let own: HashSet<Slot> = reach.inside.iter().filter(own).copied().collect();
            read.extend(define(p, module, &ids, part, reach, &own, &leaders)?);
        }
        let needed = |slot: &Slot| !p.world.private.has(*slot) || read.contains(slot);
        let needed: Vec<Slot> = (0..p.phv.fresh.len() as Slot).filter(needed).collect();
        let fresh = fresh::define(module, &needed, &p.phv.fresh)?;
        Ok((ids, fresh))
    }

    /// Whether there is something to do in a part.
    #[inline]
    pub fn has(&self, part: Part) -> bool {
        self.has[part as usize]
    }

    /// Every slot that may be read before it is written gets the value it starts with.
    #[inline]
    pub fn fresh(&self, p: &Program, s: &mut Slots) {
        match self.fresh {
            // SAFETY: it writes slots of the program, which are among these
            Some(fresh) => unsafe { fresh(s) },
            None => p.phv.start(s),
        }
    }

    /// Runs a part. Its result is meaningful for the parts that have one.
    pub fn run(
        &self,
        part: Part,
        p: &Program,
        m: &mut Machine,
        s: &mut Slots,
        head: &mut Head,
        data: &[u8],
    ) -> Result<i64, Stop> {
        let (result, error) = self.enter(part, true, p, m, s, head, data);
        match part {
            Part::Verify | Part::Deparser => Ok(result),
            _ => outcome(result, error).map(|()| DONE),
        }
    }

    /// Runs the parser and, when it ends well, checksums and ingress.
    ///
    /// # Errors
    /// How the parser ended. (How ingress ended is inside.)
    #[inline]
    pub fn front(
        &self,
        p: &Program,
        m: &mut Machine,
        s: &mut Slots,
        head: &mut Head,
        data: &[u8],
    ) -> Result<Result<(), Stop>, Stop> {
        match self.enter(Part::Parser, false, p, m, s, head, data) {
            (ENTERED, _) => Ok(Ok(())),
            (result, error) if result > ENTERED => Ok(outcome(result - ENTERED, error)),
            (result, error) => outcome(result, error).map(Ok),
        }
    }

    /// What a part returns, and the parser's error.
    #[inline]
    #[expect(clippy::too_many_arguments)]
    fn enter(
        &self,
        part: Part,
        alone: bool,
        p: &Program,
        m: &mut Machine,
        s: &mut Slots,
        head: &mut Head,
        data: &[u8],
    ) -> (i64, u64) {
        let mut frame = Frame {
            slots: s,
            arrays: m.arrays.as_ptr(),
            tables: m.tables.as_ptr(),
            misses: m.misses.as_ptr(),
            machine: m,
            data: data.as_ptr(),
            length: data.len(),
            head: head.start(),
            buffer: head,
            error: 0,
            alone: alone.into(),
            program: p,
        };
        // SAFETY: the code was compiled from this program, whose engine this is (see `Pass`), and the frame is as `abi` demands
        let result = unsafe { self.entries[part as usize](&raw mut frame) };
        (result, frame.error)
    }
}

/// How a part ended.
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
    for (name, function) in abi::better() {
        builder.symbol(name, function);
    }
    Ok(JITModule::new(builder))
}

/// Cranelift checks what it is given: in tests.
fn verifier() -> &'static str {
    if cfg!(debug_assertions) { "true" } else { "false" }
}

/// Whether a part does anything.
fn has(p: &Program, part: Part) -> bool {
    match part {
        Part::Egress => !matches!(p.code.ops[p.code.egress as usize], Op::Return),
        Part::Verify => !p.verify.is_empty(),
        _ => true,
    }
}

/// Where a part begins.
fn starts(p: &Program, part: Part) -> Vec<Place> {
    let conditions = |list: &[usize]| -> Vec<Place> {
        let of = |&i: &usize| p.code.conditions[i].0.map(|pc| Place::Code(For::Condition(i as u16), pc));
        list.iter().filter_map(of).collect()
    };
    match part {
        Part::Parser => vec![Place::Code(For::Main, p.code.parser)],
        Part::Ingress => vec![Place::Code(For::Main, p.code.ingress)],
        Part::Egress => vec![Place::Code(For::Main, p.code.egress)],
        Part::Verify => conditions(&p.verify),
        Part::Deparser => conditions(&p.update),
    }
}

/// The parts' functions.
fn declare(module: &mut JITModule) -> Result<[FuncId; 5], String> {
    let signature = signature(module, 1, 1);
    let mut declare = |_: &Part| module.declare_anonymous_function(&signature).map_err(|e| e.to_string());
    let ids = PARTS.iter().map(&mut declare).collect::<Result<Vec<FuncId>, String>>()?;
    ids.try_into().map_err(|_| "a function is missing".to_string())
}

/// Makes one part's function; returns the slots that it loads from memory.
fn define(
    p: &Program,
    module: &mut JITModule,
    ids: &[FuncId; 5],
    part: Part,
    reach: &Reach,
    own: &HashSet<Slot>,
    leaders: &BTreeSet<Pc>,
) -> Result<HashSet<Slot>, String> {
    let error = |e: cranelift_module::ModuleError| format!("{part:?}: {e}");
    let signature = signature(module, 1, 1);
    let mut context = Context::new();
    context.func = Function::with_name_signature(UserFuncName::user(0, part as u32), signature);
    let mut calls = HashMap::new();
    for (name, _, takes, gives) in CALLS {
        let signature = self::signature(module, takes, gives);
        let function = module.declare_function(name, Linkage::Import, &signature).map_err(error)?;
        calls.insert(name, module.declare_func_in_func(function, &mut context.func));
    }
    if part == Part::Parser {
        for (name, part) in [(VERIFY, Part::Verify), (INGRESS, Part::Ingress)] {
            let call = module.declare_func_in_func(ids[part as usize], &mut context.func);
            // anywhere in memory: the code of large programs is not next to each other
            context.func.dfg.ext_funcs[call].colocated = false;
            calls.insert(name, call);
        }
    }
    let exits = p.code.ops.iter().any(|op| matches!(op, Op::Exit));
    let plan = Plan { p, leaders: leaders.clone(), constants: p.world.constants.clone(), exits, calls };
    let mut buffers = FunctionBuilderContext::new();
    let builder = FunctionBuilder::new(&mut context.func, &mut buffers);
    let fun = Fun::new(builder, &plan, reach, own);
    let loaded = match part {
        Part::Parser | Part::Ingress | Part::Egress => fun.main(part == Part::Parser, reach),
        Part::Verify => fun.verify(reach),
        Part::Deparser => fun.deparser(reach),
    };
    module.define_function(ids[part as usize], &mut context).map_err(|e| format!("{part:?}: {e:?}"))?;
    module.clear_context(&mut context);
    Ok(loaded)
}

fn signature(module: &JITModule, takes: usize, gives: usize) -> Signature {
    let mut signature = module.make_signature();
    signature.params = vec![AbiParam::new(I64); takes];
    signature.returns = vec![AbiParam::new(I64); gives];
    signature
}
