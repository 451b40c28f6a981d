//! Keys of entries: translates `FieldMatch` messages to the engine's key fields and back.

use sluice_engine::{KeyField, MatchKind};
use tonic::Code;

use crate::binding::KeyBinding;
use crate::bits;
use crate::fault::{Fault, Outcome};
use crate::proto::p4::v1::{FieldMatch, field_match as wire};
use crate::translation::{self, NewName};
use wire::FieldMatchType;

/// Returns the key in the engine's form for the fields of a request. A field that the request omits matches every
/// value; exact fields must not be omitted.
///
/// # Errors
/// `INVALID_ARGUMENT` for fields that are unknown, repeated, of another match kind, too wide or not in P4Runtime's
/// canonical form, and for omitted exact fields. `NOT_FOUND` for a name (a string for a translated value)
/// that has no number in the switch yet, if `new` refuses such names.
pub fn decode_key(key: &[KeyBinding], field_matches: &[FieldMatch], new: NewName) -> Outcome<Vec<KeyField>> {
    for (place, field) in field_matches.iter().enumerate() {
        if key.iter().all(|declared| declared.id != field.field_id) {
            return Err(Fault::invalid(format!(
                "there is no match field {}; give those that P4Info has",
                field.field_id
            )));
        }
        if field_matches[..place].iter().any(|earlier| earlier.field_id == field.field_id) {
            return Err(Fault::invalid(format!("match field {} is given twice; give it once", field.field_id)));
        }
    }
    key.iter()
        .map(|field| {
            let matched = field_matches.iter().find(|item| item.field_id == field.id);
            let matched = (matched.and_then(|item| item.field_match_type.as_ref()), matched.is_some());
            decode_field(field, matched, new).map_err(|fault| {
                let code = if fault.code == Code::NotFound { Code::NotFound } else { Code::InvalidArgument };
                Fault { code, message: format!("match field {} ({}): {}", field.id, field.name, fault.message) }
            })
        })
        .collect()
}

/// Decodes one field of a key. `is_given`: the request contains the field, even if the field has no match in it.
fn decode_field(
    field: &KeyBinding,
    (field_match, is_given): (Option<&FieldMatchType>, bool),
    new: NewName,
) -> Outcome<KeyField> {
    let width = field.width;
    let value = |bytes: &[u8]| translation::decode(field.sdn.as_ref(), bytes, width, new);
    let complete = match (field.sdn.as_ref().and_then(|sdn| sdn.exact_only_width(width)), field_match) {
        (Some(sdn), Some(field_match)) => complete_match(field_match, sdn, width)?,
        _ => None,
    };
    Ok(match (field.kind, complete.as_ref().or(field_match)) {
        (MatchKind::Exact, Some(FieldMatchType::Exact(field_match))) => KeyField::Exact(value(&field_match.value)?),
        (MatchKind::Lpm, Some(FieldMatchType::Lpm(field_match))) => {
            let prefix_len = u32::try_from(field_match.prefix_len)
                .ok()
                .filter(|length| (1..=width).contains(length))
                .ok_or_else(|| {
                Fault::invalid(format!(
                    "the prefix length {} is not between 1 and {width}; to match every value, leave the field out",
                    field_match.prefix_len
                ))
            })?;
            let value = value(&field_match.value)?;
            no_bits_outside(&value, &bits::prefix_mask(prefix_len, width), "prefix")?;
            KeyField::Lpm { value, prefix_len }
        }
        (MatchKind::Ternary, Some(FieldMatchType::Ternary(field_match))) => {
            let (value, mask) = (value(&field_match.value)?, value(&field_match.mask)?);
            if mask.iter().all(|byte| *byte == 0) {
                return Err(Fault::invalid("the mask is zero; to match every value, leave the field out"));
            }
            no_bits_outside(&value, &mask, "mask")?;
            KeyField::Ternary { value, mask }
        }
        (MatchKind::Range, Some(FieldMatchType::Range(field_match))) => {
            let (low, high) = (value(&field_match.low)?, value(&field_match.high)?);
            if low > high {
                return Err(Fault::invalid("the low bound is above the high bound; exchange them"));
            }
            if low.iter().all(|byte| *byte == 0) && high == bits::ones(width) {
                return Err(Fault::invalid("the range matches every value; leave the field out"));
            }
            KeyField::Range { low, high }
        }
        (MatchKind::Optional, Some(FieldMatchType::Optional(field_match))) => {
            optional(field, Some(value(&field_match.value)?))
        }
        (MatchKind::Exact, None) if !is_given => {
            return Err(Fault::invalid("is missing; give it, an exact field cannot be left out"));
        }
        (_, None) if !is_given => wildcard(field),
        (kind, _) => return Err(Fault::invalid(format!("the match is of another kind; give {kind:?}").to_lowercase())),
    })
}

/// Translates a match on a number that has `sdn` bits in P4Info and another `width` in the program. Only matches of the
/// complete value can be translated: prefixes, masks and ranges have no equivalent at the other width.
fn complete_match(field_match: &FieldMatchType, sdn: u32, width: u32) -> Outcome<Option<FieldMatchType>> {
    let (complete, translated) = match field_match {
        FieldMatchType::Lpm(lpm) => {
            let translated = wire::Lpm { value: lpm.value.clone(), prefix_len: width as i32 };
            (lpm.prefix_len == sdn as i32, FieldMatchType::Lpm(translated))
        }
        FieldMatchType::Ternary(ternary) => {
            let translated = wire::Ternary { value: ternary.value.clone(), mask: bits::ones(width) };
            (bits::canonical(&ternary.mask) == bits::ones(sdn), FieldMatchType::Ternary(translated))
        }
        FieldMatchType::Range(range) => {
            return match bits::canonical(&range.low) == bits::canonical(&range.high) {
                true => Ok(None),
                false => Err(not_complete(sdn, width)),
            };
        }
        FieldMatchType::Exact(_) | FieldMatchType::Optional(_) | FieldMatchType::Other(_) => return Ok(None),
    };
    if complete { Ok(Some(translated)) } else { Err(not_complete(sdn, width)) }
}

fn not_complete(sdn: u32, width: u32) -> Fault {
    let text = "numbers of this type can only be matched completely";
    Fault::unimplemented(format!(
        "{text}, because the program has {width} bits and P4Info {sdn}; match the complete number"
    ))
}

fn wildcard(field: &KeyBinding) -> KeyField {
    let zero = || vec![0; bits::bytes_of(field.width)];
    match field.kind {
        MatchKind::Exact => KeyField::Exact(zero()),
        MatchKind::Lpm => KeyField::Lpm { value: zero(), prefix_len: 0 },
        MatchKind::Ternary => KeyField::Ternary { value: zero(), mask: zero() },
        MatchKind::Range => KeyField::Range { low: zero(), high: bits::ones(field.width) },
        MatchKind::Optional => optional(field, None),
    }
}

/// Returns the key field for an optional match. The field is optional or ternary, like the field in the compiled
/// program, because p4c compiles some optional fields to ternary ones. If `value` is `None`, the key field matches
/// every value.
fn optional(field: &KeyBinding, value: Option<Vec<u8>>) -> KeyField {
    match value {
        value if !field.as_ternary => KeyField::Optional(value),
        Some(value) => KeyField::Ternary { value, mask: bits::ones(field.width) },
        None => {
            let zero = vec![0; bits::bytes_of(field.width)];
            KeyField::Ternary { value: zero.clone(), mask: zero }
        }
    }
}

fn no_bits_outside(value: &[u8], mask: &[u8], what: &str) -> Outcome {
    if value.iter().zip(mask).any(|(value, mask)| value & !mask != 0) {
        return Err(Fault::invalid(format!(
            "the value 0x{} has bits outside its {what}; clear them",
            bits::hex(value)
        )));
    }
    Ok(())
}

/// Returns the `FieldMatch` messages of an entry's key. Fields that match every value are omitted.
pub fn encode_key(key: &[KeyBinding], fields: &[KeyField]) -> Vec<FieldMatch> {
    key.iter()
        .zip(fields)
        .filter_map(|(binding, field)| {
            let matched = encode_field(field, binding)?;
            Some(FieldMatch { field_id: binding.id, field_match_type: Some(matched) })
        })
        .collect()
}

fn encode_field(field: &KeyField, binding: &KeyBinding) -> Option<FieldMatchType> {
    let value = |bytes: &[u8]| translation::encode(binding.sdn.as_ref(), bytes);
    // The width of a number in P4Info, if it differs from the width in the program. Entries match such a number
    // completely.
    let wide = binding.sdn.as_ref().and_then(|sdn| sdn.exact_only_width(binding.width));
    match field {
        KeyField::Exact(bytes) => Some(FieldMatchType::Exact(wire::Exact { value: value(bytes) })),
        KeyField::Lpm { prefix_len: 0, .. } | KeyField::Optional(None) => None,
        KeyField::Lpm { value: bytes, prefix_len } => {
            Some(FieldMatchType::Lpm(wire::Lpm { value: value(bytes), prefix_len: wide.unwrap_or(*prefix_len) as i32 }))
        }
        KeyField::Ternary { mask, .. } if mask.iter().all(|byte| *byte == 0) => None,
        KeyField::Ternary { value: bytes, .. } if binding.as_ternary => {
            Some(FieldMatchType::Optional(wire::Optional { value: value(bytes) }))
        }
        KeyField::Ternary { value: bytes, mask } => {
            let mask = wide.map_or_else(|| bits::canonical(mask), bits::ones);
            Some(FieldMatchType::Ternary(wire::Ternary { value: value(bytes), mask }))
        }
        KeyField::Range { low, high }
            if low.iter().all(|byte| *byte == 0)
                && bits::canonical(high) == bits::canonical(&bits::ones(binding.width)) =>
        {
            None
        }
        KeyField::Range { low, high } => {
            Some(FieldMatchType::Range(wire::Range { low: value(low), high: value(high) }))
        }
        KeyField::Optional(Some(bytes)) => Some(FieldMatchType::Optional(wire::Optional { value: value(bytes) })),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode_key(key: &[KeyBinding], field_matches: &[FieldMatch]) -> Outcome<Vec<KeyField>> {
        super::decode_key(key, field_matches, NewName::Refuse)
    }

    fn key() -> Vec<KeyBinding> {
        use MatchKind::{Exact, Lpm, Optional, Range, Ternary};
        [(1, Exact, 9), (2, Lpm, 32), (3, Ternary, 16), (4, Range, 8), (5, Optional, 3), (6, Optional, 9)]
            .map(|(id, kind, width)| KeyBinding {
                id,
                name: format!("f{id}"),
                kind,
                as_ternary: id == 6,
                width,
                sdn: None,
            })
            .into()
    }

    fn exact(value: &[u8]) -> FieldMatchType {
        FieldMatchType::Exact(wire::Exact { value: value.to_vec() })
    }

    fn lpm(value: &[u8], prefix_len: i32) -> FieldMatchType {
        FieldMatchType::Lpm(wire::Lpm { value: value.to_vec(), prefix_len })
    }

    fn ternary(value: &[u8], mask: &[u8]) -> FieldMatchType {
        FieldMatchType::Ternary(wire::Ternary { value: value.to_vec(), mask: mask.to_vec() })
    }

    fn range(low: &[u8], high: &[u8]) -> FieldMatchType {
        FieldMatchType::Range(wire::Range { low: low.to_vec(), high: high.to_vec() })
    }

    fn fields(field_matches: Vec<(u32, FieldMatchType)>) -> Vec<FieldMatch> {
        let field = |(field_id, matched)| FieldMatch { field_id, field_match_type: Some(matched) };
        field_matches.into_iter().map(field).collect()
    }

    #[test]
    fn every_kind_survives_the_round_trip() {
        let field_matches = fields(vec![
            (1, exact(&[1, 0xff])),
            (2, lpm(&[10, 0, 0, 0], 8)),
            (3, ternary(&[0x10], &[0xf0])),
            (4, range(&[1], &[9])),
            (5, FieldMatchType::Optional(wire::Optional { value: vec![5] })),
            (6, FieldMatchType::Optional(wire::Optional { value: vec![0] })),
        ]);
        let decoded = decode_key(&key(), &field_matches).unwrap();
        assert_eq!(decoded[2], KeyField::Ternary { value: vec![0, 0x10], mask: vec![0, 0xf0] });
        assert_eq!(decoded[5], KeyField::Ternary { value: vec![0, 0], mask: vec![1, 0xff] });
        assert_eq!(encode_key(&key(), &decoded), field_matches);
        let wildcards = fields(vec![(1, exact(&[0]))]);
        let decoded = decode_key(&key(), &wildcards).unwrap();
        assert_eq!(decoded[3], KeyField::Range { low: vec![0], high: vec![0xff] });
        assert_eq!(encode_key(&key(), &decoded), wildcards);
    }

    #[test]
    fn numbers_of_another_width_are_matched_as_a_whole() {
        let mut key = key();
        key.iter_mut().for_each(|field| field.sdn = Some(crate::translation::Sdn::Number(64)));
        let field_matches = fields(vec![
            (1, exact(&[7])),
            (2, lpm(&[10, 0, 0, 0], 64)),
            (3, ternary(&[0x10], &[0xff; 8])),
            (4, range(&[9], &[9])),
        ]);
        let decoded = decode_key(&key, &field_matches).unwrap();
        assert_eq!(decoded[1], KeyField::Lpm { value: vec![10, 0, 0, 0], prefix_len: 32 });
        assert_eq!(decoded[2], KeyField::Ternary { value: vec![0, 0x10], mask: vec![0xff, 0xff] });
        assert_eq!(encode_key(&key, &decoded), field_matches);
        for partial in [lpm(&[10, 0, 0, 0], 8), ternary(&[0x10], &[0xf0]), range(&[1], &[9])] {
            let id = match partial {
                FieldMatchType::Lpm(_) => 2,
                FieldMatchType::Ternary(_) => 3,
                _ => 4,
            };
            let fault = decode_key(&key, &fields(vec![(1, exact(&[7])), (id, partial)])).unwrap_err();
            assert!(fault.message.contains("can only be matched completely"), "{}", fault.message);
        }
    }

    #[test]
    fn wrong_fields_are_named() {
        for (id, matched, text) in [
            (1, exact(&[2, 0]), "match field 1 (f1): the value 0x0200 needs 10 bits, the field has 9"),
            (1, exact(&[]), "match field 1 (f1): the value is empty"),
            (2, lpm(&[10, 0, 0, 1], 8), "match field 2 (f2): the value 0x0a000001 has bits outside its prefix"),
            (2, lpm(&[0], 0), "the prefix length 0 is not between 1 and 32"),
            (2, lpm(&[0], 33), "the prefix length 33 is not between 1 and 32"),
            (2, exact(&[1]), "match field 2 (f2): the match is of another kind; give lpm"),
            (3, ternary(&[0x11], &[0xf0]), "has bits outside its mask"),
            (3, ternary(&[0], &[0]), "the mask is zero"),
            (4, range(&[9], &[1]), "the low bound is above the high bound"),
            (4, range(&[0], &[255]), "the range matches every value"),
            (7, exact(&[1]), "there is no match field 7"),
        ] {
            let mut field_matches = fields(vec![(id, matched)]);
            if id != 1 {
                field_matches.extend(fields(vec![(1, exact(&[1]))]));
            }
            let fault = decode_key(&key(), &field_matches).unwrap_err();
            assert_eq!(fault.code, tonic::Code::InvalidArgument);
            assert!(fault.message.contains(text), "{} does not contain {text}", fault.message);
        }
        let missing = decode_key(&key(), &[]).unwrap_err().message;
        assert!(missing.contains("match field 1 (f1): is missing"), "{missing}");
        let twice = fields(vec![(1, exact(&[1])), (1, exact(&[1]))]);
        assert_eq!(decode_key(&key(), &twice).unwrap_err().message, "match field 1 is given twice; give it once");
    }
}
