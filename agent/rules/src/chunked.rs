//! Parses the framing of chunked bodies (RFC 9112, section 7.1).

use std::ops::ControlFlow;

use crate::framing::Reach;
use crate::http::path::hex;
use crate::http::{Fault, bad};

/// The limits, in bytes, of the extensions of a chunk and of the complete trailer.
const EXTENSIONS: usize = 256;
const TRAILER: usize = 8 << 10;

/// The position in a chunked body.
#[derive(Clone, Debug)]
pub(crate) struct Chunked {
    state: State,
    size: u64,
    /// The number of bytes read so far of the current chunk's extensions, or of the trailer.
    extra: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// In a chunk size; the number counts the digits read so far.
    Size(u8),
    Extensions,
    SizeLf,
    Data,
    DataCr,
    DataLf,
    /// At the start of a trailer line.
    Line,
    /// In the name of a trailer field.
    Name,
    Value,
    ValueLf,
    LastLf,
    Done,
}

impl Default for Chunked {
    fn default() -> Chunked {
        Chunked { state: State::Size(0), size: 0, extra: 0 }
    }
}

impl Chunked {
    pub(crate) fn feed<B>(
        &mut self,
        bytes: &[u8],
        data: &mut impl FnMut(&[u8]) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B, Reach>, Fault> {
        let mut at = 0;
        while at < bytes.len() && self.state != State::Done {
            if self.state != State::Data {
                self.step(bytes[at])?;
                at += 1;
                continue;
            }
            let used = usize::try_from(self.size).unwrap_or(usize::MAX).min(bytes.len() - at);
            self.size -= used as u64;
            if self.size == 0 {
                self.state = State::DataCr;
            }
            if let ControlFlow::Break(stop) = data(&bytes[at..at + used]) {
                return Ok(ControlFlow::Break(stop));
            }
            at += used;
        }
        Ok(ControlFlow::Continue(Reach { used: at, done: self.state == State::Done }))
    }

    /// Processes a byte that is not chunk data.
    fn step(&mut self, byte: u8) -> Result<(), Fault> {
        self.state = match (self.state, byte) {
            (State::Size(1..), b'\r') => State::SizeLf,
            (State::Size(1..), b';') => State::Extensions,
            (State::Size(digits @ 0..16), _) => {
                let Some(digit) = hex(byte) else { return bad("a chunk's size is no number") };
                self.size = self.size << 4 | u64::from(digit);
                State::Size(digits + 1)
            }
            (State::Extensions, b'\r') => State::SizeLf,
            (State::Extensions, _) => self.count_extra(byte, EXTENSIONS, State::Extensions)?,
            (State::SizeLf, b'\n') => {
                self.extra = 0;
                if self.size == 0 { State::Line } else { State::Data }
            }
            (State::DataCr, b'\r') => State::DataLf,
            (State::DataLf, b'\n') => State::Size(0),
            (State::Line, b'\r') => State::LastLf,
            (State::Name, b':') => self.count_extra(byte, TRAILER, State::Value)?,
            (State::Line | State::Name, _) if is_token(byte) => self.count_extra(byte, TRAILER, State::Name)?,
            (State::Value, b'\r') => State::ValueLf,
            (State::Value, _) => self.count_extra(byte, TRAILER, State::Value)?,
            (State::ValueLf, b'\n') => State::Line,
            (State::LastLf, b'\n') => State::Done,
            _ => return bad("the chunks are malformed"),
        };
        Ok(())
    }

    /// Counts a byte of the extensions or the trailer. Returns `state`, the state after this byte, or a fault if the
    /// count exceeds `limit` or the byte is a control character.
    fn count_extra(&mut self, byte: u8, limit: usize, state: State) -> Result<State, Fault> {
        self.extra += 1;
        if self.extra > limit {
            return bad("the chunks have too much beside their data");
        }
        if byte < b' ' && byte != b'\t' || byte == 0x7f { bad("the chunks have control characters") } else { Ok(state) }
    }
}

/// Returns whether a byte may occur in a field name (RFC 9110, section 5.6.2: token).
pub(crate) fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(bytes: &[u8], step: usize) -> Result<(Vec<u8>, usize, bool), &'static str> {
        let (mut chunked, mut body, mut used, mut done) = (Chunked::default(), Vec::new(), 0, false);
        for piece in bytes.chunks(step) {
            let reach = chunked.feed(piece, &mut |data| {
                body.extend_from_slice(data);
                ControlFlow::<()>::Continue(())
            });
            let ControlFlow::Continue(reach) = reach.map_err(|fault| fault.why)? else { unreachable!() };
            used += reach.used;
            done = reach.done;
        }
        Ok((body, used, done))
    }

    #[test]
    fn chunks_in_any_pieces() {
        let bytes = b"5\r\nhello\r\n0006;x=\"y\"\r\n world\r\n0\r\nA: b\r\nC:\r\n\r\nGET";
        for step in 1..=bytes.len() {
            assert_eq!(decode(bytes, step), Ok((b"hello world".to_vec(), bytes.len() - 3, true)), "{step}");
        }
    }

    #[test]
    fn malformed_chunks() {
        for bytes in [
            &b"\r\n"[..],
            b"+5\r\n",
            b"0x5\r\n",
            b"5 \r\n",
            b"5\n",
            b"5\r\nhelloX",
            b"5\r\nhello\n",
            b"0\r\n x\r\n",
            b"0\r\nx\r\n",
            b"0\r\na: b\n",
            b"0\r\n\n",
            b"5;\x01",
            b"11111111111111111\r\n",
            b"-1\r\n",
            b"5\rX",
            b"0\r\n: x\r\n",
        ] {
            assert!(decode(bytes, 1).is_err(), "{}", String::from_utf8_lossy(bytes));
            assert!(decode(bytes, bytes.len()).is_err(), "{}", String::from_utf8_lossy(bytes));
        }
    }
}
