//! Reads and writes of parser value sets.

use sluice_engine::{KeyField, MatchKind};

use super::{Operation, Source, Target, unknown};
use crate::binding::{Binding, KeyBinding, ValueSetBinding};
use crate::bits::{self, BitWriter};
use crate::fault::{Fault, Outcome};
use crate::matches;
use crate::proto::p4::v1 as p4;
use crate::translation::NewName;

/// The value and mask of a field, each in the number of bytes that the field needs.
pub type ValueAndMask = (Vec<u8>, Vec<u8>);

/// A member in canonical form, in which clients read it, with the values and masks of its fields.
pub type Member = (p4::ValueSetMember, Vec<ValueAndMask>);

/// Replaces all members of a value set.
pub fn write(target: &mut Target<'_>, operation: Operation, entry: &p4::ValueSetEntry) -> Outcome {
    let (set, members) = decode(target.binding, operation, entry)?;
    let values: Vec<_> = members.iter().map(|(_, fields)| pack(set, fields)).collect();
    Ok(target.engine.value_set_write(set.engine, &values)?)
}

/// Decodes the members that a write gives to a value set.
///
/// # Errors
/// `INVALID_ARGUMENT` for an unknown value set, an insertion or deletion, or a malformed member. `RESOURCE_EXHAUSTED`
/// for too many members, `ALREADY_EXISTS` for a repeated member, `UNIMPLEMENTED` for a range of several values.
pub fn decode<'b>(
    binding: &'b Binding,
    operation: Operation,
    entry: &p4::ValueSetEntry,
) -> Outcome<(&'b ValueSetBinding, Vec<Member>)> {
    let id = entry.value_set_id;
    let set = binding.value_sets.get(id).ok_or_else(|| unknown("value set", id))?;
    let place = format!("value set {}", set.name);
    operation.must_modify(&place)?;
    if set.size > 0 && entry.members.len() > set.size {
        return Err(Fault::exhausted(format!(
            "{place} holds {} members, not {}; give fewer",
            set.size,
            entry.members.len()
        )));
    }
    let mut members: Vec<Member> = Vec::with_capacity(entry.members.len());
    for member in &entry.members {
        let (member, fields) = decode_member(set, member).map_err(|fault| fault.within(&place))?;
        if members.iter().any(|(_, existing)| *existing == fields) {
            return Err(Fault::exists(format!("{place}: a member is given twice; give it once")));
        }
        members.push((member, fields));
    }
    Ok((set, members))
}

fn decode_member(set: &ValueSetBinding, member: &p4::ValueSetMember) -> Outcome<Member> {
    let fields = matches::decode_key(&set.key, &member.r#match, NewName::Assign)?;
    let canonical = p4::ValueSetMember { r#match: matches::encode_key(&set.key, &fields) };
    let mut masked = Vec::with_capacity(fields.len());
    for (binding, field) in set.key.iter().zip(fields) {
        let width = binding.width;
        let all = bits::ones(width);
        masked.push(match field {
            KeyField::Exact(value) | KeyField::Optional(Some(value)) => (value, all),
            KeyField::Lpm { value, prefix_len } => (value, bits::prefix_mask(prefix_len, width)),
            KeyField::Ternary { value, mask } => (value, mask),
            KeyField::Optional(None) => (vec![0; bits::bytes_of(width)], vec![0; bits::bytes_of(width)]),
            KeyField::Range { low, high } if low == high => (low, all),
            KeyField::Range { .. } => {
                return Err(Fault::unimplemented(format!(
                    "match field {} ({}): ranges in value sets are not supported; give the values one by one",
                    binding.id, binding.name
                )));
            }
        });
    }
    Ok((canonical, masked))
}

/// Concatenates the values of the fields to one number, and their masks to another number.
fn pack(set: &ValueSetBinding, fields: &[ValueAndMask]) -> ValueAndMask {
    let (mut values, mut masks) = (BitWriter::default(), BitWriter::default());
    for (binding, (value, mask)) in set.key.iter().zip(fields) {
        values.push(value, binding.width);
        masks.push(mask, binding.width);
    }
    let align = |writer: BitWriter| {
        let (bytes, used) = writer.finish();
        bits::extract(&bytes, 0, used)
    };
    (align(values), align(masks))
}

/// Reads one value set or all value sets.
pub fn read(source: &Source<'_>, entry: &p4::ValueSetEntry) -> Outcome<Vec<p4::ValueSetEntry>> {
    let read = |set: &ValueSetBinding| {
        let members = source.engine.value_set_read(set.engine);
        let members = members.iter().map(|(value, mask)| unpack(set, value, mask)).collect();
        p4::ValueSetEntry { value_set_id: set.id, members }
    };
    match entry.value_set_id {
        0 => Ok(source.binding.value_sets.iter().map(read).collect()),
        id => Ok(vec![read(source.binding.value_sets.get(id).ok_or_else(|| unknown("value set", id))?)]),
    }
}

fn unpack(set: &ValueSetBinding, value: &[u8], mask: &[u8]) -> p4::ValueSetMember {
    let total: u32 = set.key.iter().map(|field| field.width).sum();
    let spare = bits::bytes_of(total) as u32 * 8 - total;
    let mut offset = spare;
    let mut field = |binding: &KeyBinding| {
        let take = |bytes: &[u8]| bits::extract(bytes, offset, binding.width);
        let (value, mask) = (take(value), take(mask));
        offset += binding.width;
        let any = mask.iter().all(|byte| *byte == 0);
        match binding.kind {
            MatchKind::Exact => KeyField::Exact(value),
            MatchKind::Lpm => KeyField::Lpm { value, prefix_len: mask.iter().map(|byte| byte.count_ones()).sum() },
            MatchKind::Ternary => KeyField::Ternary { value, mask },
            MatchKind::Range if any => KeyField::Range { low: value, high: bits::ones(binding.width) },
            MatchKind::Range => KeyField::Range { low: value.clone(), high: value },
            MatchKind::Optional => KeyField::Optional((!any).then_some(value)),
        }
    };
    let fields: Vec<_> = set.key.iter().map(&mut field).collect();
    p4::ValueSetMember { r#match: matches::encode_key(&set.key, &fields) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::p4::v1::field_match::{self as wire, FieldMatchType};

    #[test]
    fn fields_are_packed_into_one_number_and_back() {
        let field = |id, kind, width| KeyBinding { id, name: String::new(), kind, as_ternary: false, width, sdn: None };
        let key = vec![field(1, MatchKind::Exact, 9), field(2, MatchKind::Lpm, 4), field(3, MatchKind::Ternary, 5)];
        let set = ValueSetBinding { id: 1, name: String::new(), engine: sluice_engine::ValueSetId(0), key, size: 0 };
        let matched = |field_id, matched| p4::FieldMatch { field_id, field_match_type: Some(matched) };
        let member = p4::ValueSetMember {
            r#match: vec![
                matched(1, FieldMatchType::Exact(wire::Exact { value: vec![1, 1] })),
                matched(2, FieldMatchType::Lpm(wire::Lpm { value: vec![0b1000], prefix_len: 2 })),
                matched(3, FieldMatchType::Ternary(wire::Ternary { value: vec![0b10], mask: vec![0b110] })),
            ],
        };
        let (canonical, fields) = decode_member(&set, &member).unwrap();
        assert_eq!(canonical, member);
        let (value, mask) = pack(&set, &fields);
        assert_eq!(value, [0b10, 0b0000_0011, 0b0000_0010]);
        assert_eq!(mask, [0b11, 0b1111_1111, 0b1000_0110]);
        assert_eq!(unpack(&set, &value, &mask), member);
    }
}
