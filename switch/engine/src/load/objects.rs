//! Loads the definitions of registers, counters, meters, calculations, digests, field lists and value sets.

use std::collections::HashMap;

use super::expr::Scope;
use super::json::{J, NARROWER, Result};
use crate::bits::to_limbs;
use crate::calc::{Calculation, Input};
use crate::control::CounterData;
use crate::expr::Expr;
use crate::hash::Hash;
use crate::layout::{Layout, Slot};
use crate::meter::Meter;
use crate::program::{CounterInfo, DigestInfo, DigestPart, FieldInfo, MeterInfo, Objects, RegisterInfo, ValueSetInfo};
use crate::state::cell_bytes;

/// The maximum number of cells of an array.
const MAX_CELLS: u64 = 1 << 28;
/// The maximum total size in bytes of all arrays of a program: as much as one register of `MAX_CELLS` cells of 64 bits.
/// The limit catches absurd sizes; a machine may have less memory.
const MAX_BYTES: u64 = 8 * MAX_CELLS;
const SMALLER: &str = "declare the array smaller";

impl Objects {
    #[expect(clippy::too_many_lines, reason = "one loop a kind of array")]
    pub fn load(root: &J, layout: &Layout) -> Result<Objects> {
        let mut o = Objects::default();
        let scope = Scope { layout, params: &[] };
        for j in root.list("register_arrays")? {
            let info = RegisterInfo { name: j.str("name")?.into(), size: cells(&j)?, width: j.u32("bitwidth")? };
            if info.width == 0 || info.width > 1 << 16 {
                return Err(j.refused(format!("a cell has {} bits", info.width), NARROWER));
            }
            o.take(&j, &info.name, info.size, cell_bytes(info.width))?;
            insert(&j, &mut o.register_by_name, &info.name, o.registers.len())?;
            o.registers.push(info);
        }
        for j in root.list("counter_arrays")? {
            if j.bool_or("is_direct", false)? {
                continue;
            }
            let info = CounterInfo { name: j.str("name")?.into(), size: cells(&j)? };
            o.take(&j, &info.name, info.size, size_of::<CounterData>())?;
            insert(&j, &mut o.counter_by_name, &info.name, o.counters.len())?;
            o.counters.push(info);
        }
        for j in root.list("meter_arrays")? {
            let direct = j.bool_or("is_direct", false)?;
            let (kind, rates) = (j.get("type")?, j.get("rate_count")?);
            let bytes = match kind.as_str()? {
                "bytes" => true,
                "packets" => false,
                other => return Err(kind.unknown(format!("meters of type '{other}' are not supported"))),
            };
            if rates.as_u32()? != 2 {
                return Err(rates.unknown(format!("meters of {} rates are not supported", rates.value)));
            }
            let target = if direct { Some(scope.field(&j.get("result_target")?)?) } else { None };
            let info = MeterInfo { name: j.str("name")?.into(), size: cells(&j)?, bytes, table: None };
            if !direct {
                o.take(&j, &info.name, info.size, size_of::<Meter>())?;
            }
            insert(&j, &mut o.meter_by_name, &info.name, o.meters.len())?;
            o.meters.push(info);
            o.meter_targets.push(target);
        }
        for j in root.list("calculations")? {
            let c = calculation(&j, "input", &scope)?;
            insert(&j, &mut o.calculation_by_name, j.str("name")?, o.calculations.len())?;
            o.calculations.push(c);
        }
        o.lists(root, &scope)?;
        for j in root.list("parse_vsets")? {
            let info = ValueSetInfo {
                name: j.str("name")?.into(),
                size: j.opt("max_size").map_or(Ok(0), |s| s.as_u64())?,
                width: j.u32("compressed_bitwidth")?,
            };
            insert(&j, &mut o.value_set_by_name, &info.name, o.value_sets.len())?;
            o.value_sets.push(info);
        }
        if let Some(x) = root.list("extern_instances")?.first() {
            return Err(
                x.refused("extern instances are not supported", "compile without --emit-externs: v1model needs none")
            );
        }
        Ok(o)
    }

    /// Adds the memory of an array to the program's total. Returns an error if the total exceeds `MAX_BYTES`.
    fn take(&mut self, j: &J, name: &str, size: u64, cell: usize) -> Result<()> {
        let bytes = size.saturating_mul(cell as u64);
        let allocated = self.array_bytes;
        if bytes > MAX_BYTES - allocated {
            let text = format!(
                "{size} cells of {cell} bytes take {bytes} bytes, with {allocated} of other arrays more than {MAX_BYTES} together"
            );
            return Err(j.get("size")?.refused(text, SMALLER));
        }
        self.arrays.push((name.to_owned(), bytes));
        self.array_bytes += bytes;
        Ok(())
    }

    fn lists(&mut self, root: &J, scope: &Scope) -> Result<()> {
        for j in root.list("learn_lists")? {
            let (mut fields, mut parts) = (Vec::new(), Vec::new());
            for e in j.list("elements")? {
                let name = e.opt("name").and_then(|n| n.value.as_str().map(String::from)).unwrap_or_default();
                match scope.expr(&e)? {
                    Expr::Field(f) if !f.varbit => {
                        fields.push(FieldInfo { name, width: f.width });
                        parts.push(DigestPart::Field(f));
                    }
                    Expr::Const(n) => {
                        let bytes = n.to_bytes_be().1;
                        fields.push(FieldInfo { name, width: 8 * bytes.len() as u32 });
                        parts.push(DigestPart::Constant(bytes));
                    }
                    _ => {
                        return Err(e.refused(
                            "this is neither a field nor a constant, which is what a digest can have",
                            "assign it to a variable first",
                        ));
                    }
                }
            }
            let name = j.str("name")?;
            let index = self.digests.len();
            insert(&j, &mut self.digest_by_name, name, index)?;
            self.digest_by_id.insert(j.get("id")?.as_u64()?, index as u16);
            self.digests.push(DigestInfo { name: name.into(), fields });
            self.digest_parts.push(parts);
        }
        for j in root.list("field_lists")? {
            let mut fields = Vec::new();
            for e in j.list("elements")? {
                match scope.expr(&e)? {
                    Expr::Field(f) => fields.push(f),
                    _ => return Err(e.error("a field list can have fields only")),
                }
            }
            self.field_list_by_id.insert(j.get("id")?.as_u64()?, self.field_lists.len() as u16);
            self.field_lists.push(fields);
        }
        Ok(())
    }

    /// Returns the index of the object that a primitive's parameter names.
    pub fn find(&self, j: &J, kind: &str, names: &HashMap<String, u32>) -> Result<u16> {
        let what = kind.trim_end_matches("_array");
        if j.str("type")? != kind {
            return Err(j.error(format!("a {what} is expected")));
        }
        let name = j.str("value")?;
        let &index = names.get(name).ok_or_else(|| j.error(format!("there is no {what} '{name}'")))?;
        // The index fits into 16 bits, because `insert` refuses more than 65,535 objects of a kind.
        Ok(index as u16)
    }

    pub fn field_list(&self, j: &J) -> Result<u16> {
        self.by_id(j, &self.field_list_by_id, "field list")
    }

    pub fn digest(&self, j: &J) -> Result<u16> {
        self.by_id(j, &self.digest_by_id, "digest")
    }

    fn by_id(&self, j: &J, ids: &HashMap<u64, u16>, what: &str) -> Result<u16> {
        let id = u64::try_from(&j.hex("value")?).unwrap_or(u64::MAX);
        ids.get(&id).copied().ok_or_else(|| j.error(format!("there is no {what} with the id {id}")))
    }
}

fn cells(j: &J) -> Result<u64> {
    let at = j.get("size")?;
    let size = at.as_u64()?;
    if size > MAX_CELLS {
        return Err(at.refused(format!("more than {MAX_CELLS} cells are not supported"), SMALLER));
    }
    Ok(size)
}

fn insert(j: &J, names: &mut HashMap<String, u32>, name: &str, index: usize) -> Result<()> {
    if index >= 65_535 {
        return Err(j.refused("more than 65,535 of a kind are not supported", "declare fewer of them"));
    }
    if names.insert(name.to_string(), index as u32).is_some() {
        return Err(j.error("another object has this name already"));
    }
    Ok(())
}

/// Reads the calculation `{algo, input}` of a hash or a selector. `key` is the name of the member with the inputs.
pub fn calculation(j: &J, key: &str, scope: &Scope) -> Result<Calculation> {
    let algo = j.get("algo")?;
    let name = algo.as_str()?;
    let hash = Hash::by_name(name).ok_or_else(|| {
        algo.refused(
            format!("the algorithm '{name}' is not supported"),
            "use crc16, crc32, csum16, xor16, identity or a custom CRC",
        )
    })?;
    let (mut inputs, mut payload) = (Vec::new(), false);
    for i in j.list(key)? {
        let value = i.get("value")?;
        match i.str("type")? {
            "field" => {
                let f = scope.field(&value)?;
                let h = scope.header(&value.at(0)?)?;
                let header = &scope.layout.headers[h];
                let valid: Option<Slot> = (!header.metadata).then_some(header.valid);
                inputs.push(Input::Field(f, valid));
            }
            "hexstr" => {
                let width = i.u32("bitwidth")?;
                if width > 1 << 16 {
                    return Err(i.refused(format!("the constant has {width} bits"), NARROWER));
                }
                inputs.push(Input::Constant(to_limbs(&value.as_hex()?, width), width));
            }
            "header" => inputs.push(Input::Header(scope.header(&value)? as u16)),
            "payload" => payload = true,
            other => return Err(i.unknown(format!("'{other}' is not supported as input of a calculation"))),
        }
    }
    Ok(Calculation::new(hash, inputs, payload))
}
