//! Loads tables, action profiles and the nodes of the control flow.

use std::collections::{HashMap, HashSet};

use num_bigint::{BigInt, Sign};

use super::expr::Scope;
use super::json::{J, Result};
use super::objects::calculation;
use crate::bits::to_limbs;
use crate::calc::Calculation;
use crate::error::LoadError;
use crate::layout::{FieldRef, Layout, Slot};
use crate::program::{
    Action, ActionId, ConstEntry, DefaultAction, KeyInfo, MatchKind, MeterId, Next, Node, Objects, Profile, ProfileId,
    ProfileInfo, Table, TableId, TableInfo,
};
use crate::table::key::{KeyLayout, RawField, Source};

/// A node of the control flow. `Condition` and `Call` refer to elements of the JSON's arrays `conditionals` and
/// `action_calls`.
pub enum Flow {
    Table(TableId),
    Condition { pipeline: usize, index: usize },
    Call { pipeline: usize, index: usize },
}

pub struct Control {
    pub tables: Vec<Table>,
    pub table_by_name: HashMap<String, u32>,
    pub profiles: Vec<Profile>,
    pub profile_by_name: HashMap<String, u32>,
    /// The nodes of the control flow. Node `i + 1` has the index `i`, because node 0 is the end of the pipeline.
    pub flow: Vec<Flow>,
    pub node_by_name: Vec<HashMap<String, Node>>,
}

/// Loads all tables. The nodes are numbered first, so that tables can refer to them.
pub fn load(
    root: &J,
    layout: &Layout,
    objects: &mut Objects,
    actions: &[Action],
    action_by_id: &HashMap<u32, ActionId>,
) -> Result<Control> {
    let mut c = Control {
        tables: Vec::new(),
        table_by_name: HashMap::new(),
        profiles: Vec::new(),
        profile_by_name: HashMap::new(),
        flow: Vec::new(),
        node_by_name: Vec::new(),
    };
    let scope = Scope { layout, params: &[] };
    let pipelines = root.list("pipelines")?;
    let mut table_count = 0;
    for (pipeline, p) in pipelines.iter().enumerate() {
        let mut names = HashMap::new();
        let mut add = |j: &J, flow: Flow, c: &mut Control| -> Result<()> {
            c.flow.push(flow);
            match names.insert(j.str("name")?.to_string(), c.flow.len() as Node) {
                None => Ok(()),
                Some(_) => Err(j.error("the name of this node is taken")),
            }
        };
        for j in p.list("tables")? {
            add(&j, Flow::Table(TableId(table_count)), &mut c)?;
            table_count += 1;
        }
        for (index, j) in p.list("conditionals")?.iter().enumerate() {
            add(j, Flow::Condition { pipeline, index }, &mut c)?;
        }
        for (index, j) in p.list("action_calls")?.iter().enumerate() {
            add(j, Flow::Call { pipeline, index }, &mut c)?;
        }
        c.node_by_name.push(names);
    }
    if table_count >= 65_535 {
        return Err(root.refused("more than 65,534 tables are not supported", "declare fewer of them"));
    }
    for p in &pipelines {
        for j in p.list("action_profiles")? {
            profile(&j, &scope, &mut c)?;
        }
    }
    for (pipeline, p) in pipelines.iter().enumerate() {
        for j in p.list("tables")? {
            let id = TableId(c.tables.len() as u32);
            let t = table(&j, id, pipeline, &scope, objects, actions, action_by_id, &mut c)?;
            if c.table_by_name.insert(t.info.name.clone(), id.0).is_some() {
                return Err(j.error("the name of this table is taken"));
            }
            c.tables.push(t);
        }
    }
    share_actions(&mut c, actions);
    Ok(c)
}

/// p4c makes a copy of an action for each table. If several tables share an action profile, a member may run the copy
/// of any of these tables. Therefore each of these tables gets a next node not only for its own copies, but also for
/// those of the other tables.
fn share_actions(c: &mut Control, actions: &[Action]) {
    for p in &c.profiles {
        let all: Vec<ActionId> = p.info.tables.iter().flat_map(|t| c.tables[t.index()].info.actions.clone()).collect();
        for t in &p.info.tables {
            let next = &mut c.tables[t.index()].next;
            for &a in &all {
                let name = &actions[a.index()].info.name;
                let has_node = next.by_action.iter().any(|b| b.0 == a);
                let same = next.by_action.iter().find(|b| actions[b.0.index()].info.name == *name).map(|b| b.1);
                if let (false, Some(node)) = (has_node, same) {
                    next.by_action.push((a, node));
                }
            }
        }
    }
}

fn profile(j: &J, scope: &Scope, c: &mut Control) -> Result<()> {
    let selector = j.opt("selector").map(|s| calculation(&s, "input", scope)).transpose()?;
    let size = j.opt("max_size").map_or(Ok(0), |s| s.as_u64())?;
    add_profile(j, j.str("name")?, size, selector, c)
}

/// In BMv2's older JSON a table can declare its own profile, by `act_prof_name` and a selector in the table's object.
/// This function creates such a profile. Its size is unlimited, because the older JSON contains no size.
fn own_profile<'a>(j: &J<'a>, name: &J<'a>, scope: &Scope, c: &mut Control) -> Result<J<'a>> {
    let selector = j.opt("selector").map(|s| calculation(&s, "input", scope)).transpose()?;
    add_profile(name, name.as_str()?, 0, selector, c)?;
    Ok(name.clone())
}

fn add_profile(j: &J, name: &str, size: u64, selector: Option<Calculation>, c: &mut Control) -> Result<()> {
    let info = ProfileInfo { name: name.into(), size, has_selector: selector.is_some(), tables: Vec::new() };
    if c.profile_by_name.insert(info.name.clone(), c.profiles.len() as u32).is_some() {
        return Err(j.error("the name of this action profile is taken"));
    }
    c.profiles.push(Profile { info, selector });
    Ok(())
}

/// Returns the first action with this name. BMv2 uses the first action if a table of its older JSON has no
/// `action_ids`. Several actions can have the name, because p4c makes a copy of an action for each table.
fn first_named(name: &str, actions: &[Action]) -> Option<ActionId> {
    actions.iter().position(|a| a.info.name == name).map(|at| ActionId(at as u32))
}

/// Returns the error for an id that no action has.
pub fn no_action(j: &J, id: u32) -> LoadError {
    j.error(format!("there is no action with the id {id}"))
}

/// Returns the node with this name in the pipeline. A null value denotes the end of the pipeline, node 0.
pub fn node(j: &J, names: &HashMap<String, Node>) -> Result<Node> {
    if j.is_null() {
        return Ok(0);
    }
    let name = j.as_str()?;
    names
        .get(name)
        .copied()
        .ok_or_else(|| j.error(format!("there is no table, condition or action call '{name}' in this pipeline")))
}

#[allow(clippy::too_many_arguments)]
#[expect(clippy::too_many_lines, reason = "reads one JSON object, member by member")]
fn table(
    j: &J,
    id: TableId,
    pipeline: usize,
    scope: &Scope,
    objects: &mut Objects,
    actions: &[Action],
    action_by_id: &HashMap<u32, ActionId>,
    c: &mut Control,
) -> Result<Table> {
    let name = j.str("name")?.to_string();
    let (keys, sources) = key(j, scope)?;
    let kind = j.str("match_type")?;
    if !["exact", "lpm", "ternary", "range"].contains(&kind) {
        return Err(j.get("match_type")?.unknown(format!("the match type '{kind}' is not supported")));
    }
    let needs_priority = kind == "ternary" || kind == "range";
    let table_type = j.str("type")?;
    let profile = match table_type {
        "simple" => None,
        "indirect" | "indirect_ws" => {
            let at = match j.opt("act_prof_name") {
                Some(own) if j.opt("action_profile").is_none() => own_profile(j, &own, scope, c)?,
                _ => j.get("action_profile")?,
            };
            let p = c.profile_by_name.get(at.as_str()?);
            let &p = p.ok_or_else(|| at.error(format!("there is no action profile {}", at.quoted())))?;
            let profile = &mut c.profiles[p as usize];
            if (table_type == "indirect_ws") != profile.info.has_selector {
                let has = if profile.info.has_selector { "a" } else { "no" };
                return Err(at.error(format!("the table is '{table_type}', and {} has {has} selector", at.quoted())));
            }
            profile.info.tables.push(id);
            Some(ProfileId(p))
        }
        other => return Err(j.get("type")?.unknown(format!("tables of type '{other}' are not supported"))),
    };
    let find_action = |a: &J| -> Result<ActionId> {
        let id = a.as_u32()?;
        let own_action = action_by_id.get(&id).copied().ok_or_else(|| no_action(a, id))?;
        let by_name = j.opt("action_ids").is_none();
        Ok(if by_name {
            first_named(&actions[own_action.index()].info.name, actions).unwrap_or(own_action)
        } else {
            own_action
        })
    };
    let named_action = |a: &J| -> Result<ActionId> {
        first_named(a.as_str()?, actions).ok_or_else(|| a.error(format!("there is no action {}", a.quoted())))
    };
    let ids = match j.opt("action_ids") {
        Some(ids) => ids.items()?.iter().map(&find_action).collect::<Result<Vec<_>>>()?,
        None => j.get("actions")?.items()?.iter().map(&named_action).collect::<Result<Vec<_>>>()?,
    };
    let direct_meter = match j.opt("direct_meters") {
        None => None,
        Some(m) => {
            let meter = objects.meter_by_name.get(m.as_str()?);
            let &meter = meter.ok_or_else(|| m.error(format!("there is no meter {}", m.quoted())))?;
            if objects.meter_targets[meter as usize].is_none() {
                return Err(m.error(format!("meter {} is not direct", m.quoted())));
            }
            objects.meters[meter as usize].table = Some(id);
            Some(MeterId(meter))
        }
    };
    let names = &c.node_by_name[pipeline];
    let next = next(j, names, &ids, actions)?;
    let mut const_default = false;
    let mut default = None;
    if let Some(d) = j.opt("default_entry") {
        let action = find_action(&d.get("action_id")?)?;
        default = Some(DefaultAction { action, params: action_data(&d, &actions[action.index()])? });
        const_default = d.bool_or("action_const", false)? || d.bool_or("action_entry_const", false)?;
    }
    let layout = KeyLayout::new(&keys, &sources);
    let mut entries = Vec::new();
    let mut raw_entries = HashSet::new();
    let const_entries = j.opt("entries").is_some();
    for e in j.list("entries")? {
        if profile.is_some() {
            let text = "a table with an action profile cannot have entries in the program";
            return Err(e.refused(text, "insert them over P4Runtime"));
        }
        let at = e.get("action_entry")?;
        let action = find_action(&at.get("action_id")?)?;
        if !ids.contains(&action) {
            return Err(at.error(format!("the table does not have action '{}'", actions[action.index()].info.name)));
        }
        let call = DefaultAction { action, params: action_data(&at, &actions[action.index()])? };
        let (fields, priority) = const_entry(&e, &keys, needs_priority)?;
        if !raw_entries.insert(layout.raw(&fields, priority)) {
            return Err(e.refused("the table has this entry already", "remove one of the two"));
        }
        entries.push(ConstEntry { fields, priority, call });
    }
    let direct_counter = j.bool_or("with_counters", false)?;
    let inline = keys.is_empty() && const_default && profile.is_none() && !direct_counter && direct_meter.is_none();
    Ok(Table {
        info: TableInfo {
            name,
            keys,
            actions: ids,
            size: j.opt("max_size").map_or(Ok(0), |s| s.as_u64())?,
            const_entries,
            const_default,
            direct_counter,
            direct_meter,
            profile,
            support_timeout: j.bool_or("support_timeout", false)?,
            needs_priority,
        },
        key: layout,
        next,
        default,
        entries,
        inline,
    })
}

fn key(j: &J, scope: &Scope) -> Result<(Vec<KeyInfo>, Vec<Source>)> {
    let (mut keys, mut sources) = (Vec::new(), Vec::new());
    let mut lpm = false;
    for k in j.list("key")? {
        let kind_j = k.get("match_type")?;
        let target = k.get("target")?;
        let (kind, field) = match kind_j.as_str()? {
            "exact" => (MatchKind::Exact, scope.field(&target)?),
            "lpm" if lpm => return Err(k.error("a table has at most one lpm field")),
            "lpm" => (MatchKind::Lpm, scope.field(&target)?),
            "ternary" => (MatchKind::Ternary, scope.field(&target)?),
            "range" => (MatchKind::Range, scope.field(&target)?),
            "valid" => {
                let h = scope.header(&target)?;
                (
                    MatchKind::Exact,
                    FieldRef { slot: scope.layout.headers[h].valid, width: 1, signed: false, varbit: false },
                )
            }
            other => return Err(kind_j.unknown(format!("the match kind '{other}' is not supported"))),
        };
        lpm |= kind == MatchKind::Lpm;
        if field.varbit {
            return Err(target.error("a variable-length field cannot be a key"));
        }
        let mask = match k.opt("mask") {
            Some(m) => Some(to_limbs(&m.as_hex()?, field.width)),
            None => None,
        };
        let name = match k.opt("name") {
            Some(n) => n.as_str()?.to_string(),
            None => target.as_pair().map_or_else(|_| target.value.to_string(), |(h, f)| format!("{h}.{f}")),
        };
        keys.push(KeyInfo { name, kind, width: field.width });
        sources.push(Source { field, valid: validity(scope.layout, field), mask });
    }
    Ok((keys, sources))
}

/// Returns the validity slot of the header that contains a field. Returns `None` if the field belongs to metadata or is
/// itself a validity.
fn validity(layout: &Layout, field: FieldRef) -> Option<Slot> {
    let header = layout.headers.iter().find(|h| (h.base..h.valid).contains(&field.slot));
    header.filter(|h| !h.metadata).map(|h| h.valid)
}

fn next(j: &J, names: &HashMap<String, Node>, ids: &[ActionId], actions: &[Action]) -> Result<Next> {
    let at = j.get("next_tables")?;
    let none = j.opt("base_default_next").map_or(Ok(0), |n| node(&n, names))?;
    if at.value.get("__HIT__").is_some() || at.value.get("__MISS__").is_some() {
        let hit = at.value.get("__HIT__").map_or(Ok(0), |_| node(&at.get("__HIT__")?, names))?;
        let miss = at.value.get("__MISS__").map_or(Ok(0), |_| node(&at.get("__MISS__")?, names))?;
        return Ok(Next { hit_miss: Some((hit, miss)), by_action: Vec::new(), same: None, none: miss });
    }
    let mut by_action = Vec::new();
    for &id in ids {
        let name = &actions[id.index()].info.name;
        let n = at.value.get(name).ok_or_else(|| at.error(format!("'{name}' is missing")))?;
        let n = if n.is_null() { 0 } else { node(&at.get(name)?, names)? };
        by_action.push((id, n));
    }
    let same = by_action.iter().all(|&(_, n)| n == none).then_some(none);
    Ok(Next { hit_miss: None, by_action, same, none })
}

fn action_data(j: &J, action: &Action) -> Result<Vec<u64>> {
    let data = j.list("action_data")?;
    if data.len() != action.params.len() {
        let (name, takes, given) = (&action.info.name, action.params.len(), data.len());
        return Err(j.error(format!("action '{name}' has {takes} parameters, {given} are given")));
    }
    let mut words = Vec::new();
    for (d, p) in data.iter().zip(&action.params) {
        words.extend(to_limbs(&d.as_hex()?, p.width));
    }
    Ok(words)
}

/// The sum of a BMv2 priority, where the smallest takes precedence, and the equivalent P4Runtime priority, where the
/// largest takes precedence. PI (p4lang's P4Runtime library) uses the same sum.
const MAX_PRIORITY: i64 = 0xff_ffff;

fn const_entry(j: &J, keys: &[KeyInfo], needs_priority: bool) -> Result<(Vec<RawField>, i32)> {
    let parts = j.list("match_key")?;
    if parts.len() != keys.len() {
        let text = format!("the table's key has {} fields, {} are given", keys.len(), parts.len());
        return Err(j.error(text));
    }
    let mut fields = Vec::new();
    for (p, k) in parts.iter().zip(keys) {
        let value = |name: &str| -> Result<Vec<u64>> {
            let at = p.get(name)?;
            let n = if let Some(b) = at.value.as_bool() { BigInt::from(u8::from(b)) } else { at.as_hex()? };
            if n.sign() != Sign::Minus && n.bits() > u64::from(k.width) {
                return Err(at.error(format!("the value does not fit {} bits", k.width)));
            }
            Ok(to_limbs(&n, k.width))
        };
        fields.push(match k.kind {
            MatchKind::Exact => RawField::Exact(value("key")?),
            MatchKind::Lpm => {
                let prefix = p.u32("prefix_length")?;
                if prefix > k.width {
                    return Err(p.error(format!("the prefix is longer than the field, which has {} bits", k.width)));
                }
                RawField::Lpm(value("key")?, prefix)
            }
            MatchKind::Ternary | MatchKind::Optional => RawField::Ternary(value("key")?, value("mask")?),
            MatchKind::Range => RawField::Range(value("start")?, value("end")?),
        });
    }
    let priority = if needs_priority {
        let p = j.get("priority")?;
        let p = p.value.as_i64().ok_or_else(|| p.error("a number is expected"))?;
        (MAX_PRIORITY - p).clamp(i32::MIN.into(), i32::MAX.into()) as i32
    } else {
        0
    };
    Ok((fields, priority))
}
