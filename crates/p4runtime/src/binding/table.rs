//! Resolves tables and actions of P4Info against the compiled program.

use std::collections::HashMap;

use sluice_engine::{ActionId, MatchKind, TableId};

use super::{BindError, Compiled, Objects};
use crate::proto::p4::config::v1 as p4info;
use crate::translation::{Sdn, Types};
use p4info::match_field::{Match, MatchType};

/// A field of a table's key or of a value set.
#[derive(Debug)]
pub struct KeyBinding {
    /// The field's id in P4Info.
    pub id: u32,
    /// The field's name.
    pub name: String,
    /// The field's match kind in P4Info.
    pub kind: MatchKind,
    /// Whether the field is optional in P4Info and ternary in the program. p4c compiles optional fields to ternary
    /// ones.
    pub as_ternary: bool,
    /// The field's width in the program, in bits.
    pub width: u32,
    /// The form of the field's values for controllers, if the field's type is translated.
    pub sdn: Option<Sdn>,
}

/// A parameter of an action.
#[derive(Debug)]
pub struct ParamBinding {
    /// The parameter's id in P4Info.
    pub id: u32,
    /// The parameter's name.
    pub name: String,
    /// The parameter's width in the program, in bits.
    pub width: u32,
    /// The form of the parameter's values for controllers, if the parameter's type is translated.
    pub sdn: Option<Sdn>,
}

/// An action of P4Info.
#[derive(Debug)]
pub struct ActionBinding {
    /// The action's id in P4Info.
    pub id: u32,
    /// The action's name.
    pub name: String,
    /// The action's parameters, in the order of the compiled program.
    pub params: Vec<ParamBinding>,
}

/// The uses of an action that a table permits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// The action may be used in entries and as the default action.
    Any,
    /// The action may be used in entries only (`@tableonly`).
    EntriesOnly,
    /// The action may be used as the default action only (`@defaultonly`).
    DefaultOnly,
}

/// An action of a table or of an action profile.
#[derive(Debug, Clone, Copy)]
pub struct ActionChoice {
    /// The id of the action in the compiled program. An action has another id in each table or profile that uses it.
    pub engine: ActionId,
    /// The uses of the action that the table permits.
    pub scope: Scope,
}

/// The actions of a table or action profile, indexed by P4Info id and by the compiled program's id.
#[derive(Debug, Default)]
pub struct ActionSet {
    /// The actions by their P4Info ids.
    pub by_id: HashMap<u32, ActionChoice>,
    /// The actions' P4Info ids, by their ids in the compiled program.
    pub by_engine: HashMap<ActionId, u32>,
}

/// A table of P4Info, resolved against the program.
#[derive(Debug)]
pub struct TableBinding {
    /// The table's id in P4Info.
    pub id: u32,
    /// The table's name in P4Info.
    pub name: String,
    /// The table's id in the compiled program.
    pub engine: TableId,
    /// The key's fields, in the order of the compiled program.
    pub key: Vec<KeyBinding>,
    /// The actions that the table may use.
    pub actions: ActionSet,
    /// P4Info id of the table's action profile; `None` for a table without a profile.
    pub profile: Option<u32>,
    /// Whether the program declares the entries constant, so that controllers cannot write them.
    pub is_const: bool,
    /// Whether the program declares the default action constant.
    pub const_default: bool,
    /// Whether entries need a priority, because the key has a ternary, range or optional field.
    pub needs_priority: bool,
    /// Whether entries may have an idle timeout.
    pub idle_timeout: bool,
    /// P4Info id of the direct counter; `None` for a table without one.
    pub counter: Option<u32>,
    /// P4Info id of the direct meter; `None` for a table without one.
    pub meter: Option<u32>,
}

/// Resolves an action's parameters. [`bind_table`] checks that the program has the action, for each table that uses it.
pub fn bind_action(
    action: &p4info::Action,
    preamble: &p4info::Preamble,
    types: &Types,
) -> Result<ActionBinding, BindError> {
    let place = format!("action {}", preamble.name);
    let params = action.params.iter().map(|param| {
        let sdn = types.sdn(param.type_name.as_ref(), &place)?;
        // The width of a translated parameter is only in the program; `fit_params` sets it.
        let width = if sdn.is_some() { 0 } else { width(param.bitwidth, &place, &param.name)? };
        Ok(ParamBinding { id: param.id, name: param.name.clone(), width, sdn })
    });
    Ok(ActionBinding { id: preamble.id, name: preamble.name.clone(), params: params.collect::<Result<_, _>>()? })
}

/// Sets the widths of the parameters with translated types, which P4Info lacks, to the widths in the program. The
/// numbers that the switch assigns to names of these types then fit the widths.
pub fn fit_params(actions: &mut Objects<ActionBinding>, tables: &Objects<TableBinding>, program: &impl Compiled) {
    for (engine, id) in tables.iter().flat_map(|table| &table.actions.by_engine) {
        let params = actions.get_mut(*id).into_iter().flat_map(|action| &mut action.params);
        for (param, compiled) in params.zip(&program.action_info(*engine).params) {
            if let Some(sdn) = &param.sdn {
                param.width = compiled.width;
                sdn.fit(compiled.width);
            }
        }
    }
}

/// Returns the tables of P4Info without those that p4c removed from the program.
///
/// p4c lists tables in P4Info before a later compiler pass removes tables without effect from the JSON. This function
/// omits such tables, with a warning, if P4Info lists every table of the program that has a key. Otherwise P4Info and
/// the program come from different compilations, and the missing tables are errors.
pub fn compiled_tables(info: &p4info::P4Info, program: &impl Compiled) -> Vec<p4info::Table> {
    fn name(table: &p4info::Table) -> &str {
        table.preamble.as_ref().map_or("", |preamble| &preamble.name)
    }
    let mut tables = info.tables.clone();
    let mut keyed = program.tables().filter(|table| !table.keys.is_empty());
    if keyed.all(|table| info.tables.iter().any(|declared| name(declared) == table.name)) {
        tables.retain(|table| {
            let is_compiled = program.table(name(table)).is_some();
            if !is_compiled {
                tracing::warn!(table = name(table), "the compiler left this table out of the program");
            }
            is_compiled
        });
    }
    tables
}

/// Resolves a table with its key and actions, and checks that they equal those in the program.
pub fn bind_table(
    table: &p4info::Table,
    preamble: &p4info::Preamble,
    info: &p4info::P4Info,
    types: &Types,
    program: &impl Compiled,
    actions: &Objects<ActionBinding>,
) -> Result<TableBinding, BindError> {
    let name = preamble.name.clone();
    let (engine, compiled) =
        program.table(&name).ok_or_else(|| BindError::Missing { kind: "table", name: name.clone() })?;
    let place = format!("table {name}");
    // P4Info has no width for a field of type `error`. For a translated type it has the width that controllers use. For
    // both kinds of field the width in the program applies.
    let mut fields = table.match_fields.clone();
    for (field, compiled) in fields.iter_mut().zip(&compiled.keys) {
        if field.bitwidth == 0 || types.sdn(field.type_name.as_ref(), &place)?.is_some() {
            field.bitwidth = compiled.width.try_into().unwrap_or(0);
        }
    }
    let mut key = bind_key(&fields, types, &place)?;
    if key.len() != compiled.keys.len() {
        return Err(different(&place, count(key.len()), count(compiled.keys.len())));
    }
    for (field, compiled) in key.iter_mut().zip(&compiled.keys) {
        field.as_ternary = (field.kind, compiled.kind) == (MatchKind::Optional, MatchKind::Ternary);
        let kind = if field.as_ternary { MatchKind::Ternary } else { field.kind };
        if (kind, field.width) != (compiled.kind, compiled.width) {
            return Err(different(
                &format!("{place}, key field {}", field.name),
                describe(field.kind, field.width),
                describe(compiled.kind, compiled.width),
            ));
        }
    }
    let profile = (table.implementation_id != 0).then_some(table.implementation_id);
    if profile.is_some() != compiled.profile.is_some() {
        let implementation = |has| if has { "an action profile" } else { "no action profile" }.to_owned();
        return Err(different(&place, implementation(profile.is_some()), implementation(compiled.profile.is_some())));
    }
    let is_direct = |id: &u32| table.direct_resource_ids.contains(id);
    let ids_of = |preambles: Vec<Option<&p4info::Preamble>>| {
        preambles.into_iter().flatten().map(|preamble| preamble.id).find(is_direct)
    };
    Ok(TableBinding {
        id: preamble.id,
        engine,
        actions: bind_actions(&table.action_refs, actions, &place, |name| program.action(engine, name))?,
        key,
        profile,
        is_const: table.is_const_table,
        const_default: table.const_default_action_id != 0 || compiled.const_default,
        needs_priority: compiled.needs_priority,
        idle_timeout: compiled.support_timeout,
        counter: ids_of(info.direct_counters.iter().map(|direct| direct.preamble.as_ref()).collect()),
        meter: ids_of(info.direct_meters.iter().map(|direct| direct.preamble.as_ref()).collect()),
        name,
    })
}

/// Returns the actions that `refs` lists, each with the id in the program that `find` returns for its name.
pub fn bind_actions(
    refs: &[p4info::ActionRef],
    actions: &Objects<ActionBinding>,
    place: &str,
    find: impl Fn(&str) -> Option<ActionId>,
) -> Result<ActionSet, BindError> {
    let mut set = ActionSet::default();
    for reference in refs {
        let action = actions.get(reference.id).ok_or_else(|| {
            BindError::Malformed(format!("{place} refers to action {:#x}, which does not exist", reference.id))
        })?;
        let engine = find(&action.name)
            .ok_or_else(|| BindError::Missing { kind: "action", name: format!("{} of {place}", action.name) })?;
        let scope = match reference.scope() {
            p4info::action_ref::Scope::TableAndDefault => Scope::Any,
            p4info::action_ref::Scope::TableOnly => Scope::EntriesOnly,
            p4info::action_ref::Scope::DefaultOnly => Scope::DefaultOnly,
        };
        set.by_id.insert(reference.id, ActionChoice { engine, scope });
        set.by_engine.insert(engine, reference.id);
    }
    Ok(set)
}

/// Resolves the fields of a table's key or of a value set.
pub fn bind_key(fields: &[p4info::MatchField], types: &Types, place: &str) -> Result<Vec<KeyBinding>, BindError> {
    let bind = |field: &p4info::MatchField| {
        let unsupported =
            |kind: &str| BindError::Unsupported(format!("match kind {kind} of {place}, key field {}", field.name));
        let kind = match &field.r#match {
            Some(Match::MatchType(kind)) => match MatchType::try_from(*kind) {
                Ok(MatchType::Exact) => MatchKind::Exact,
                Ok(MatchType::Lpm) => MatchKind::Lpm,
                Ok(MatchType::Ternary) => MatchKind::Ternary,
                Ok(MatchType::Range) => MatchKind::Range,
                Ok(MatchType::Optional) => MatchKind::Optional,
                Ok(MatchType::Unspecified) | Err(_) => return Err(unsupported(&kind.to_string())),
            },
            Some(Match::OtherMatchType(name)) => return Err(unsupported(name)),
            None => return Err(unsupported("(none)")),
        };
        let (sdn, width) = (types.sdn(field.type_name.as_ref(), place)?, width(field.bitwidth, place, &field.name)?);
        if let Some(sdn) = &sdn {
            sdn.fit(width);
            let matches_complete = matches!(kind, MatchKind::Exact | MatchKind::Optional);
            if matches!(sdn, Sdn::Name(_)) && !matches_complete {
                let (field, kind) = (&field.name, format!("{kind:?}").to_lowercase());
                let text = format!("match kind {kind} on a type translated to strings ({place}, key field {field})");
                return Err(BindError::Unsupported(text));
            }
        }
        Ok(KeyBinding { id: field.id, name: field.name.clone(), kind, as_ternary: false, width, sdn })
    };
    fields.iter().map(bind).collect()
}

/// Returns a width of P4Info, a signed number of bits, as an unsigned number. Fails for a width that is not positive.
pub fn width(bits: i32, place: &str, field: &str) -> Result<u32, BindError> {
    u32::try_from(bits)
        .ok()
        .filter(|bits| *bits > 0)
        .ok_or_else(|| BindError::Malformed(format!("{place}, {field}: the width is {bits}")))
}

pub fn different(place: &str, p4info: String, json: String) -> BindError {
    BindError::Different { place: place.to_owned(), p4info, json }
}

fn count(fields: usize) -> String {
    format!("{fields} key fields")
}

fn describe(kind: MatchKind, width: u32) -> String {
    format!("{kind:?} on {width} bits").to_lowercase()
}
