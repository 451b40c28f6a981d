//! The data types of registers and digests, and the translation of their values to and from P4Runtime's messages.

use crate::binding::BindError;
use crate::bits;
use crate::fault::{Fault, Outcome};
use crate::proto::p4::config::v1 as p4info;
use crate::proto::p4::v1::{P4Data, P4Header, P4StructLike, p4_data::Data};
use crate::translation::{self, NewName, Sdn, Types};
use p4info::p4_bitstring_like_type_spec::TypeSpec as Bitstring;
use p4info::p4_data_type_spec::TypeSpec;

/// Limit on the levels of nesting of a type, the outermost level included.
const DEPTH: u32 = 64;
/// Limit on the number of types of which a type consists, on all levels together.
const MEMBERS: usize = 65_536;

/// A data type of registers or digests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DataType {
    /// The type `bit<W>`, with its width in bits.
    Bit(u32),
    /// The type `int<W>`, with its width in bits.
    Int(u32),
    /// The type `bool`.
    Bool,
    /// A serializable enum, with the width of its underlying type in bits.
    EnumValue(u32),
    /// A translated type: its width in the program in bits, and its form for controllers.
    Translated(u32, Sdn),
    /// A struct, with the types of its fields.
    Struct(Vec<DataType>),
    /// A tuple, with the types of its fields.
    Tuple(Vec<DataType>),
    /// A header, with the types of its fields. Headers in registers and digests are always valid.
    Header(Vec<DataType>),
}

impl DataType {
    /// Resolves a type of P4Info. `place` is the name of the object with this type in error messages.
    ///
    /// # Errors
    /// Fails for unknown types, for types that contain themselves or exceed [`DEPTH`] or [`MEMBERS`], and for kinds of
    /// type that neither registers nor digests of v1model have.
    pub fn resolve(spec: Option<&p4info::P4DataTypeSpec>, types: &Types, place: &str) -> Result<Self, BindError> {
        Resolution { types, place, remaining: MEMBERS }.resolve(spec, DEPTH)
    }

    /// Sets the widths of translated types. `widths` are the widths of all fields in the program, in bits and in order.
    pub fn fit(&mut self, widths: &mut impl Iterator<Item = u32>) {
        match self {
            Self::Struct(members) | Self::Tuple(members) | Self::Header(members) => {
                // The iterator is `dyn`, because with a generic iterator each level of the recursion would require a
                // further type.
                let mut widths: &mut dyn Iterator<Item = u32> = widths;
                members.iter_mut().for_each(|member| member.fit(&mut widths));
            }
            Self::Translated(width, sdn) => {
                *width = widths.next().unwrap_or(0);
                sdn.fit(*width);
            }
            Self::Bit(_) | Self::Int(_) | Self::Bool | Self::EnumValue(_) => {
                widths.next();
            }
        }
    }

    /// Returns the width of all fields together, in bits.
    pub fn width(&self) -> u64 {
        self.leaf_widths().into_iter().map(u64::from).sum()
    }

    /// Returns the width of each field in bits, in order.
    pub fn leaf_widths(&self) -> Vec<u32> {
        match self {
            Self::Bit(width) | Self::Int(width) | Self::EnumValue(width) | Self::Translated(width, _) => vec![*width],
            Self::Bool => vec![1],
            Self::Struct(members) | Self::Tuple(members) | Self::Header(members) => {
                members.iter().flat_map(Self::leaf_widths).collect()
            }
        }
    }

    /// Returns the message for a value. `fields` are the values of its fields in order, each in `ceil(width / 8)`
    /// bytes.
    pub fn encode<'v>(&self, fields: &mut impl Iterator<Item = &'v [u8]>) -> P4Data {
        let mut next = || fields.next().unwrap_or(&[]);
        let data = match self {
            Self::Bit(_) => Data::Bitstring(bits::canonical(next())),
            Self::Int(width) => Data::Bitstring(bits::canonical_signed(next(), *width)),
            Self::Bool => Data::Bool(next().iter().any(|byte| *byte != 0)),
            Self::EnumValue(_) => Data::EnumValue(bits::canonical(next())),
            Self::Translated(_, sdn) => Data::Bitstring(translation::encode(Some(sdn), next())),
            Self::Struct(members) => Data::Struct(Self::encode_members(members, fields)),
            Self::Tuple(members) => Data::Tuple(Self::encode_members(members, fields)),
            Self::Header(members) => Data::Header(P4Header {
                is_valid: true,
                bitstrings: members
                    .iter()
                    .map(|member| {
                        let value = fields.next().unwrap_or(&[]);
                        match member {
                            Self::Int(width) => bits::canonical_signed(value, *width),
                            _ => bits::canonical(value),
                        }
                    })
                    .collect(),
            }),
        };
        P4Data { data: Some(data) }
    }

    fn encode_members<'v>(members: &[Self], fields: &mut impl Iterator<Item = &'v [u8]>) -> P4StructLike {
        // The iterator is `dyn`, because with a generic iterator each level of the recursion would require a further
        // type.
        let mut fields: &mut dyn Iterator<Item = &'v [u8]> = fields;
        P4StructLike { members: members.iter().map(|member| member.encode(&mut fields)).collect() }
    }

    /// Returns the value of a register cell as `ceil(width / 8)` bytes.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` when the message is of another kind, `OUT_OF_RANGE` when the value does not fit. For a
    /// translated type, the errors of [`translation::decode`].
    pub fn decode_cell(&self, data: &P4Data) -> Outcome<Vec<u8>> {
        match (self, &data.data) {
            (Self::Bit(width), Some(Data::Bitstring(value))) => bits::unsigned(value, *width),
            (Self::Int(width), Some(Data::Bitstring(value))) => bits::signed(value, *width),
            (Self::Bool, Some(Data::Bool(value))) => Ok(vec![u8::from(*value)]),
            (Self::EnumValue(width), Some(Data::EnumValue(value))) => bits::unsigned(value, *width),
            (Self::Translated(width, sdn), Some(Data::Bitstring(value))) => {
                translation::decode(Some(sdn), value, *width, NewName::Assign)
            }
            _ => Err(Fault::invalid(format!("data is of another type; give {}", self.wire_form()))),
        }
    }

    fn wire_form(&self) -> String {
        match self {
            Self::Bit(width) => format!("a bitstring of at most {width} bits"),
            Self::Int(width) => format!("a signed bitstring of at most {width} bits"),
            Self::Bool => "a bool".to_owned(),
            Self::EnumValue(width) => format!("an enum_value of at most {width} bits"),
            Self::Translated(_, Sdn::Number(_)) => "a bitstring".to_owned(),
            Self::Translated(_, Sdn::Name(_)) => "a bitstring with a name".to_owned(),
            Self::Struct(_) | Self::Tuple(_) | Self::Header(_) => {
                "it field by field, which v1model registers do not have".to_owned()
            }
        }
    }
}

/// The resolution of one type. The limits end the recursion for a type that contains itself.
struct Resolution<'t> {
    types: &'t Types,
    /// The name of the object that has the type, for errors.
    place: &'t str,
    /// Number of types that the resolution may still visit.
    remaining: usize,
}

impl Resolution<'_> {
    fn resolve(&mut self, spec: Option<&p4info::P4DataTypeSpec>, depth: u32) -> Result<DataType, BindError> {
        let (types, place) = (self.types, self.place);
        let depth = depth.checked_sub(1).ok_or_else(|| self.endless())?;
        self.count(1)?;
        let unsupported = |what: &str| BindError::Unsupported(format!("{what} as type of {place}"));
        let unknown = |name: &str| BindError::Malformed(format!("{place} has the unknown type {name}"));
        let declared = &types.info;
        match spec.and_then(|spec| spec.type_spec.as_ref()) {
            Some(TypeSpec::Bitstring(bits)) => self.bitstring(bits),
            Some(TypeSpec::Bool(_)) => Ok(DataType::Bool),
            Some(TypeSpec::Tuple(tuple)) => Ok(DataType::Tuple(
                tuple.members.iter().map(|member| self.resolve(Some(member), depth)).collect::<Result<_, _>>()?,
            )),
            Some(TypeSpec::Struct(named)) => {
                let definition = declared.structs.get(&named.name).ok_or_else(|| unknown(&named.name))?;
                let members = definition.members.iter();
                Ok(DataType::Struct(
                    members.map(|member| self.resolve(member.type_spec.as_ref(), depth)).collect::<Result<_, _>>()?,
                ))
            }
            Some(TypeSpec::Header(named)) => {
                let definition = declared.headers.get(&named.name).ok_or_else(|| unknown(&named.name))?;
                self.count(definition.members.len())?;
                let fields = definition.members.iter().filter_map(|member| member.type_spec.as_ref());
                Ok(DataType::Header(fields.map(|bits| self.bitstring(bits)).collect::<Result<_, _>>()?))
            }
            Some(TypeSpec::SerializableEnum(named)) => {
                let definition = declared.serializable_enums.get(&named.name).ok_or_else(|| unknown(&named.name))?;
                let bits = definition.underlying_type.map_or(0, |bits| bits.bitwidth);
                Ok(DataType::EnumValue(width(bits, place)?))
            }
            Some(TypeSpec::NewType(named)) => {
                use p4info::p4_new_type_spec::Representation;
                let definition = declared.new_types.get(&named.name).ok_or_else(|| unknown(&named.name))?;
                match &definition.representation {
                    Some(Representation::OriginalType(original)) => self.resolve(Some(original), depth),
                    // The width of a translated type is only in the program; `fit` sets it.
                    Some(Representation::TranslatedType(translation)) => {
                        Ok(DataType::Translated(0, types.translated(translation, place)?))
                    }
                    None => Err(BindError::Malformed(format!("{place} has a type without representation"))),
                }
            }
            Some(TypeSpec::HeaderUnion(_)) => Err(unsupported("a header union")),
            Some(TypeSpec::HeaderStack(_)) => Err(unsupported("a header stack")),
            Some(TypeSpec::HeaderUnionStack(_)) => Err(unsupported("a stack of header unions")),
            Some(TypeSpec::Enum(_)) => Err(unsupported("an enum without values")),
            Some(TypeSpec::Error(_)) => Err(unsupported("error")),
            None => Err(BindError::Malformed(format!("{place} has no type"))),
        }
    }

    /// Counts visited types. Fails when their number exceeds the limit.
    fn count(&mut self, count: usize) -> Result<(), BindError> {
        self.remaining = self.remaining.checked_sub(count).ok_or_else(|| self.endless())?;
        Ok(())
    }

    fn endless(&self) -> BindError {
        BindError::Malformed(format!(
            "the type of {} contains itself, or has more than {MEMBERS} members or {DEPTH} levels",
            self.place
        ))
    }

    fn bitstring(&self, spec: &p4info::P4BitstringLikeTypeSpec) -> Result<DataType, BindError> {
        let place = self.place;
        match &spec.type_spec {
            Some(Bitstring::Bit(bits)) => Ok(DataType::Bit(width(bits.bitwidth, place)?)),
            Some(Bitstring::Int(bits)) => Ok(DataType::Int(width(bits.bitwidth, place)?)),
            Some(Bitstring::Varbit(_)) => Err(BindError::Unsupported(format!("varbit as type of {place}"))),
            None => Err(BindError::Malformed(format!("{place} has a type without width"))),
        }
    }
}

fn width(bits: i32, place: &str) -> Result<u32, BindError> {
    u32::try_from(bits)
        .ok()
        .filter(|bits| *bits > 0)
        .ok_or_else(|| BindError::Malformed(format!("{place} has a width of {bits} bits")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bits(value: &[u8]) -> P4Data {
        P4Data { data: Some(Data::Bitstring(value.to_vec())) }
    }

    #[test]
    fn structs_take_fields_in_order() {
        let inner = DataType::Tuple(vec![DataType::Bool, DataType::Int(8)]);
        let data = DataType::Struct(vec![DataType::Bit(9), inner, DataType::Bit(32)]);
        assert_eq!(data.leaf_widths(), [9, 1, 8, 32]);
        let fields: [&[u8]; 4] = [&[0, 7], &[1], &[0xfe], &[0, 0, 0, 0]];
        let wire = data.encode(&mut fields.into_iter());
        let tuple = P4StructLike { members: vec![P4Data { data: Some(Data::Bool(true)) }, bits(&[0xfe])] };
        let members = vec![bits(&[7]), P4Data { data: Some(Data::Tuple(tuple)) }, bits(&[0])];
        assert_eq!(wire, P4Data { data: Some(Data::Struct(P4StructLike { members })) });
    }

    #[test]
    fn cells_are_checked() {
        assert_eq!(DataType::Bit(9).decode_cell(&bits(&[1, 2])).unwrap(), [1, 2]);
        assert_eq!(DataType::Bit(9).decode_cell(&bits(&[2, 2])).unwrap_err().code, tonic::Code::OutOfRange);
        let wrong = DataType::Bool.decode_cell(&bits(&[1])).unwrap_err();
        assert_eq!(
            (wrong.code, wrong.message.as_str()),
            (tonic::Code::InvalidArgument, "data is of another type; give a bool")
        );
    }
}
