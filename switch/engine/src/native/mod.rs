//! Compiles a program's instructions to machine code, once, when an engine starts.
//!
//! The optimized instructions ([`crate::code`]) of the parser, of ingress and of egress become one function each, and so do the
//! checksums to verify and the deparser with the checksums to update; one more function leads a packet from one to the next
//! ([`whole`]). [Cranelift](https://cranelift.dev) makes the machine code. Parameters, metadata and temporaries that no other
//! function expects anything in ([`reach`]) live in processor registers; everything else stays where the interpreter has it, but
//! for headers, which are kept as they came in as far as nobody else reads them ([`raw`]). Arithmetic, registers, counters,
//! parsing, deparsing and the usual lookups are done in place ([`ops`], [`state`], [`packet`], [`lookup`]); other lookups, meters
//! and whatever is rare call Rust ([`abi`]), which is what the interpreter runs.
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
mod raw;
mod reach;
mod state;
mod whole;

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
use self::parts::{PARTS, name};
use self::raw::Raw;
use self::reach::{For, Place, Reach};
use self::whole::Way;
use crate::code::{Op, Pc};
use crate::layout::{Slot, Slots};
use crate::machine::{Machine, Stop};
use crate::machine_code::{Entry, Fresh, MachineCode};
use crate::phv::Head;
use crate::program::Program;

pub use self::parts::Part;

/// More instructions than this are interpreted: compiling them would take seconds.
const MOST: usize = 50_000;

/// How far a packet came on its way.
pub enum Progress {
    /// The parser ended it.
    Parser(Stop),
    /// Ingress ended like this, and what follows it is left to do.
    Ingress(Result<(), Stop>),
    /// Egress ended like this, and what follows it is left to do, for a packet that leaves by `port`; `parsed`: bytes of headers it had.
    Egress { port: u32, parsed: usize, ended: Result<(), Stop> },
    /// The headers are written.
    Deparsed { port: u32, parsed: usize },
}

impl Program {
    /// Its machine code, made when the first engine asks for it; why there is none, otherwise.
    #[inline]
    pub(crate) fn native(&self) -> Result<&MachineCode, &str> {
        self.native.get_or_init(|| MachineCode::new(self)).as_ref().map_err(String::as_str)
    }
}

impl MachineCode {
    /// Why not, otherwise.
    pub fn new(p: &Program) -> Result<MachineCode, String> {
        if p.code.ops.len() > MOST {
            return Err(format!("the program has {} instructions; up to {MOST} are compiled", p.code.ops.len()));
        }
        let mut module = module()?;
        let compiled = Self::compile(p, &mut module);
        let compiled = compiled.and_then(|(ids, whole, fresh, reads_backlog)| {
            module.finalize_definitions().map_err(|e| e.to_string())?;
            let entry = |id: FuncId| {
                let code = module.get_finalized_function(id);
                // SAFETY: the function was compiled with this very signature
                unsafe { std::mem::transmute::<*const u8, Entry>(code) }
            };
            let fresh = fresh.map(|id| {
                let code = module.get_finalized_function(id);
                // SAFETY: as above
                unsafe { std::mem::transmute::<*const u8, Fresh>(code) }
            });
            Ok((ids.map(entry), entry(whole), fresh, reads_backlog))
        });
        match compiled {
            Ok((entries, whole, fresh, reads_backlog)) => {
                let has = PARTS.map(|part| has(p, part));
                Ok(MachineCode { entries, whole, has, reads_backlog, fresh, module: Some(module) })
            }
            Err(e) => {
                // SAFETY: nothing of it was handed out
                unsafe { module.free_memory() };
                Err(e)
            }
        }
    }

    /// The parts, the whole way, the start values, and whether somebody reads what waits at a port.
    fn compile(p: &Program, module: &mut JITModule) -> Result<([FuncId; 5], FuncId, Option<FuncId>, bool), String> {
        let leaders = reach::leaders(&p.code);
        let reaches = PARTS.map(|part| Reach::new(p, &leaders, starts(p, part)));
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
        let (ids, whole) = declare(module)?;
        let mut read = outside.clone();
        for (part, reach) in PARTS.into_iter().zip(&reaches) {
            let own = |slot: &&Slot| {
                // what no other part uses, or what no part expects anything in
                (users[slot] == 1 || !exposed(**slot))
                    && p.world.private.has(**slot)
                    && !outside.contains(slot)
                    && !constants.contains_key(slot)
            };
            let own: HashSet<Slot> = reach.inside.iter().filter(own).copied().collect();
            let loaded = define(p, module, &ids, part, reach, &own, &leaders, &widths, &raw)?;
            read.extend(loaded.into_iter().filter(|&slot| exposed(slot)));
        }
        let needed = |slot: &Slot| (!p.world.private.has(*slot) || read.contains(slot)) && !raw.unused(*slot);
        let needed: Vec<Slot> = (0..p.phv.fresh.len() as Slot).filter(needed).collect();
        let fresh = fresh::define(module, &needed, &p.phv.fresh)?;
        let mut touched: HashSet<Slot> =
            reaches.iter().flat_map(|r| r.inside.iter().chain(&r.outside)).copied().collect();
        touched.extend(p.objects.kept());
        touched.extend(p.world.calculations.iter().flatten());
        touched.extend(p.code.conditions.iter().map(|c| c.1));
        let st = &p.standard;
        let backlog = [st.enq_qdepth, st.deq_qdepth, st.deq_timedelta].iter().any(|cell| touched.contains(&cell.slot));
        let way = Way {
            fresh: fresh.is_some().then_some(&needed),
            read: &touched,
            verify: has(p, Part::Verify),
            egress: has(p, Part::Egress),
            backlog,
        };
        let constants = p.world.constants.clone();
        let plan = Plan { p, leaders, constants, widths, raw: &raw, exits: false, calls: HashMap::new() };
        build(module, &ids, whole, 5, plan, &Reach::default(), &HashSet::new(), |fun| {
            fun.whole(&way);
            HashSet::new()
        })?;
        Ok((ids, whole, fresh, backlog))
    }

    /// Whether somebody reads what waits at a port.
    #[inline]
    pub fn reads_backlog(&self) -> bool {
        self.reads_backlog
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
        let (result, frame) = self.enter(self.entries[part as usize], p, m, s, head, data, 0);
        match part {
            Part::Verify => Ok(result),
            Part::Deparser => outcome(result, frame.error).map(|()| frame.head_length as i64),
            _ => outcome(result, frame.error).map(|()| DONE),
        }
    }

    /// Leads a packet that came in by `port` from its start values to its headers, or as far as is usual.
    #[inline]
    pub fn whole(
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
        let (result, frame) = self.enter(self.whole, p, m, s, head, data, port);
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

    /// What machine code returns, and leaves in its frame.
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
        // SAFETY: the code was compiled from this program, whose engine this is (see `Pass`), and the frame is as `abi` demands
        let result = unsafe { entry((&raw mut frame).cast()) };
        (result, frame)
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
        Part::Deparser => {
            let primitives = p.code.deparser.map(|pc| Place::Code(For::Deparser, pc));
            conditions(&p.update).into_iter().chain(primitives).collect()
        }
    }
}

/// The parts' functions, and that of the whole way.
fn declare(module: &mut JITModule) -> Result<([FuncId; 5], FuncId), String> {
    let signature = signature(module, 1, 1);
    let mut declare = || module.declare_anonymous_function(&signature).map_err(|e| e.to_string());
    let ids = PARTS.iter().map(|_| declare()).collect::<Result<Vec<FuncId>, String>>()?;
    Ok((ids.try_into().map_err(|_| "a function is missing".to_string())?, declare()?))
}

#[expect(clippy::too_many_arguments)]
/// Makes one part's function; returns the slots that it loads from memory.
fn define(
    p: &Program,
    module: &mut JITModule,
    ids: &[FuncId; 5],
    part: Part,
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
    build(module, ids, ids[part as usize], part as u32, plan, reach, own, |fun| match part {
        Part::Parser | Part::Ingress | Part::Egress => fun.main(part == Part::Parser, reach),
        Part::Verify => fun.verify(reach),
        Part::Deparser => fun.deparser(reach),
    })
}

/// Makes a function out of what `emit` writes; returns the slots that it loads from memory.
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
    for part in PARTS {
        let call = module.declare_func_in_func(ids[part as usize], &mut context.func);
        // anywhere in memory: the code of large programs is not next to each other
        context.func.dfg.ext_funcs[call].colocated = false;
        plan.calls.insert(name(part), call);
    }
    let mut buffers = FunctionBuilderContext::new();
    let builder = FunctionBuilder::new(&mut context.func, &mut buffers);
    let loaded = emit(Fun::new(builder, &plan, reach, own));
    module.define_function(id, &mut context).map_err(|e| format!("function {number}: {e:?}"))?;
    module.clear_context(&mut context);
    Ok(loaded)
}
