//! Lines of a client, and the words in them.

use crate::http::head::split;

/// A line of the client.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line<'s> {
    /// Without its end.
    pub(super) text: &'s [u8],
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) stream: &'s [u8],
}

impl<'s> Line<'s> {
    /// The first word, and the rest without the spaces between.
    pub(super) fn word(self) -> (&'s [u8], &'s [u8]) {
        word(self.text)
    }
}

pub(super) fn word(text: &[u8]) -> (&[u8], &[u8]) {
    let (word, rest) = split(text, b' ');
    (word, rest.trim_ascii())
}
