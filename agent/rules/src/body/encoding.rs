//! Finds up to which byte rules and servers decode a document in the same way. The character set depends on the media
//! type, on an XML declaration, and on the bytes themselves.

use super::utf8::{Utf8, ValidPrefix};
use crate::charset::Charset;

#[derive(Debug)]
pub(super) struct Encoding {
    /// The class of the document's character set. If several character sets were named, the greatest class counts: the
    /// class that the parsers understand least.
    pub(super) charset: Charset,
    utf8: Utf8,
    /// Whether all bytes parsed so far are ASCII, which UTF-8 and single-byte character sets decode alike.
    is_ascii: bool,
    /// Whether an unreadable byte has been found, so that all bytes of later pieces are unreadable.
    is_faulty: bool,
}

impl Encoding {
    pub(super) fn new(charset: Charset) -> Encoding {
        Encoding { charset, utf8: Utf8::default(), is_ascii: true, is_faulty: charset == Charset::Other }
    }

    /// Returns the number of bytes before the first byte that rules and a server may decode differently. This byte and
    /// all later bytes are unreadable. A NUL is such a byte, because XML contains none, and in UTF-16 every ASCII
    /// character contains one.
    pub(super) fn readable(&mut self, bytes: &[u8]) -> usize {
        if self.is_faulty {
            return 0;
        }
        let nul = memchr::memchr(0, bytes).unwrap_or(bytes.len());
        let valid = if self.charset == Charset::Utf8 {
            self.utf8.validate(&bytes[..nul])
        } else {
            let length = bytes[..nul].iter().position(|byte| !byte.is_ascii()).unwrap_or(nul);
            ValidPrefix { length, all: length == nul }
        };
        self.is_faulty = nul < bytes.len() || !valid.all;
        valid.length
    }

    /// Records whether parsed bytes are ASCII, which decides whether a later XML declaration may change the character
    /// set.
    pub(super) fn pass(&mut self, bytes: &[u8]) {
        self.is_ascii &= bytes.is_ascii();
    }

    /// Applies the character set of an XML declaration. If `charset` changes, the caller has to call `readable` again
    /// for the bytes behind the declaration.
    pub(super) fn declare(&mut self, declared: Charset) {
        if declared > self.charset {
            self.charset = declared;
            self.is_faulty = declared == Charset::Other || !self.is_ascii;
        }
    }
}
