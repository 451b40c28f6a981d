//! Writes captures in the classic pcap format, for tcpdump and Wireshark.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

const MAGIC_MICROSECONDS: u32 = 0xa1b2_c3d4;
const VERSION: (u16, u16) = (2, 4);
const SNAPSHOT_LENGTH: u32 = 262_144;
const LINK_TYPE_ETHERNET: u32 = 1;

/// Writes a capture to a file or to another writer.
pub struct PcapWriter<W: Write> {
    out: W,
}

impl PcapWriter<BufWriter<File>> {
    /// Creates a capture file, or replaces the existing one.
    pub fn create(path: &Path) -> io::Result<Self> {
        Self::new(BufWriter::new(File::create(path)?))
    }
}

impl<W: Write> PcapWriter<W> {
    /// Starts a capture by writing its header.
    pub fn new(mut out: W) -> io::Result<Self> {
        out.write_all(&MAGIC_MICROSECONDS.to_ne_bytes())?;
        out.write_all(&VERSION.0.to_ne_bytes())?;
        out.write_all(&VERSION.1.to_ne_bytes())?;
        // The time zone and the accuracy of timestamps, which are always 0.
        out.write_all(&[0; 8])?;
        out.write_all(&SNAPSHOT_LENGTH.to_ne_bytes())?;
        out.write_all(&LINK_TYPE_ETHERNET.to_ne_bytes())?;
        Ok(Self { out })
    }

    /// Appends a frame captured at time `when`, with its original length and at most 262,144 of its bytes.
    pub fn write(&mut self, when: SystemTime, frame: &[u8]) -> io::Result<()> {
        let since = when.duration_since(UNIX_EPOCH).unwrap_or_default();
        let captured = frame.len().min(SNAPSHOT_LENGTH as usize);
        for word in [since.as_secs() as u32, since.subsec_micros(), captured as u32, frame.len() as u32] {
            self.out.write_all(&word.to_ne_bytes())?;
        }
        self.out.write_all(&frame[..captured])
    }

    /// Makes all frames written so far visible to readers of the file.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn records_follow_the_header() {
        let mut writer = PcapWriter::new(Vec::new()).unwrap();
        writer.write(UNIX_EPOCH + Duration::from_micros(3_000_007), b"abcd").unwrap();
        assert_eq!(writer.out.len(), 24 + 16 + 4);
        let word = |at: usize| u32::from_ne_bytes(writer.out[at..at + 4].try_into().unwrap());
        assert_eq!([word(24), word(28), word(32), word(36)], [3, 7, 4, 4]);
        assert_eq!(&writer.out[40..], b"abcd");
    }
}
