//! Compiles parser states to instructions.

use std::collections::HashMap;

use num_bigint::BigInt;

use super::expr::Scope;
use super::json::{J, NARROWER, Result};
use super::primitive::Context;
use crate::bits::to_limbs;
use crate::code::{Case, Ext, KeyPart, Note, Op, Pc, Select, Target};
use crate::codegen::Gen;
use crate::expr::Expr;
use crate::layout::FieldRef;
use crate::layout::limbs;

/// A jump to a parser state whose address is not known yet. The address is filled in when all states are compiled.
enum Fixup {
    Op(usize),
    Case(usize, usize),
    Default(usize),
}

/// Compiles the parser. Returns the address of its first instruction.
pub fn load<'j>(root: &J<'j>, g: &mut Gen<'_, 'j>, context: &Context) -> Result<Pc> {
    let (_, parser) = root.named("parsers", "parser")?;
    let end = g.pc();
    g.emit(Op::Return);
    let mut places = HashMap::new();
    let mut fixups: Vec<(Fixup, J)> = Vec::new();
    let states = parser.list("parse_states")?;
    for s in &states {
        let name = s.str("name")?;
        if places.insert(name.to_string(), g.pc()).is_some() {
            return Err(s.error("the name of this parser state is taken"));
        }
        if g.traced {
            let index = g.code.notes.len() as u32;
            g.code.notes.push(Note::ParserState(name.to_string()));
            g.emit(Op::Note { index });
        }
        for op in s.list("parser_ops")? {
            g.at = op.clone();
            operation(g, context, &op)?;
            g.free_temps();
        }
        g.at = s.clone();
        transitions(g, context, s, end, &mut fixups)?;
    }
    let state = |name: &J| -> Result<Pc> {
        let address = places.get(name.as_str()?).copied();
        address.ok_or_else(|| name.error(format!("there is no parser state {}", name.quoted())))
    };
    for (fixup, name) in fixups {
        let to = state(&name)?;
        match fixup {
            Fixup::Op(at) if (to as usize) <= at => g.code.ops[at] = Op::JumpBack { to },
            Fixup::Op(at) => g.patch(at, to),
            Fixup::Case(select, case) => match &mut g.code.selects[select].cases[case] {
                Case::Value { to: t, .. } | Case::ValueSet { to: t, .. } => *t = to,
            },
            Fixup::Default(select) => g.code.selects[select].default = to,
        }
    }
    for select in &mut g.code.selects {
        select.small = small(select);
    }
    match parser.opt("init_state") {
        None => Ok(end),
        Some(init) => state(&init),
    }
}

fn operation(g: &mut Gen, context: &Context, j: &J) -> Result<()> {
    let scope = Scope { layout: context.layout, params: &[] };
    let op = j.get("op")?;
    let args = j.list("parameters")?;
    let arg = |i: usize| args.get(i).ok_or_else(|| j.error(format!("parameter {i} of {} is missing", op.quoted())));
    match op.as_str()? {
        "extract" => extract(g, context, arg(0)?, None),
        "extract_VL" => extract(g, context, arg(0)?, Some(arg(1)?)),
        "set" => {
            let place = scope.place(arg(0)?)?;
            let source = arg(1)?;
            let mut inner = source.clone();
            while inner.str("type")? == "expression" && inner.get("value")?.opt("op").is_none() {
                inner = inner.get("value")?;
            }
            if inner.str("type")? != "lookahead" {
                return g.assign(&place, &scope.expr(source)?);
            }
            let (offset, width) = lookahead(&inner.get("value")?)?;
            let like = FieldRef { slot: 0, width, signed: false, varbit: false };
            let d = if width <= 64 { FieldRef { slot: g.temp()?, ..like } } else { g.temp_row(like)? };
            g.ext(Ext::Lookahead { offset, width, d });
            g.assign(&place, &Expr::Field(d))
        }
        "verify" => {
            let condition = g.boolean(&scope.condition(arg(0)?)?, None)?.slot;
            let error = match arg(1)?.value.as_u64() {
                Some(code) => g.constant(code)?,
                None => g.value(&scope.expr(arg(1)?)?, None)?.slot,
            };
            g.ext(Ext::Verify { condition, error });
            Ok(())
        }
        "shift" => {
            let bits = g.constant(arg(0)?.as_u64()?.saturating_mul(8))?;
            g.ext(Ext::Advance { bits });
            Ok(())
        }
        "advance" => {
            let bits = g.value(&scope.expr(arg(0)?)?, None)?.slot;
            g.ext(Ext::Advance { bits });
            Ok(())
        }
        "primitive" => context.primitive(g, arg(0)?),
        other => Err(op.unknown(format!("the parser operation '{other}' is not supported"))),
    }
}

fn lookahead(j: &J) -> Result<(u32, u32)> {
    let (offset, width) = (j.at(0)?.as_u32()?, j.at(1)?.as_u32()?);
    if width == 0 || width > 1 << 16 || offset > 1 << 20 {
        return Err(j.refused(format!("the lookahead takes {width} bits after {offset}"), NARROWER));
    }
    Ok((offset, width))
}

fn extract(g: &mut Gen, context: &Context, target: &J, length: Option<&J>) -> Result<()> {
    let layout = context.layout;
    let scope = Scope { layout, params: &[] };
    let value = target.get("value")?;
    let (to, header_type) = match target.str("type")? {
        "regular" => {
            let h = scope.header(&value)?;
            (Target::Header(h as u16), layout.headers[h].header_type)
        }
        "stack" => {
            let s = scope.stack(&value)?;
            (Target::Stack(s as u16), layout.stacks[s].header_type)
        }
        "union_stack" => {
            let (stack, member, header_type) = union_member(&scope, &value)?;
            (Target::UnionStack(stack, member), header_type)
        }
        other => return Err(target.unknown(format!("extraction to '{other}' is not supported"))),
    };
    let varbit = layout.types[header_type].varbit;
    let length = match (varbit, length) {
        (None, None) => None,
        (Some(_), Some(l)) => Some(g.value(&scope.expr(l)?, None)?.slot),
        (Some(_), None) => return Err(target.error("the header has a variable-length field: 'extract_VL' is needed")),
        (None, Some(l)) => return Err(l.error("the header has no variable-length field")),
    };
    if g.traced {
        let index = g.code.notes.len() as u32;
        let name = value.value.as_str().map_or_else(|| value.value.to_string(), String::from);
        g.code.notes.push(Note::Extract(name));
        g.emit(Op::Note { index });
    }
    match (to, length) {
        (Target::Header(header), None) => g.emit(Op::Extract { header }),
        (target, length) => g.ext(Ext::ExtractTo { target, length }),
    }
    Ok(())
}

/// Reads `[stack, member]` or `[stack, member, field]`. Returns the stack, the member, and the member's header type.
fn union_member(scope: &Scope, j: &J) -> Result<(u16, u16, usize)> {
    let stack = scope.union_stack(&j.at(0)?)?;
    let union_type = &scope.layout.union_stacks[stack].union_type;
    let members = &scope.layout.union_types[union_type];
    let name = j.at(1)?.as_str()?;
    let member = members.iter().position(|m| m.0 == name);
    let member = member.ok_or_else(|| j.error(format!("header union type '{union_type}' has no header '{name}'")))?;
    Ok((stack as u16, member as u16, members[member].1))
}

#[expect(clippy::too_many_lines, reason = "reads one JSON object, member by member")]
fn transitions<'j>(
    g: &mut Gen<'_, 'j>,
    context: &Context,
    s: &J<'j>,
    end: Pc,
    fixups: &mut Vec<(Fixup, J<'j>)>,
) -> Result<()> {
    let scope = Scope { layout: context.layout, params: &[] };
    let mut parts = Vec::new();
    for k in s.list("transition_key")? {
        let value = k.get("value")?;
        parts.push(match k.str("type")? {
            "field" => KeyPart::Field(scope.field(&value)?),
            "stack_field" => {
                let (stack, field) = scope.stack_field(&value)?;
                g.ext(Ext::NeedElement { stack: stack as u16 });
                KeyPart::StackLast { stack: stack as u16, field }
            }
            "union_stack_field" => {
                let (stack, member, header_type) = union_member(&scope, &value)?;
                let field = scope.type_field(&value, header_type, value.at(2)?.as_str()?)?;
                KeyPart::UnionStackLast { stack, member, field }
            }
            "lookahead" => {
                let (offset, width) = lookahead(&value)?;
                KeyPart::Lookahead { offset, width }
            }
            other => return Err(k.unknown(format!("'{other}' is not supported in a transition key"))),
        });
    }
    if parts.iter().any(|p| matches!(p, KeyPart::Field(f) if f.varbit)) {
        return Err(s.error("a variable-length field cannot be in a transition key"));
    }
    let mut select = Select { parts, small: None, cases: Vec::new(), default: end };
    let index = g.code.selects.len();
    let mut default = None;
    for t in s.list("transitions")? {
        let next = t.opt("next_state");
        let kind = t.opt("type").map_or(Ok("hexstr"), |k| k.as_str())?;
        let is_default = kind == "default" || t.opt("value").is_some_and(|v| v.value.as_str() == Some("default"));
        if is_default {
            default = Some(next);
            continue;
        }
        if select.parts.is_empty() {
            return Err(t.error("a transition with a value needs a transition key"));
        }
        let case = match kind {
            "hexstr" => {
                let value = padded(&t.get("value")?, &select.parts)?;
                let mask = match t.opt("mask") {
                    Some(m) => padded(&m, &select.parts)?,
                    None => vec![u64::MAX; value.len()],
                };
                Case::Value { value: value.iter().zip(&mask).map(|(v, m)| v & m).collect(), mask, to: end }
            }
            "parse_vset" => {
                let at = t.get("value")?;
                let name = at.as_str()?;
                let sets = &context.objects.value_set_by_name;
                let &set = sets.get(name).ok_or_else(|| at.error(format!("there is no value set '{name}'")))?;
                if let Some(m) = t.opt("mask") {
                    return Err(m.error("a mask on a value set is not supported"));
                }
                let width: u32 = select.parts.iter().map(|p| p.width()).sum();
                let members = context.objects.value_sets[set as usize].width;
                if width != members {
                    let text = format!("the transition key has {width} bits, value set '{name}' has {members}");
                    return Err(at.error(text));
                }
                Case::ValueSet { set: set as u16, to: end }
            }
            other => return Err(t.unknown(format!("transitions of type '{other}' are not supported"))),
        };
        if let Some(name) = next {
            fixups.push((Fixup::Case(index, select.cases.len()), name));
        }
        select.cases.push(case);
    }
    let default = default.flatten();
    if select.cases.is_empty() {
        let at = g.jump();
        match default {
            Some(name) => fixups.push((Fixup::Op(at), name)),
            None => g.patch(at, end),
        }
        return Ok(());
    }
    if let Some(name) = default {
        fixups.push((Fixup::Default(index), name));
    }
    g.code.selects.push(select);
    g.emit(Op::Select { index: index as u32 });
    Ok(())
}

/// Splits the value of a transition into the key's fields. In the value, each field is padded to whole bytes. Returns
/// the words of all fields, in order.
fn padded(j: &J, parts: &[KeyPart]) -> Result<Vec<u64>> {
    let mut n = j.as_hex()?;
    let total: u64 = parts.iter().map(|p| 8 * u64::from(p.width().div_ceil(8))).sum();
    if n < BigInt::ZERO || n.bits() > total {
        return Err(j.error(format!("the value does not fit the transition key's {} bytes", total / 8)));
    }
    let mut row = Vec::new();
    for p in parts.iter().rev() {
        let bits = 8 * p.width().div_ceil(8);
        let words = to_limbs(&n, bits);
        debug_assert_eq!(words.len(), limbs(p.width()));
        row.splice(0..0, words);
        n >>= bits;
    }
    Ok(row)
}

/// Returns the value, mask and target of each case. The key must be a single unsigned field or lookahead of up to 64
/// bits, and no case may be a value set; otherwise returns `None`.
fn small(select: &Select) -> Option<Vec<(u64, u64, Pc)>> {
    match select.parts[..] {
        [KeyPart::Field(f)] if f.narrow() && !f.signed => {}
        [KeyPart::Lookahead { width, .. }] if width <= 64 => {}
        _ => return None,
    }
    select
        .cases
        .iter()
        .map(|c| match c {
            Case::Value { value, mask, to } => Some((value[0], mask[0], *to)),
            Case::ValueSet { .. } => None,
        })
        .collect()
}
