//! The lines that a mail client sends, and the words in these lines.

use crate::http::head::split;

/// A line of a client's stream, with the offsets of its start and end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line<'s> {
    /// The line without its line end.
    pub(super) text: &'s [u8],
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) stream: &'s [u8],
}

impl<'s> Line<'s> {
    /// Returns the first word, and the text behind it without surrounding white space.
    pub(super) fn word(self) -> (&'s [u8], &'s [u8]) {
        word(self.text)
    }
}

pub(super) fn word(text: &[u8]) -> (&[u8], &[u8]) {
    let (word, rest) = split(text, b' ');
    (word, rest.trim_ascii())
}
