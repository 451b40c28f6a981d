//! The controller headers: `packet_in`, with which packets to the controller begin, and `packet_out`, with which
//! packets from the controller begin.

use sluice_engine::HeaderInfo;

use super::table::{different, width};
use super::{BindError, Binding, Compiled};
use crate::bits::{self, BitWriter};
use crate::fault::{Fault, Outcome};
use crate::proto::p4::config::v1 as p4info;
use crate::proto::p4::v1::{self as p4, PacketMetadata};
use crate::translation::{self, NewName, Sdn, Types};

/// Limit on the length of a header, in bytes. No frame is longer than this limit.
const LONGEST: u64 = 65_535;

/// A field of a packet_in or packet_out header.
#[derive(Debug)]
pub struct PacketField {
    /// The field's metadata id in P4Info.
    pub id: u32,
    /// The field's name.
    pub name: String,
    /// The field's width in the program, in bits.
    pub width: u32,
    /// The form of the field's values for controllers, if the field's type is translated.
    pub sdn: Option<Sdn>,
}

/// A header that the program marks with `@controller_header`. Its fields follow each other without gaps.
#[derive(Debug)]
pub struct PacketHeader {
    /// The fields, in the order of P4Info.
    pub fields: Vec<PacketField>,
    /// The header's length in bytes.
    pub bytes: usize,
}

/// Resolves the headers `packet_in` and `packet_out`. Returns `None` for a header that P4Info lacks.
pub fn bind(
    info: &p4info::P4Info,
    types: &Types,
    program: &impl Compiled,
) -> Result<(Option<PacketHeader>, Option<PacketHeader>), BindError> {
    let find = |requested: &str| {
        let header = info
            .controller_packet_metadata
            .iter()
            .find(|header| header.preamble.as_ref().is_some_and(|preamble| preamble.name == requested));
        header.map(|header| bind_header(header, types, program, requested)).transpose()
    };
    Ok((find("packet_in")?, find("packet_out")?))
}

fn bind_header(
    header: &p4info::ControllerPacketMetadata,
    types: &Types,
    program: &impl Compiled,
    name: &str,
) -> Result<PacketHeader, BindError> {
    let place = format!("controller header {name}");
    let fields = header.metadata.iter().map(|field| {
        let sdn = types.sdn(field.type_name.as_ref(), &place)?;
        let width = if sdn.is_some() { 0 } else { width(field.bitwidth, &place, &field.name)? };
        Ok(PacketField { id: field.id, name: field.name.clone(), width, sdn })
    });
    let mut fields: Vec<PacketField> = fields.collect::<Result<_, _>>()?;
    let headers = candidates(&fields, program, &place)?;
    if fields.iter().any(|field| field.sdn.is_some()) {
        fit(&mut fields, &headers, &place)?;
    }
    let bits: u64 = fields.iter().map(|field| u64::from(field.width)).sum();
    if !bits.is_multiple_of(8) {
        return Err(BindError::Malformed(format!("{place} has {bits} bits, which are not whole bytes")));
    }
    if bits / 8 > LONGEST {
        return Err(BindError::Malformed(format!(
            "{place} has {} bytes, and no frame has more than {LONGEST}",
            bits / 8
        )));
    }
    Ok(PacketHeader { fields, bytes: (bits / 8) as usize })
}

/// Returns the field widths of every header of the program that may be the controller header with these fields. P4Info
/// does not name the program's header, so every header with equal field names and fitting widths is a candidate. The
/// result may be empty, because the program's packets need not carry the header. Fails if headers have these field
/// names but none of them has fitting widths.
fn candidates(fields: &[PacketField], program: &impl Compiled, place: &str) -> Result<Vec<Vec<u32>>, BindError> {
    let named =
        |header: &&HeaderInfo| header.fields.iter().map(|field| &field.name).eq(fields.iter().map(|field| &field.name));
    let widths = |header: &HeaderInfo| header.fields.iter().map(|field| field.width).collect::<Vec<_>>();
    let (fitting, differing): (Vec<_>, Vec<_>) =
        program.header_types().filter(named).map(widths).partition(|widths| difference(fields, widths).is_none());
    match differing.first().and_then(|widths| difference(fields, widths)) {
        Some((field, width)) if fitting.is_empty() => {
            let bits = |width| format!("{width} bits");
            Err(different(&format!("{place}, {}", field.name), bits(field.width), bits(width)))
        }
        _ => Ok(fitting),
    }
}

/// Returns the first untranslated field whose width differs from `widths`, which are the widths in the program's
/// header. Also returns the width of this field in `widths`.
fn difference<'f>(fields: &'f [PacketField], widths: &[u32]) -> Option<(&'f PacketField, u32)> {
    let mut pairs = fields.iter().zip(widths.iter().copied());
    pairs.find(|(field, width)| field.sdn.is_none() && field.width != *width)
}

/// Sets the widths of the fields with translated types, which P4Info lacks, to the widths in the program's header.
/// `headers` are the results of [`candidates`]. Fails if there is none, or if their widths differ.
fn fit(fields: &mut [PacketField], headers: &[Vec<u32>], place: &str) -> Result<(), BindError> {
    let names = || fields.iter().map(|field| &field.name[..]).collect::<Vec<_>>().join(", ");
    let malformed = |what: &str| {
        BindError::Malformed(format!(
            "{place} has a field of a translated type, and the program has {what} ({})",
            names()
        ))
    };
    let (widths, other_headers) = headers.split_first().ok_or_else(|| malformed("no header with these fields"))?;
    if other_headers.iter().any(|header| header != widths) {
        return Err(malformed("headers of different widths with these fields"));
    }
    for (field, width) in fields.iter_mut().zip(widths) {
        if let Some(sdn) = &field.sdn {
            field.width = *width;
            sdn.fit(*width);
        }
    }
    Ok(())
}

impl Binding {
    /// Returns a controller's packet as the program receives it: the header, built from the packet's metadata, followed
    /// by the payload.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for metadata that the header does not have, and for values that do not fit.
    pub fn packet_out_frame(&self, packet: &p4::PacketOut) -> Outcome<Vec<u8>> {
        let mut frame = match &self.packet_out {
            Some(header) => header.serialise(&packet.metadata)?,
            None if packet.metadata.is_empty() => Vec::new(),
            None => {
                return Err(Fault::invalid("the program has no packet_out header, hence no metadata; leave it out"));
            }
        };
        frame.extend_from_slice(&packet.payload);
        Ok(frame)
    }
}

impl PacketHeader {
    /// Returns the bytes of the header, built from the metadata of a packet-out. An omitted field is zero rather
    /// than an error, because ONOS omits padding fields; `simple_switch_grpc` does the same.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a field that is unknown, repeated or too wide.
    pub fn serialise(&self, metadata: &[PacketMetadata]) -> Outcome<Vec<u8>> {
        if let Some(unknown) = metadata.iter().find(|item| self.fields.iter().all(|field| field.id != item.metadata_id))
        {
            return Err(Fault::invalid(format!(
                "packet_out has no metadata field {}; give those that P4Info has",
                unknown.metadata_id
            )));
        }
        let mut writer = BitWriter::default();
        for field in &self.fields {
            let mut items = metadata.iter().filter(|item| item.metadata_id == field.id);
            let place = format!("packet_out field {} ({})", field.id, field.name);
            let value = match (items.next(), items.next()) {
                (None, _) => Vec::new(),
                (Some(value), None) => {
                    translation::decode(field.sdn.as_ref(), &value.value, field.width, NewName::Refuse)
                        .map_err(|fault| Fault::invalid(format!("{place}: {}", fault.message)))?
                }
                (Some(_), Some(_)) => return Err(Fault::invalid(format!("{place} is given twice; give it once"))),
            };
            writer.push(&value, field.width);
        }
        Ok(writer.finish().0)
    }

    /// Splits a frame into the metadata of its packet_in header and the payload; `None` if the frame is shorter than
    /// the header.
    pub fn parse<'f>(&self, frame: &'f [u8]) -> Option<(Vec<PacketMetadata>, &'f [u8])> {
        let (header, payload) = frame.split_at_checked(self.bytes)?;
        let mut offset = 0;
        let metadata = self.fields.iter().map(|field| {
            let value = translation::encode(field.sdn.as_ref(), &bits::extract(header, offset, field.width));
            offset += field.width;
            PacketMetadata { metadata_id: field.id, value }
        });
        Some((metadata.collect(), payload))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> PacketHeader {
        let fields = [(1, "port", 9), (2, "reason", 4), (3, "pad", 3)];
        let fields = fields.map(|(id, name, width)| PacketField { id, name: name.to_owned(), width, sdn: None });
        PacketHeader { fields: fields.into(), bytes: 2 }
    }

    fn metadata(values: &[(u32, &[u8])]) -> Vec<PacketMetadata> {
        values.iter().map(|(id, value)| PacketMetadata { metadata_id: *id, value: value.to_vec() }).collect()
    }

    #[test]
    fn fields_are_concatenated() {
        let items = metadata(&[(3, &[0]), (1, &[1, 3]), (2, &[0xa])]);
        let bytes = header().serialise(&items).unwrap();
        assert_eq!(bytes, [0x81, 0xd0]);
        let (parsed, payload) = header().parse(&[0x81, 0xd0, 7, 8]).map(|(m, p)| (m, p.to_vec())).unwrap();
        assert_eq!(parsed, metadata(&[(1, &[1, 3]), (2, &[0xa]), (3, &[0])]));
        assert_eq!(payload, [7, 8]);
        assert!(header().parse(&[0x81]).is_none());
    }

    #[test]
    fn fields_that_are_left_out_are_zero() {
        assert_eq!(header().serialise(&metadata(&[(1, &[1, 3])])).unwrap(), [0x81, 0x80]);
        assert_eq!(header().serialise(&metadata(&[(3, &[7])])).unwrap(), [0, 7]);
        assert_eq!(header().serialise(&[]).unwrap(), [0, 0]);
    }

    #[test]
    fn fields_are_given_once_and_fit() {
        for (items, text) in [
            (
                metadata(&[(1, &[1]), (1, &[1]), (2, &[1]), (3, &[0])]),
                "packet_out field 1 (port) is given twice; give it once",
            ),
            (metadata(&[(1, &[2, 0]), (2, &[1]), (3, &[0])]), "packet_out field 1 (port): the value 0x0200 needs 10"),
            (metadata(&[(1, &[1]), (2, &[1]), (3, &[0]), (9, &[0])]), "packet_out has no metadata field 9"),
        ] {
            let message = header().serialise(&items).unwrap_err().message;
            assert!(message.contains(text), "{message}");
        }
    }
}
