//! Records in a file: each with its length and checksums in front, so that a cut one and a damaged one are told apart.
//!
//! The length has a checksum of its own. Without it a damaged length would reach beyond the end of the file, as a cut record does, and
//! all records behind it would be dropped unseen.

use crc::{CRC_32_ISCSI, Crc, Table};

static CHECKSUM: Crc<u32, Table<16>> = Crc::<u32, Table<16>>::new(&CRC_32_ISCSI);
/// Bytes in front of a record: its length, its checksum, and the checksum of these two, little-endian.
const HEADER: usize = 12;

/// What stands at a place of a file.
#[derive(Debug, PartialEq, Eq)]
pub enum Frame<'b> {
    /// Nothing: the file ends here.
    End,
    /// The beginning of a record, and the end of the file: whatever wrote it was ended meanwhile.
    Cut,
    /// Other bytes than those that were written.
    Damaged,
    /// A record, and the place behind it.
    Record(&'b [u8], usize),
}

/// Puts a record behind others.
///
/// # Panics
/// When the record has 4 GB or more.
pub fn push(bytes: &mut Vec<u8>, record: &[u8]) {
    let length = u32::try_from(record.len()).expect("a record below 4 GB");
    let start = bytes.len();
    bytes.extend(length.to_le_bytes());
    bytes.extend(CHECKSUM.checksum(record).to_le_bytes());
    let header = CHECKSUM.checksum(&bytes[start..]);
    bytes.extend(header.to_le_bytes());
    bytes.extend(record);
}

/// What stands at this place.
pub fn at(bytes: &[u8], place: usize) -> Frame<'_> {
    let rest = &bytes[place..];
    if rest.is_empty() {
        return Frame::End;
    }
    let Some((header, rest)) = rest.split_at_checked(HEADER) else { return Frame::Cut };
    let number = |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
    if number(8) != CHECKSUM.checksum(&header[..8]) {
        return Frame::Damaged;
    }
    let length = number(0) as usize;
    match rest.get(..length) {
        None => Frame::Cut,
        Some(record) if CHECKSUM.checksum(record) != number(4) => Frame::Damaged,
        Some(record) => Frame::Record(record, place + HEADER + length),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_whole_or_cut_or_damaged_wherever_that_is() {
        let mut bytes = Vec::new();
        push(&mut bytes, b"first");
        let second = bytes.len();
        push(&mut bytes, b"the second");
        assert_eq!(at(&bytes, 0), Frame::Record(b"first", second));
        assert_eq!(at(&bytes, second), Frame::Record(b"the second", bytes.len()));
        assert_eq!(at(&bytes, bytes.len()), Frame::End);
        for end in second + 1..bytes.len() {
            assert_eq!(at(&bytes[..end], second), Frame::Cut, "{end} bytes");
        }
        for place in second..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[place] ^= 0x10;
            assert_eq!(at(&damaged, second), Frame::Damaged, "byte {place}");
        }
        assert_eq!(at(&[0; 40], 0), Frame::Damaged, "what a file system leaves of a file that was being written");
    }
}
