//! Splits a server's bytes into lines.

use crate::mail::imap::literal;
use crate::values::allocated;

/// The maximum number of bytes of a line that are stored. The lines that the checks need are shorter.
const MAX_LINE_BYTES: usize = 16 << 10;

/// Splits a server's bytes into lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Lines {
    line: Vec<u8>,
    /// The number of bytes of an announced literal that have not arrived yet.
    literal: usize,
    /// Whether lines may announce literals, as in IMAP.
    has_literals: bool,
}

impl Lines {
    pub(super) fn new(has_literals: bool) -> Lines {
        Lines { has_literals, ..Lines::default() }
    }

    /// Returns the bytes of memory in use.
    pub(super) fn memory(&self) -> usize {
        allocated(&self.line)
    }

    /// Processes bytes of the server. Passes each line that ends in these bytes to `each`, without its line end and its
    /// literals.
    pub(super) fn feed(&mut self, mut bytes: &[u8], each: &mut impl FnMut(&[u8])) {
        while !bytes.is_empty() {
            let skipped = self.literal.min(bytes.len());
            (self.literal, bytes) = (self.literal - skipped, &bytes[skipped..]);
            let end = memchr::memchr(b'\n', bytes);
            let (piece, rest) = bytes.split_at(end.map_or(bytes.len(), |end| end + 1));
            let stored = piece.len().min(MAX_LINE_BYTES.saturating_sub(self.line.len()));
            self.line.extend_from_slice(&piece[..stored]);
            bytes = rest;
            if end.is_none() {
                return;
            }
            let line = self.line.strip_suffix(b"\n").unwrap_or(&self.line);
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            match literal(line).filter(|_| self.has_literals) {
                Some((bytes, _)) => {
                    self.literal = bytes;
                    self.line.truncate(MAX_LINE_BYTES / 2);
                }
                None => {
                    each(line);
                    self.line.clear();
                }
            }
        }
    }
}
