//! How far the bytes of a document mean the same to rules and to a server, by all that names its character set: the media type,
//! an XML declaration, and the bytes themselves.

use super::utf8::{Sound, Utf8};
use crate::charset::Charset;

#[derive(Debug)]
pub(super) struct Encoding {
    /// The one of those named that is understood least.
    pub(super) charset: Charset,
    utf8: Utf8,
    /// All bytes that were passed are ASCII, which UTF-8 and character sets of one byte read alike.
    is_ascii: bool,
    /// What follows is unreadable.
    is_faulty: bool,
}

impl Encoding {
    pub(super) fn new(charset: Charset) -> Encoding {
        Encoding { charset, utf8: Utf8::default(), is_ascii: true, is_faulty: charset == Charset::Other }
    }

    /// The number of bytes up to the first that rules and a server may read differently; what follows is unreadable. A NUL is
    /// such a byte: XML has none, and in UTF-16 every ASCII character has one.
    pub(super) fn readable(&mut self, bytes: &[u8]) -> usize {
        if self.is_faulty {
            return 0;
        }
        let nul = memchr::memchr(0, bytes).unwrap_or(bytes.len());
        let sound = if self.charset == Charset::Utf8 {
            self.utf8.sound(&bytes[..nul])
        } else {
            let length = bytes[..nul].iter().position(|byte| !byte.is_ascii()).unwrap_or(nul);
            Sound { length, all: length == nul }
        };
        self.is_faulty = nul < bytes.len() || !sound.all;
        sound.length
    }

    /// Notes bytes that were read, before those of a declaration.
    pub(super) fn pass(&mut self, bytes: &[u8]) {
        self.is_ascii &= bytes.is_ascii();
    }

    /// Takes the character set of a declaration. If `charset` changes, `readable` has to look at what follows again.
    pub(super) fn declare(&mut self, declared: Charset) {
        if declared > self.charset {
            self.charset = declared;
            self.is_faulty = declared == Charset::Other || !self.is_ascii;
        }
    }
}
