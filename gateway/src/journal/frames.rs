//! Frames of records in a file. Each record is preceded by its length and two checksums. By them a reader distinguishes
//! an incomplete last record from a damaged record.
//!
//! The length has a checksum of its own. Otherwise a damaged length that exceeds the file would look like an incomplete
//! last record, and all following records would be ignored without an error.

use crc::{CRC_32_ISCSI, Crc, Table};

/// The checksum of lengths and records: CRC-32C.
static CHECKSUM: Crc<u32, Table<16>> = Crc::<u32, Table<16>>::new(&CRC_32_ISCSI);
/// Number of bytes in front of a record: three little-endian numbers of four bytes. They are the record's length, the
/// record's checksum, and a checksum of these two numbers.
const HEADER: usize = 12;

/// The content of a file at a position.
#[derive(Debug, PartialEq, Eq)]
pub enum Frame<'b> {
    /// The file ends at this position.
    End,
    /// An incomplete record at the end of the file, because the process that wrote it was killed.
    Cut,
    /// The bytes differ from the bytes that were written.
    Damaged,
    /// A record, and the position that follows the record.
    Record(&'b [u8], usize),
}

/// Appends a record, preceded by its length and checksums.
///
/// # Panics
/// Panics when the record has 4 GB or more.
pub fn push(bytes: &mut Vec<u8>, record: &[u8]) {
    let length = u32::try_from(record.len()).expect("a record below 4 GB");
    let start = bytes.len();
    bytes.extend(length.to_le_bytes());
    bytes.extend(CHECKSUM.checksum(record).to_le_bytes());
    let header = CHECKSUM.checksum(&bytes[start..]);
    bytes.extend(header.to_le_bytes());
    bytes.extend(record);
}

/// Returns the content at this position of a file.
pub fn at(bytes: &[u8], position: usize) -> Frame<'_> {
    let rest = &bytes[position..];
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
        Some(record) => Frame::Record(record, position + HEADER + length),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn incomplete_and_damaged_records_are_distinguished_at_every_byte() {
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
        for position in second..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[position] ^= 0x10;
            assert_eq!(at(&damaged, second), Frame::Damaged, "byte {position}");
        }
        assert_eq!(at(&[0; 40], 0), Frame::Damaged, "zeros, which a file system may leave of an unfinished write");
    }
}
