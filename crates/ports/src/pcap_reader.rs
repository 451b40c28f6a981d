//! Reads captures in the classic pcap format from files and pipes. Captures may have either byte order, and timestamps
//! in microseconds or nanoseconds.

use std::io::{self, Read};
use std::time::Duration;

const MAGIC_MICROSECONDS: u32 = 0xa1b2_c3d4;
const MAGIC_NANOSECONDS: u32 = 0xa1b2_3c4d;
const HEADER: usize = 24;
const RECORD_HEADER: usize = 16;
/// The longest accepted record in bytes. No capture tool writes longer records, so a longer length indicates a damaged
/// file, for which no memory should be allocated.
const LONGEST_RECORD: u32 = 1 << 20;

/// A frame from a capture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The time of the capture, as the duration since the start of 1970.
    pub time: Duration,
    /// The frame's bytes.
    pub frame: Vec<u8>,
}

/// Reads the frames of a capture from a file or pipe.
pub struct PcapReader<R: Read> {
    input: R,
    swapped: bool,
    nanoseconds: bool,
}

fn invalid_data(text: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text.into())
}

impl<R: Read> PcapReader<R> {
    /// Reads the file's header.
    ///
    /// # Errors
    /// If the input is not a pcap file, or cannot be read.
    pub fn new(mut input: R) -> io::Result<Self> {
        let mut header = [0; HEADER];
        input.read_exact(&mut header).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => invalid_data("this is no pcap file: it is shorter than a header"),
            _ => error,
        })?;
        let magic = word(&header, 0, false);
        let (swapped, nanoseconds) = match (magic, magic.swap_bytes()) {
            (MAGIC_MICROSECONDS, _) => (false, false),
            (MAGIC_NANOSECONDS, _) => (false, true),
            (_, MAGIC_MICROSECONDS) => (true, false),
            (_, MAGIC_NANOSECONDS) => (true, true),
            _ => {
                return Err(invalid_data(
                    "this is no pcap file (pcapng is not read; convert it with `editcap -F pcap`)",
                ));
            }
        };
        Ok(Self { input, swapped, nanoseconds })
    }

    /// Reads the next frame; returns `None` at the end of the file.
    ///
    /// # Errors
    /// If the file ends within a frame, a frame is too long or was captured only in part, or the file cannot be read.
    pub fn next_record(&mut self) -> io::Result<Option<Record>> {
        let mut header = [0; RECORD_HEADER];
        let mut read = 0;
        while read < RECORD_HEADER {
            match self.input.read(&mut header[read..]) {
                Ok(0) if read == 0 => return Ok(None),
                Ok(0) => return Err(invalid_data("the file ends within the header of a frame")),
                Ok(bytes) => read += bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        let word = |place| word(&header, place, self.swapped);
        let (captured, length) = (word(8), word(12));
        if captured != length {
            return Err(invalid_data(format!("of a frame of {length} bytes only {captured} were captured")));
        }
        if captured > LONGEST_RECORD {
            return Err(invalid_data(format!(
                "a frame of {captured} bytes; the longest that is read has {LONGEST_RECORD}"
            )));
        }
        let fraction =
            if self.nanoseconds { Duration::from_nanos(word(4).into()) } else { Duration::from_micros(word(4).into()) };
        let time = Duration::from_secs(word(0).into()) + fraction;
        let mut frame = vec![0; captured as usize];
        self.input.read_exact(&mut frame).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => invalid_data("the file ends within a frame"),
            _ => error,
        })?;
        Ok(Some(Record { time, frame }))
    }
}

fn word(bytes: &[u8], place: usize, swapped: bool) -> u32 {
    let word = bytes[place..place + 4].iter().rev().fold(0, |word, byte| word << 8 | u32::from(*byte));
    let word = if cfg!(target_endian = "big") { word.swap_bytes() } else { word };
    if swapped { word.swap_bytes() } else { word }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pcap::PcapWriter;
    use std::time::UNIX_EPOCH;

    fn written(frames: &[&[u8]]) -> Vec<u8> {
        let mut file = Vec::new();
        let mut writer = PcapWriter::new(&mut file).unwrap();
        for (number, frame) in frames.iter().enumerate() {
            writer.write(UNIX_EPOCH + Duration::from_micros(1_000_001 * number as u64), frame).unwrap();
        }
        file
    }

    fn read(file: &[u8]) -> io::Result<Vec<Record>> {
        let mut reader = PcapReader::new(file)?;
        let mut records = Vec::new();
        while let Some(record) = reader.next_record()? {
            records.push(record);
        }
        Ok(records)
    }

    #[test]
    fn what_was_written_is_read() {
        let long = vec![7; 70_000];
        let records = read(&written(&[b"", b"a", &long])).unwrap();
        let times: Vec<_> = records.iter().map(|record| record.time).collect();
        assert_eq!(times, [0, 1_000_001, 2_000_002].map(Duration::from_micros));
        let frames: Vec<_> = records.iter().map(|record| record.frame.as_slice()).collect();
        assert_eq!(frames, [b"".as_slice(), b"a", &long]);
    }

    #[test]
    fn both_byte_orders_and_precisions() {
        for (order, magic, fraction) in [
            (u32::to_be_bytes as fn(u32) -> [u8; 4], MAGIC_MICROSECONDS, 5),
            (u32::to_le_bytes, MAGIC_MICROSECONDS, 5),
            (u32::to_be_bytes, MAGIC_NANOSECONDS, 5000),
            (u32::to_le_bytes, MAGIC_NANOSECONDS, 5000),
        ] {
            let words = [magic, 0, 0, 0, 262_144, 1, 3, fraction, 4, 4];
            let mut file: Vec<u8> = words.into_iter().flat_map(order).collect();
            file.extend(b"abcd");
            let time = Duration::from_micros(3_000_005);
            assert_eq!(read(&file).unwrap(), [Record { time, frame: b"abcd".to_vec() }]);
        }
    }

    #[test]
    fn broken_files_are_refused() {
        let good = written(&[b"abcd"]);
        let mut cut = good.clone();
        cut[24 + 8] = 3;
        let mut huge = good.clone();
        huge[24 + 8..24 + 16].fill(0xff);
        for (file, text) in [
            (&good[..20], "shorter than a header"),
            (&[9; 40][..], "this is no pcap file (pcapng"),
            (&good[..30], "ends within the header of a frame"),
            (&good[..42], "ends within a frame"),
            (&cut, "of a frame of 4 bytes only 3 were captured"),
            (&huge, "the longest that is read"),
        ] {
            let error = read(file).unwrap_err().to_string();
            assert!(error.contains(text), "«{error}» does not contain «{text}»");
        }
    }
}
