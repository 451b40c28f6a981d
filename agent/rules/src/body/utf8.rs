//! Validates a UTF-8 text that arrives in pieces.

/// The validator. It stores the first bytes of a character that continues in the next piece.
#[derive(Debug, Default)]
pub(super) struct Utf8 {
    partial: [u8; 4],
    length: usize,
}

/// How many bytes of a piece are valid UTF-8.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ValidPrefix {
    /// The number of the piece's bytes before the fault, or of all its bytes if there is no fault. The first byte of an
    /// invalid character counts as valid, in the same way as if the rest of the character were in the next piece.
    pub length: usize,
    /// Whether the piece contains no fault.
    pub all: bool,
}

impl Utf8 {
    /// Validates the next piece. The caller must not call this method again after a fault.
    pub(super) fn validate(&mut self, bytes: &[u8]) -> ValidPrefix {
        let mut at = 0;
        while self.length > 0 && at < bytes.len() {
            self.partial[self.length] = bytes[at];
            let faulty = match std::str::from_utf8(&self.partial[..=self.length]) {
                Ok(_) => {
                    self.length = 0;
                    false
                }
                Err(fault) => {
                    self.length += 1;
                    fault.error_len().is_some()
                }
            };
            if faulty {
                return ValidPrefix { length: at, all: false };
            }
            at += 1;
        }
        let Err(fault) = std::str::from_utf8(&bytes[at..]) else {
            return ValidPrefix { length: bytes.len(), all: true };
        };
        let first = at + fault.valid_up_to();
        if fault.error_len().is_some() {
            return ValidPrefix { length: first + 1, all: false };
        }
        let partial = &bytes[first..];
        self.partial[..partial.len()].copy_from_slice(partial);
        self.length = partial.len();
        ValidPrefix { length: bytes.len(), all: true }
    }
}

#[cfg(test)]
mod tests {
    use super::{Utf8, ValidPrefix};

    /// The test builds all texts of four of the bytes in `kinds` and splits them at every offset. Each result equals
    /// that of the standard library.
    #[test]
    fn faults_do_not_depend_on_how_the_bytes_are_cut() {
        let kinds = [b'a', 0x80, 0x9f, 0xa0, 0xbf, 0xc0, 0xc3, 0xe0, 0xe2, 0xed, 0xef, 0xf0, 0xf4, 0xf5, 0xff];
        let count = kinds.len();
        for number in 0..count.pow(4) {
            let mut text: Vec<u8> = (0..4).map(|place| kinds[number / count.pow(place) % count]).collect();
            text.extend(b"....");
            let expected = std::str::from_utf8(&text).is_ok();
            for cut in 0..text.len() {
                let mut utf8 = Utf8::default();
                let first = utf8.validate(&text[..cut]);
                let all = first.all && utf8.validate(&text[cut..]).all;
                assert_eq!(all, expected, "{text:?} cut at {cut}");
            }
            let mut utf8 = Utf8::default();
            assert_eq!(text.chunks(1).all(|byte| utf8.validate(byte).all), expected, "{text:?} byte by byte");
        }
    }

    #[test]
    fn bytes_before_a_fault_are_valid() {
        let valid_prefix = |pieces: &[&[u8]]| {
            let mut utf8 = Utf8::default();
            pieces.iter().map(|piece| utf8.validate(piece)).last().expect("a piece")
        };
        assert_eq!(valid_prefix(&[b"ab\xe2\x82\"cd"]), ValidPrefix { length: 3, all: false });
        assert_eq!(valid_prefix(&[b"ab\xe2", b"\x82", b"\"cd"]), ValidPrefix { length: 0, all: false });
        assert_eq!(valid_prefix(&[b"ab\xe2", b"\x82\"cd"]), ValidPrefix { length: 1, all: false });
        assert_eq!(valid_prefix(&[b"ab\xe2", b"\x82\xaccd\xff"]), ValidPrefix { length: 5, all: false });
        assert_eq!(valid_prefix(&[b"\xf0\x9f", b"\x98", b"\x80"]), ValidPrefix { length: 1, all: true });
    }
}
