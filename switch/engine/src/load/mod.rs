//! Loads p4c's BMv2 JSON into a [`Program`].

mod control;
mod deparser;
mod expr;
mod headers;
pub mod json;
mod objects;
mod parser;
mod primitive;
pub mod slots;
mod table;

use std::collections::HashMap;
use std::sync::OnceLock;

use json::{J, NARROWER, Result};

use crate::code::{Code, Op};
use crate::codegen::{Gen, Pool};
use crate::dataflow::World;
use crate::layout::{Cell, FieldRef, Layout, limbs};
use crate::optimize::optimize;
use crate::optimize::world::Parts;
use crate::phv::Phv;
use crate::program::{Action, ActionId, ActionInfo, Checksum, CoreErrors, Objects, ParamInfo, Program, Standard};
use expr::Scope;
use primitive::Context;
use slots::take;

/// The newest minor version of the JSON format that this loader reads; the major version is 2.
const MAX_MINOR: u64 = 24;

/// The size in bytes of the stack of the thread that loads a program. It suffices for the deepest nesting of a program,
/// also in debug builds. The loader needs its own thread, because the caller's stack may have only 2 MiB.
const STACK: usize = 32 << 20;

impl Program {
    /// Reads, checks and compiles p4c's BMv2 JSON.
    ///
    /// # Errors
    /// Returns an error for malformed JSON and for anything that the engine does not support. The error states the
    /// place in the JSON.
    pub fn load(json: &[u8]) -> Result<Program> {
        std::thread::scope(|scope| {
            let loader = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, || compile(json));
            let loader = loader.map_err(|e| {
                let text = format!("no thread can be started to load the program in: {e}");
                J::root(&serde_json::Value::Null)
                    .refused(text, "stop other processes, or raise the limit on processes and threads")
            })?;
            loader.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }
}

#[expect(
    clippy::too_many_lines,
    reason = "one step for each section of the program; each step needs the results of those before"
)]
fn compile(bytes: &[u8]) -> Result<Program> {
    let value = json::parse(bytes)?;
    let root = J::root(&value);
    if !value.is_object() {
        return Err(root.error("an object is expected"));
    }
    version(&root)?;
    let mut layout = headers::load(&root)?;
    let drop_port = take(&mut layout, 1, &root)?;
    let (actions, action_by_id) = actions(&root, &mut layout)?;
    let mut objects = Objects::load(&root, &layout)?;
    let control = table::load(&root, &layout, &mut objects, &actions, &action_by_id)?;
    let standard = standard(&root, &layout, drop_port)?;
    let errors = errors(&root)?;
    let checksums = checksums(&root, &layout, &objects)?;
    let order = deparser::order(&root, &layout)?;
    let mut pool = Pool::default();
    let fixed_layout = headers::load(&root)?;
    let mut variants = Vec::new();
    for traced in [false, true] {
        let mut g = Gen::new(&mut layout, &mut pool, traced, root.clone());
        let context = Context { objects: &objects, layout: &fixed_layout, params: &[], drop_port };
        let parser = parser::load(&root, &mut g, &context)?;
        g.code.parser = parser;
        g.free_temps();
        let compiler = control::Compiler {
            root: root.clone(),
            actions_json: root.list("actions")?,
            layout: &fixed_layout,
            objects: &objects,
            actions: &actions,
            control: &control,
            drop_port,
        };
        compiler.pipelines(&mut g)?;
        for (checksum, _) in &checksums {
            g.free_temps();
            let start = g.pc();
            let slot = g.boolean(&checksum.condition, None)?.slot;
            let computed = g.pc() > start;
            g.emit(Op::Return);
            g.code.conditions.push((computed.then_some(start), slot));
        }
        deparser::primitives(&root, &mut g, &context)?;
        if g.too_long {
            return Err(root.refused("the program has more than 2^24 instructions", "make it shorter"));
        }
        variants.push(g.code);
    }
    let traced = variants.pop().unwrap_or_default();
    let mut code: Code = variants.pop().unwrap_or_default();
    let world = World::new(&Parts {
        layout: &fixed_layout,
        used: layout.used,
        pool: &pool,
        tables: &control.tables,
        profiles: &control.profiles,
        actions: &actions,
        objects: &objects,
        standard: &standard,
        checksums: checksums.iter().map(|c| &c.0).collect(),
        code: &code,
    });
    optimize(&mut code, &world);
    Ok(Program {
        headers: headers::infos(&fixed_layout),
        phv: Phv::new(&fixed_layout),
        init: pool.init,
        wide: pool.wide,
        code,
        traced,
        actions,
        tables: control.tables,
        table_by_name: control.table_by_name,
        profiles: control.profiles,
        profile_by_name: control.profile_by_name,
        objects,
        standard,
        errors,
        verify: indices(&checksums, |c| c.verify),
        update: indices(&checksums, |c| c.update),
        checksums: checksums.into_iter().map(|c| c.0).collect(),
        order,
        world,
        native: OnceLock::new(),
    })
}

fn indices(checksums: &[(Checksum, Uses)], f: impl Fn(&Uses) -> bool) -> Vec<usize> {
    (0..checksums.len()).filter(|&i| f(&checksums[i].1)).collect()
}

fn version(root: &J) -> Result<()> {
    let Some(v) = root.opt("__meta__").and_then(|m| m.opt("version")) else { return Ok(()) };
    let (major, minor) = (v.at(0)?.as_u64()?, v.at(1)?.as_u64()?);
    if major != 2 || minor > MAX_MINOR {
        return Err(v.refused(
            format!("the format is {major}.{minor}"),
            "compile the program with a p4c that writes 2.0 to 2.24",
        ));
    }
    Ok(())
}

fn actions(root: &J, layout: &mut Layout) -> Result<(Vec<Action>, HashMap<u32, ActionId>)> {
    let (mut actions, mut by_id) = (Vec::new(), HashMap::new());
    for (json, j) in root.list("actions")?.iter().enumerate() {
        let (mut infos, mut params) = (Vec::new(), Vec::new());
        for p in j.list("runtime_data")? {
            let width = p.u32("bitwidth")?;
            if width == 0 || width > 1 << 16 {
                return Err(p.refused(format!("parameter '{}' has {width} bits", p.str("name")?), NARROWER));
            }
            infos.push(ParamInfo { name: p.str("name")?.into(), width });
            let slot = take(layout, limbs(width), &p)?;
            params.push(FieldRef { slot, width, signed: false, varbit: false });
        }
        if by_id.insert(j.u32("id")?, ActionId(actions.len() as u32)).is_some() {
            return Err(j.error("the id of this action is taken"));
        }
        actions.push(Action { info: ActionInfo { name: j.str("name")?.into(), params: infos }, params, json });
    }
    Ok((actions, by_id))
}

fn standard(root: &J, layout: &Layout, drop_port: u16) -> Result<Standard> {
    let at = root.get("headers")?;
    let optional = |header: &str, field: &str| -> Result<Option<FieldRef>> {
        match layout.target_field(header, field) {
            Some(f) if !f.narrow() || f.signed => {
                Err(at.unknown(format!("{header}.{field} is signed or has more than 64 bits")))
            }
            f => Ok(f),
        }
    };
    let cell = |header: &str, field: &str| optional(header, field).map(Cell::new);
    let required = |field: &str| -> Result<Cell> {
        let f = optional("standard_metadata", field)?;
        let f = f.ok_or_else(|| at.unknown(format!("standard_metadata.{field} is missing")))?;
        Ok(Cell::new(Some(f)))
    };
    Ok(Standard {
        drop_port,
        ingress_port: required("ingress_port")?,
        packet_length: required("packet_length")?,
        instance_type: required("instance_type")?,
        egress_spec: required("egress_spec")?,
        egress_port: required("egress_port")?,
        parser_error: cell("standard_metadata", "parser_error")?,
        checksum_error: cell("standard_metadata", "checksum_error")?,
        ingress_timestamp: cell("intrinsic_metadata", "ingress_global_timestamp")?,
        egress_timestamp: cell("intrinsic_metadata", "egress_global_timestamp")?,
        mcast_grp: optional("intrinsic_metadata", "mcast_grp")?.map(|f| f.slot),
        egress_rid: cell("intrinsic_metadata", "egress_rid")?,
        enq_timestamp: cell("queueing_metadata", "enq_timestamp")?,
        enq_qdepth: cell("queueing_metadata", "enq_qdepth")?,
        deq_timedelta: cell("queueing_metadata", "deq_timedelta")?,
        deq_qdepth: cell("queueing_metadata", "deq_qdepth")?,
    })
}

fn errors(root: &J) -> Result<CoreErrors> {
    let mut by_name = HashMap::new();
    for e in root.list("errors")? {
        by_name.insert(e.at(0)?.as_str()?.to_string(), e.at(1)?.as_u64()?);
    }
    // A core error that the program does not declare gets an unused number, like in BMv2.
    let mut free = (0..).filter({
        let used: Vec<u64> = by_name.values().copied().collect();
        move |n| !used.contains(n)
    });
    let mut core = |name: &str| -> u64 { *by_name.entry(name.to_string()).or_insert_with(|| free.next().unwrap_or(0)) };
    let (no_error, too_short) = (core("NoError"), core("PacketTooShort"));
    core("NoMatch");
    let (stack, header, timeout, argument) =
        (core("StackOutOfBounds"), core("HeaderTooShort"), core("ParserTimeout"), core("ParserInvalidArgument"));
    Ok(CoreErrors {
        no_error,
        packet_too_short: too_short,
        stack_out_of_bounds: stack,
        header_too_short: header,
        parser_timeout: timeout,
        parser_invalid_argument: argument,
        names: by_name.into_iter().map(|(name, code)| (code, name)).collect(),
    })
}

/// The controls that compute a checksum: the control that verifies received checksums (`verify`), and the control that
/// updates them before the deparser (`update`).
struct Uses {
    verify: bool,
    update: bool,
}

fn checksums(root: &J, layout: &Layout, objects: &Objects) -> Result<Vec<(Checksum, Uses)>> {
    let scope = Scope { layout, params: &[] };
    let mut out = Vec::new();
    for j in root.list("checksums")? {
        let kind = j.get("type")?;
        if kind.as_str()? != "generic" {
            return Err(kind.unknown(format!("checksums of type '{}' are not supported", kind.as_str()?)));
        }
        let target = j.get("target")?;
        let field = scope.field(&target)?;
        if !field.narrow() || field.signed {
            let text = "the field of a checksum is signed or has more than 64 bits";
            return Err(target.refused(text, "give it the type bit<64>, or a narrower one"));
        }
        let header = scope.header(&target.at(0)?)?;
        let at = j.get("calculation")?;
        let calculation = objects.calculation_by_name.get(at.as_str()?);
        let &calculation = calculation.ok_or_else(|| at.error(format!("there is no calculation {}", at.quoted())))?;
        let condition = j.opt("if_cond").map_or(Ok(crate::expr::Expr::Bool(true)), |c| scope.condition(&c))?;
        let header = &layout.headers[header];
        let valid = (!header.metadata).then_some(header.valid);
        let uses = Uses { verify: j.bool_or("verify", true)?, update: j.bool_or("update", true)? };
        out.push((
            Checksum { name: j.str("name")?.into(), field, valid, calculation: calculation as usize, condition },
            uses,
        ));
    }
    Ok(out)
}
