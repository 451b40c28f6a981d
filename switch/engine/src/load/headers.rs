//! Loads `header_types`, `headers`, stacks, unions and aliases into the layout of slots.

use std::collections::HashMap;

use super::json::{J, NARROWER, Result};
use super::slots::{MAX_SLOTS, take};
use crate::layout::{FieldRef, FieldType, Header, HeaderType, Layout, Slot, Stack, Union, UnionStack, limbs};
use crate::phv::words;
use crate::program::{FieldInfo, HeaderInfo};

/// The maximum number of slots, for all headers of a program together, that store headers as they were received,
/// without splitting them into fields.
const MAX_RAW_WORDS: usize = 1024;

/// Returns descriptions of the header types for users of the program.
pub fn infos(layout: &Layout) -> Vec<HeaderInfo> {
    let info = |t: &HeaderType| {
        let mut names: Vec<_> = t.by_name.iter().collect();
        names.sort_by_key(|(_, at)| **at);
        let field = |(name, at): (&String, &usize)| FieldInfo { name: name.clone(), width: t.fields[*at].field.width };
        HeaderInfo { name: t.name.clone(), fields: names.into_iter().map(field).collect() }
    };
    layout.types.iter().map(info).collect()
}

pub fn load(root: &J) -> Result<Layout> {
    let mut layout = Layout::default();
    let mut type_by_name = HashMap::new();
    let types = root.list("header_types")?;
    for j in &types {
        let t = header_type(j)?;
        if type_by_name.insert(t.name.clone(), layout.types.len()).is_some() {
            return Err(j.error("the name of this header type is taken"));
        }
        layout.types.push(t);
    }
    let mut by_id = HashMap::new();
    for j in root.list("headers")? {
        let name = j.str("name")?.to_string();
        let header_type = type_of(&j, &type_by_name)?;
        let metadata = j.bool_or("metadata", false)?;
        let (slots, valid) = (layout.types[header_type].slots, layout.types[header_type].valid);
        if layout.types[header_type].fixed_bits % 8 != 0 {
            let bits = layout.types[header_type].fixed_bits;
            return Err(types[header_type].refused(
                format!("header '{name}' is of this type, which has {bits} bits: they are not whole bytes"),
                "add a field that fills the last byte",
            ));
        }
        let base = take(&mut layout, slots, &j)?;
        let index = layout.headers.len();
        if layout.header_by_name.insert(name, index).is_some() || by_id.insert(j.u32("id")?, index).is_some() {
            return Err(j.error("the name or id of this header is taken"));
        }
        layout.headers.push(Header {
            header_type,
            metadata,
            base,
            valid: base + valid,
            union_others: Vec::new(),
            raw: None,
        });
    }
    stacks(root, &mut layout, &type_by_name, &by_id)?;
    unions(root, &mut layout, &type_by_name, &by_id)?;
    for j in root.list("field_aliases")? {
        let (name, target) = (j.at(0)?.as_str()?.to_string(), j.at(1)?.as_pair()?);
        layout.aliases.insert(name, (target.0.to_string(), target.1.to_string()));
    }
    raw_words(&mut layout, root)?;
    layout.fresh = vec![0; layout.used];
    for h in &layout.headers {
        if h.metadata {
            layout.fresh[h.valid as usize] = 1;
        }
    }
    Ok(layout)
}

/// Returns the index of the header type that the JSON of a header or a stack names.
fn type_of(j: &J, types: &HashMap<String, usize>) -> Result<usize> {
    let at = j.get("header_type")?;
    let name = at.as_str()?;
    types.get(name).copied().ok_or_else(|| at.error(format!("there is no header type '{name}'")))
}

/// Reserves slots in which the words of headers are stored as they were received. A header gets no such slots if it has
/// more words than the headers before it have left of `MAX_RAW_WORDS`.
fn raw_words(layout: &mut Layout, root: &J) -> Result<()> {
    let mut remaining = MAX_RAW_WORDS;
    for h in 0..layout.headers.len() {
        let t = &layout.types[layout.headers[h].header_type];
        let fields: Vec<FieldRef> = t.fields.iter().map(|f| f.field).collect();
        let n = words(&fields).map_or(0, |words| words.len());
        if !layout.headers[h].metadata && (1..=remaining).contains(&n) {
            layout.headers[h].raw = Some(take(layout, n, root)?);
            remaining -= n;
        }
    }
    Ok(())
}

#[expect(clippy::too_many_lines, reason = "reads one JSON object, member by member")]
fn header_type(j: &J) -> Result<HeaderType> {
    let mut t = HeaderType {
        name: j.str("name")?.to_string(),
        fields: Vec::new(),
        by_name: HashMap::new(),
        slots: 0,
        valid: 0,
        fixed_bits: 0,
        varbit: None,
        max_bytes: 0,
    };
    let mut varbit_at = None;
    for f in j.list("fields")? {
        let name = f.at(0)?.as_str()?.to_string();
        let width_j = f.at(1)?;
        let signed = f.at(2).map_or(Ok(false), |s| s.as_bool())?;
        if f.at(3).map_or(Ok(false), |s| s.as_bool())? {
            return Err(f.refused(
                format!("field '{name}' saturates, which is not supported"),
                "give it a plain type and compute with |+| and |-|",
            ));
        }
        let (width, varbit) = if width_j.value.as_str() == Some("*") {
            if t.varbit.is_some() {
                return Err(f.error("a header type has at most one variable-length field"));
            }
            t.varbit = Some(t.fields.len());
            varbit_at = Some(f.clone());
            (0, true)
        } else {
            (width_j.as_u32()?, false)
        };
        if !varbit && width == 0 || width > 1 << 16 {
            return Err(f.refused(format!("field '{name}' has {width} bits"), NARROWER));
        }
        t.fixed_bits += width;
        if t.by_name.insert(name.clone(), t.fields.len()).is_some() {
            return Err(f.error(format!("the header type has two fields named '{name}'")));
        }
        t.fields.push(FieldType { field: FieldRef { slot: 0, width, signed, varbit } });
    }
    if let Some(v) = t.varbit {
        let at = varbit_at.unwrap_or_else(|| j.clone());
        if j.opt("length_exp").is_some() {
            return Err(j.refused(
                "'length_exp' (P4_14) is not supported",
                "write the program in P4_16, where extract takes the length",
            ));
        }
        t.max_bytes = j.opt("max_length").map_or(Ok(0), |m| m.as_u32())?;
        let max_bits = t.max_bytes.saturating_mul(8).saturating_sub(t.fixed_bits);
        if max_bits == 0 || max_bits > 1 << 16 {
            let text = format!("'max_length' leaves {max_bits} bits for the variable-length field");
            return Err(at.refused(text, NARROWER));
        }
        t.fields[v].field.width = max_bits;
    }
    let mut slot = 0;
    for f in &mut t.fields {
        f.field.slot = slot as Slot;
        slot += limbs(f.field.width) + usize::from(f.field.varbit);
        if slot >= MAX_SLOTS {
            return Err(j.refused(
                format!("the header type needs more than {MAX_SLOTS} slots of 64 bits"),
                "give it fewer or narrower fields",
            ));
        }
    }
    t.valid = slot as Slot;
    t.slots = slot + 1;
    Ok(t)
}

fn stacks(root: &J, layout: &mut Layout, types: &HashMap<String, usize>, by_id: &HashMap<u32, usize>) -> Result<()> {
    for j in root.list("header_stacks")? {
        let name = j.str("name")?.to_string();
        let header_type = type_of(&j, types)?;
        let headers = ids(&j, "header_ids", by_id)?;
        if headers.iter().any(|&h| layout.headers[h].header_type != header_type) {
            return Err(j.error("the elements are not of the stack's type"));
        }
        let next = take(layout, 1, &j)?;
        layout.stack_by_name.insert(name, layout.stacks.len());
        layout.stacks.push(Stack { header_type, headers, next });
    }
    Ok(())
}

fn unions(root: &J, layout: &mut Layout, types: &HashMap<String, usize>, by_id: &HashMap<u32, usize>) -> Result<()> {
    for j in root.list("header_union_types")? {
        let mut members = Vec::new();
        for m in j.list("headers")? {
            let (name, type_name) = m.as_pair()?;
            let &t = types.get(type_name).ok_or_else(|| m.error(format!("there is no header type '{type_name}'")))?;
            members.push((name.to_string(), t));
        }
        layout.union_types.insert(j.str("name")?.to_string(), members);
    }
    let mut union_by_id = HashMap::new();
    for j in root.list("header_unions")? {
        let name = j.str("name")?.to_string();
        let union_type = j.str("union_type")?.to_string();
        let members = layout
            .union_types
            .get(&union_type)
            .ok_or_else(|| j.error(format!("there is no header union type '{union_type}'")))?;
        let headers = ids(&j, "header_ids", by_id)?;
        if members.len() != headers.len()
            || members.iter().zip(&headers).any(|(m, &h)| layout.headers[h].header_type != m.1)
        {
            return Err(j.error("the headers do not agree with the union's type"));
        }
        for &h in &headers {
            layout.headers[h].union_others = headers.iter().copied().filter(|&o| o != h).collect();
        }
        union_by_id.insert(j.u32("id")?, layout.unions.len());
        layout.union_by_name.insert(name, layout.unions.len());
        layout.unions.push(Union { union_type, headers });
    }
    for j in root.list("header_union_stacks")? {
        let name = j.str("name")?.to_string();
        let union_type = j.str("union_type")?.to_string();
        let unions = ids(&j, "header_union_ids", &union_by_id)?;
        if unions.iter().any(|&u| layout.unions[u].union_type != union_type) {
            return Err(j.error("the unions are not of the stack's type"));
        }
        let next = take(layout, 1, &j)?;
        layout.union_stack_by_name.insert(name, layout.union_stacks.len());
        layout.union_stacks.push(UnionStack { union_type, unions, next });
    }
    Ok(())
}

fn ids(j: &J, key: &str, by_id: &HashMap<u32, usize>) -> Result<Vec<usize>> {
    let list = j.list(key)?;
    if list.is_empty() {
        return Err(j.error(format!("'{key}' is empty")));
    }
    let what = key.trim_end_matches("_ids").replace('_', " ");
    let find = |i: &J| {
        let id = i.as_u32()?;
        by_id.get(&id).copied().ok_or_else(|| i.error(format!("there is no {what} with the id {id}")))
    };
    list.iter().map(find).collect()
}
