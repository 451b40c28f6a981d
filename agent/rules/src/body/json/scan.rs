//! Scans the grammar of JSON (RFC 8259) incrementally. The scanner reads each byte once. It neither copies nor decodes
//! a value that no rule compares.

use crate::body::evaluation::{Flow, refuse};
use crate::values::allocated;

/// Receives the events of a scanned document.
pub(super) trait Sink {
    /// An array or an object begins.
    fn open(&mut self, array: bool);
    /// The innermost open array or object ends.
    fn close(&mut self);
    /// The name of a member of an object; the member's value follows.
    fn name(&mut self, name: &[u8]) -> Result<(), Flow>;
    /// A value that is neither array nor object begins. Returns whether the scanner has to deliver its text.
    fn needs_text(&mut self) -> bool;
    /// The text of a value for which `needs_text` was true.
    fn value(&mut self, text: &[u8]) -> Result<(), Flow>;
}

#[derive(Debug)]
pub(super) struct Scanner {
    state: State,
    /// The open arrays (true) and objects (false), from the outermost to the innermost.
    open: Vec<bool>,
    depth: usize,
    /// Whether the text of the current string, number or word is needed.
    is_needed: bool,
    /// The decoded bytes of the current text that came in earlier pieces of the document, or up to the last escape of
    /// this piece.
    text: Vec<u8>,
    /// The first half of a surrogate pair (UTF-16); 0 if there is none.
    high: u16,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Value,
    /// After `[`: a value or the end of the array follows.
    FirstValue,
    Name,
    /// After `{`: a name or the end of the object follows.
    FirstName,
    Colon,
    /// After a value: a comma or the end of an array or object follows.
    After,
    Text(Role),
    /// After a backslash in a string.
    Escape(Role),
    /// After `\u` in a string. The first number counts the hexadecimal digits read so far; the second number is the
    /// value of these digits.
    Unicode(Role, u8, u16),
    Number(Number),
    /// In the word `true`, `false` or `null`. The number is the count of the word's bytes read so far.
    Word(&'static [u8], usize),
}

/// Whether the current string is the name of a member or a value.
#[derive(Clone, Copy, Debug)]
enum Role {
    Name,
    Value,
}

/// The part of a number in which the scanner is.
#[derive(Clone, Copy, Debug)]
enum Number {
    Sign,
    Zero,
    Integer,
    Point,
    Fraction,
    E,
    ExponentSign,
    Exponent,
}

impl Number {
    /// Returns the part of the number that begins with `byte`, a byte that does not continue the current run of digits.
    /// None if the byte cannot follow.
    fn next(self, byte: u8) -> Option<Number> {
        Some(match (self, byte) {
            (Number::Sign, b'0') => Number::Zero,
            (Number::Sign, b'1'..=b'9') => Number::Integer,
            (Number::Zero | Number::Integer, b'.') => Number::Point,
            (Number::Point, b'0'..=b'9') => Number::Fraction,
            (Number::Zero | Number::Integer | Number::Fraction, b'e' | b'E') => Number::E,
            (Number::E, b'+' | b'-') => Number::ExponentSign,
            (Number::E | Number::ExponentSign, b'0'..=b'9') => Number::Exponent,
            _ => return None,
        })
    }

    fn is_complete_number(self) -> bool {
        matches!(self, Number::Zero | Number::Integer | Number::Fraction | Number::Exponent)
    }
}

/// The remaining bytes of a piece, or the reason to end the scan.
type Rest<'b> = Result<&'b [u8], Flow>;

impl Scanner {
    /// Scans a document with at most `depth` nested arrays and objects.
    pub(super) fn new(depth: usize) -> Scanner {
        Scanner { state: State::Value, open: Vec::new(), depth, is_needed: false, text: Vec::new(), high: 0 }
    }

    pub(super) fn memory(&self) -> usize {
        allocated(&self.open) + allocated(&self.text)
    }

    pub(super) fn push(&mut self, mut bytes: &[u8], sink: &mut impl Sink) -> Result<(), Flow> {
        while let Some((&byte, rest)) = bytes.split_first() {
            bytes = match self.state {
                State::Text(role) => self.string(role, bytes, sink)?,
                State::Number(number) => self.number(number, bytes, sink)?,
                State::Word(word, at) => self.word(word, at, bytes, sink)?,
                State::Escape(role) => self.escape(role, byte).map(|()| rest)?,
                State::Unicode(role, digits, code) => self.unicode(role, digits, code, byte).map(|()| rest)?,
                _ if is_white(byte) => rest,
                State::FirstValue if byte == b']' => self.close(true, sink).map(|()| rest)?,
                State::Value | State::FirstValue => self.begin(byte, rest, sink)?,
                State::FirstName if byte == b'}' => self.close(false, sink).map(|()| rest)?,
                State::Name | State::FirstName => self.begin_name(byte, rest, sink)?,
                State::Colon => self.colon(byte).map(|()| rest)?,
                State::After => self.after(byte, sink).map(|()| rest)?,
            };
        }
        Ok(())
    }

    /// Handles the end of the document.
    pub(super) fn end(&mut self, sink: &mut impl Sink) -> Result<(), Flow> {
        match self.state {
            _ if !self.open.is_empty() => Err(malformed()),
            State::Number(number) if number.is_complete_number() => self.finish(b"", sink),
            State::After => Ok(()),
            _ => Err(malformed()),
        }
    }

    fn begin<'b>(&mut self, byte: u8, rest: &'b [u8], sink: &mut impl Sink) -> Rest<'b> {
        if let b'[' | b'{' = byte {
            if self.open.len() >= self.depth {
                return Err(malformed());
            }
            let array = byte == b'[';
            self.open.push(array);
            self.state = if array { State::FirstValue } else { State::FirstName };
            sink.open(array);
            return Ok(rest);
        }
        self.is_needed = sink.needs_text();
        self.text.clear();
        self.state = match byte {
            b'"' => return self.string(Role::Value, rest, sink),
            b't' => return self.word(b"true", 1, rest, sink),
            b'f' => return self.word(b"false", 1, rest, sink),
            b'n' => return self.word(b"null", 1, rest, sink),
            b'-' => State::Number(Number::Sign),
            b'0' => State::Number(Number::Zero),
            b'1'..=b'9' => State::Number(Number::Integer),
            _ => return Err(malformed()),
        };
        self.append(&[byte]);
        Ok(rest)
    }

    fn begin_name<'b>(&mut self, byte: u8, rest: &'b [u8], sink: &mut impl Sink) -> Rest<'b> {
        if byte != b'"' {
            return Err(malformed());
        }
        self.is_needed = true;
        self.text.clear();
        self.string(Role::Name, rest, sink)
    }

    fn colon(&mut self, byte: u8) -> Result<(), Flow> {
        self.state = State::Value;
        if byte == b':' { Ok(()) } else { Err(malformed()) }
    }

    fn after(&mut self, byte: u8, sink: &mut impl Sink) -> Result<(), Flow> {
        match (byte, self.open.last()) {
            (b',', Some(&array)) => {
                self.state = if array { State::Value } else { State::Name };
                Ok(())
            }
            (b']', _) => self.close(true, sink),
            (b'}', _) => self.close(false, sink),
            _ => Err(malformed()),
        }
    }

    fn close(&mut self, array: bool, sink: &mut impl Sink) -> Result<(), Flow> {
        if self.open.pop() != Some(array) {
            return Err(malformed());
        }
        sink.close();
        self.state = State::After;
        Ok(())
    }

    /// Appends bytes to the current text, if it is needed.
    fn append(&mut self, chunk: &[u8]) {
        if self.is_needed {
            self.text.extend_from_slice(chunk);
        }
    }

    /// Ends the current value, and passes its text to `sink` if the text is needed. `chunk` contains the bytes of the
    /// text that are not stored yet.
    fn finish(&mut self, chunk: &[u8], sink: &mut impl Sink) -> Result<(), Flow> {
        self.state = State::After;
        match self.is_needed {
            true => sink.value(joined(&mut self.text, chunk)),
            false => Ok(()),
        }
    }

    fn string<'b>(&mut self, role: Role, bytes: &'b [u8], sink: &mut impl Sink) -> Rest<'b> {
        let length = unescaped_length(bytes);
        if self.high != 0 && bytes.first().is_some_and(|&byte| byte != b'\\') {
            return Err(malformed());
        }
        let chunk = &bytes[..length];
        match (bytes.get(length), role) {
            (Some(b'"'), Role::Value) => self.finish(chunk, sink)?,
            (Some(b'"'), Role::Name) => {
                self.state = State::Colon;
                sink.name(joined(&mut self.text, chunk))?;
            }
            (Some(b'\\'), _) => {
                self.append(chunk);
                self.state = State::Escape(role);
            }
            (Some(_), _) => return Err(malformed()),
            (None, _) => {
                self.append(chunk);
                self.state = State::Text(role);
            }
        }
        Ok(bytes.get(length + 1..).unwrap_or_default())
    }

    fn escape(&mut self, role: Role, byte: u8) -> Result<(), Flow> {
        let character = match byte {
            b'u' => {
                self.state = State::Unicode(role, 0, 0);
                return Ok(());
            }
            _ if self.high != 0 => return Err(malformed()),
            b'"' | b'\\' | b'/' => byte,
            b'b' => 8,
            b'f' => 12,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            _ => return Err(malformed()),
        };
        self.append(&[character]);
        self.state = State::Text(role);
        Ok(())
    }

    fn unicode(&mut self, role: Role, digits: u8, code: u16, byte: u8) -> Result<(), Flow> {
        let Some(digit) = char::from(byte).to_digit(16) else { return Err(malformed()) };
        let code = code << 4 | digit as u16;
        if digits < 3 {
            self.state = State::Unicode(role, digits + 1, code);
            return Ok(());
        }
        self.state = State::Text(role);
        if self.high == 0 && (0xd800..0xdc00).contains(&code) {
            self.high = code;
            return Ok(());
        }
        let pair = [self.high, code];
        let units = if self.high == 0 { &pair[1..] } else { &pair[..] };
        self.high = 0;
        let mut characters = char::decode_utf16(units.iter().copied());
        let (Some(Ok(character)), None) = (characters.next(), characters.next()) else { return Err(malformed()) };
        self.append(character.encode_utf8(&mut [0; 4]).as_bytes());
        Ok(())
    }

    fn number<'b>(&mut self, mut number: Number, bytes: &'b [u8], sink: &mut impl Sink) -> Rest<'b> {
        for (at, &byte) in bytes.iter().enumerate() {
            if byte.is_ascii_digit() && matches!(number, Number::Integer | Number::Fraction | Number::Exponent) {
                continue;
            }
            number = match number.next(byte) {
                Some(next) => next,
                None if number.is_complete_number() && self.may_follow(byte) => {
                    self.finish(&bytes[..at], sink)?;
                    return Ok(&bytes[at..]);
                }
                None => return Err(malformed()),
            };
        }
        self.append(bytes);
        self.state = State::Number(number);
        Ok(b"")
    }

    /// Returns whether `byte` may follow a value.
    fn may_follow(&self, byte: u8) -> bool {
        match byte {
            b',' => !self.open.is_empty(),
            b']' => self.open.last() == Some(&true),
            b'}' => self.open.last() == Some(&false),
            _ => is_white(byte),
        }
    }

    fn word<'b>(&mut self, word: &'static [u8], at: usize, bytes: &'b [u8], sink: &mut impl Sink) -> Rest<'b> {
        let missing = &word[at..];
        let length = missing.len().min(bytes.len());
        if missing[..length] != bytes[..length] {
            return Err(malformed());
        }
        if length == missing.len() {
            self.finish(word, sink)?;
        } else {
            self.state = State::Word(word, at + length);
        }
        Ok(&bytes[length..])
    }
}

/// Returns the stored text with `chunk` appended. If nothing is stored, returns `chunk` without copying it.
fn joined<'t>(saved: &'t mut Vec<u8>, chunk: &'t [u8]) -> &'t [u8] {
    if saved.is_empty() {
        return chunk;
    }
    saved.extend_from_slice(chunk);
    saved
}

fn malformed() -> Flow {
    refuse("the JSON is malformed, or nested deeper than limits.depth")
}

fn is_white(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\r' | b'\t')
}

/// Returns the number of bytes before the first quote, backslash or control character; the number of all bytes if there
/// is none. The function tests a 64-bit word of eight bytes at a time by subtraction (Mycroft). In the result `marks`,
/// the lowest set bit is the high bit of the first such byte of the word; a borrow only affects higher bytes. If the
/// word contains no such byte, `marks` is 0.
fn unescaped_length(bytes: &[u8]) -> usize {
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    const TOPS: u64 = ONES << 7;
    let below = |word: u64, bound: u64| word.wrapping_sub(ONES * bound) & !word;
    let mut words = bytes.chunks_exact(8);
    let mut at = 0;
    for word in &mut words {
        let word = u64::from_le_bytes(word.try_into().expect("eight bytes"));
        let equal = |byte: u8| below(word ^ (ONES * u64::from(byte)), 1);
        let marks = (below(word, 0x20) | equal(b'"') | equal(b'\\')) & TOPS;
        if marks != 0 {
            return at + marks.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    let special = |&byte: &u8| byte < 0x20 || byte == b'"' || byte == b'\\';
    at + words.remainder().iter().position(special).unwrap_or(words.remainder().len())
}

#[cfg(test)]
mod tests {
    use super::unescaped_length;

    #[test]
    fn the_first_special_byte_is_located_at_every_offset() {
        for first in 0..=255u8 {
            for second in [b'"', b'\\', 0, 0x1f, b' ', b'!', b'#', 0x7f, 0x80, 0xa2, 0xdc, 0xff] {
                for at in 0..20 {
                    let mut text = [b'a'; 21];
                    (text[at], text[at + 1]) = (first, second);
                    let special = |&byte: &u8| byte < 0x20 || byte == b'"' || byte == b'\\';
                    assert_eq!(
                        unescaped_length(&text),
                        text.iter().position(special).unwrap_or(21),
                        "{first} {second} at {at}"
                    );
                }
            }
        }
    }
}
