//! Parses XML incrementally. The scanners of quick-xml find the ends of tags. A stack of frames contains the positions
//! in the rules' paths (path nodes) that lead to the open elements.
//!
//! The value of an element is the text directly inside the element, with CDATA and character references resolved, and
//! without surrounding white space.

use quick_xml::escape::unescape;
use quick_xml::parser::{ElementParser, Parser, PiParser};

use super::declaration::declared;
use super::encoding::Encoding;
use super::evaluation::{BodyEvaluation, Flow, as_result, refuse};
use crate::charset::Charset;
use crate::paths::NodeId;
use crate::values::allocated;

#[derive(Debug)]
pub(crate) struct Xml {
    state: State,
    encoding: Encoding,
    /// The bytes of incomplete markup that came with earlier pieces of the document.
    carry: Vec<u8>,
    frames: Vec<Frame>,
    /// The names of the open elements, concatenated.
    names: Vec<u8>,
    /// The path nodes that lead to the open elements.
    nodes: Vec<NodeId>,
    /// For open elements, an entry for each child name that a path selects by index: the number that stands for the
    /// name, and how many children with this name the element has had so far.
    counts: Vec<(u32, u32)>,
    /// The text of open elements whose values rules compare.
    text: Vec<u8>,
    /// The offset in `text` after which references are not yet resolved.
    raw: usize,
    depth: usize,
    /// Whether this is the only document of the body. Then an element that a path selects by its index occurs once, and
    /// its fields are final when the element ends.
    is_only_document: bool,
    /// The number of bytes of a byte order mark that were read; 3 if no byte order mark can follow.
    mark: usize,
}

#[derive(Debug)]
enum State {
    Text,
    /// After `<`: the next byte determines the kind of markup.
    Open,
    /// After `<!`: a comment, CDATA or a DOCTYPE follows.
    Declaration,
    /// In a comment; the number counts the last hyphens in a row, up to 2. (This parser finds the end of a comment
    /// itself, because the scanner of quick-xml 0.42 takes two hyphens in different pieces for adjacent ones.)
    Comment(u8),
    /// In CDATA; the number counts the last closing brackets in a row, up to 2.
    Cdata(u8),
    Instruction(PiParser),
    Tag(ElementParser),
}

/// An open element, with the start of the element's entries in each stack.
#[derive(Debug)]
struct Frame {
    name: usize,
    nodes: usize,
    counts: usize,
    text: usize,
    /// Whether a rule compares the value of this element.
    is_compared: bool,
}

/// Faults for which a form value that begins like XML is refused. Other malformed XML in a form value counts as text.
pub(super) const DOCTYPE: &str = "the XML has a DOCTYPE";
pub(super) const DEEP: &str = "the XML is nested deeper than limits.depth";

/// The byte order mark of UTF-8.
pub(super) const MARK: &[u8] = b"\xef\xbb\xbf";

/// The number of parsed bytes, or the result with which the parsing ends.
type Parsed = Result<usize, Flow>;

impl Xml {
    pub(crate) fn new(depth: usize, is_only_document: bool, charset: Charset) -> Xml {
        Xml {
            state: State::Text,
            encoding: Encoding::new(charset),
            carry: Vec::new(),
            frames: vec![Frame { name: 0, nodes: 0, counts: 0, text: 0, is_compared: false }],
            names: Vec::new(),
            nodes: vec![0],
            counts: Vec::new(),
            text: Vec::new(),
            raw: 0,
            depth,
            is_only_document,
            mark: 0,
        }
    }

    pub(crate) fn memory(&self) -> usize {
        let open = allocated(&self.frames) + allocated(&self.names) + allocated(&self.nodes) + allocated(&self.counts);
        allocated(&self.carry) + allocated(&self.text) + open
    }

    pub(crate) fn push(&mut self, bytes: &[u8], evaluation: &mut BodyEvaluation) -> Flow {
        let (mut at, mut readable) = (0, self.encoding.readable(bytes));
        while at < bytes.len() {
            if at == readable {
                evaluation.stop_if_refusable()?;
                readable = bytes.len();
            }
            let (piece, charset) = (&bytes[at..readable], self.encoding.charset);
            let parsed = match self.parse_token(piece, evaluation) {
                Ok(parsed) => parsed,
                Err(flow) => return flow,
            };
            self.encoding.pass(&piece[..parsed]);
            at += parsed;
            if self.encoding.charset != charset {
                readable = at + self.encoding.readable(&bytes[at..readable]);
            }
        }
        Flow::Continue(())
    }

    /// Parses the first token (text or markup) of a piece.
    fn parse_token(&mut self, bytes: &[u8], evaluation: &mut BodyEvaluation) -> Parsed {
        match &mut self.state {
            State::Text => self.take_text(bytes),
            State::Open => self.take_open(bytes[0]),
            State::Declaration => self.take_declaration(bytes[0]),
            State::Comment(hyphens) => {
                let end = comment_end(hyphens, bytes);
                Ok(self.back_to_text(end, bytes))
            }
            State::Instruction(parser) => {
                let end = parser.feed(bytes).map(|end| end + 1);
                self.carry.extend_from_slice(&bytes[..end.unwrap_or(bytes.len())]);
                if end.is_some() {
                    self.encoding.declare(declared(self.carry.strip_suffix(b"?>").unwrap_or(&self.carry)));
                }
                Ok(self.back_to_text(end, bytes))
            }
            State::Cdata(_) => Ok(self.take_cdata(bytes)),
            State::Tag(parser) => match parser.feed(bytes) {
                Some(end) => self.take_tag(&bytes[..end], evaluation).map(|()| end + 1),
                None => {
                    self.carry.extend_from_slice(bytes);
                    Ok(bytes.len())
                }
            },
        }
    }

    pub(crate) fn end(&self) -> Flow {
        if self.frames.len() > 1 || !matches!(self.state, State::Text) {
            return refuse("the XML ends within an element");
        }
        Flow::Continue(())
    }

    fn back_to_text(&mut self, end: Option<usize>, bytes: &[u8]) -> usize {
        if end.is_some() {
            self.state = State::Text;
        }
        end.unwrap_or(bytes.len())
    }

    fn is_compared(&self) -> bool {
        self.frames.last().is_some_and(|frame| frame.is_compared)
    }

    fn take_text(&mut self, bytes: &[u8]) -> Parsed {
        let end = memchr::memchr(b'<', bytes);
        let text = &bytes[..end.unwrap_or(bytes.len())];
        if self.is_compared() {
            self.text.extend_from_slice(text);
        } else if self.frames.len() == 1 && !text.iter().all(|&b| self.may_surround(b)) {
            return Err(refuse("the XML has text outside of elements"));
        }
        if end.is_some() {
            if !self.resolve() {
                return Err(refuse("the XML has a malformed reference"));
            }
            self.state = State::Open;
            self.mark = MARK.len();
        }
        Ok(text.len() + usize::from(end.is_some()))
    }

    /// Returns whether a byte may occur outside of elements: white space, or a byte order mark at the start of the
    /// document.
    fn may_surround(&mut self, byte: u8) -> bool {
        if MARK.get(self.mark) == Some(&byte) {
            self.mark += 1;
            return true;
        }
        self.mark = MARK.len();
        is_white(byte)
    }

    /// Resolves the character and entity references in the text since the last markup. Other bytes stay unchanged, in
    /// any encoding. Returns false if a reference is malformed or unknown.
    fn resolve(&mut self) -> bool {
        if memchr::memchr(b'&', &self.text[self.raw..]).is_some() {
            let raw = self.text.split_off(self.raw);
            let mut rest = &raw[..];
            while let Some(start) = memchr::memchr(b'&', rest) {
                let Some(length) = memchr::memchr(b';', &rest[start..]) else { return false };
                let reference = std::str::from_utf8(&rest[start..=start + length]).ok();
                let Some(text) = reference.and_then(|reference| unescape(reference).ok()) else { return false };
                self.text.extend_from_slice(&rest[..start]);
                self.text.extend_from_slice(text.as_bytes());
                rest = &rest[start + length + 1..];
            }
            self.text.extend_from_slice(rest);
        }
        self.raw = self.text.len();
        true
    }

    fn take_open(&mut self, byte: u8) -> Parsed {
        self.carry.clear();
        self.state = match byte {
            b'!' => State::Declaration,
            b'?' => State::Instruction(PiParser::default()),
            _ => {
                self.state = State::Tag(ElementParser::default());
                return Ok(0);
            }
        };
        Ok(1)
    }

    fn take_declaration(&mut self, byte: u8) -> Parsed {
        self.carry.push(byte);
        match &self.carry[..] {
            b"--" => self.state = State::Comment(0),
            b"[CDATA[" if self.frames.len() > 1 => self.state = State::Cdata(0),
            b"D" => return Err(refuse(DOCTYPE)),
            open if b"--".starts_with(open) || b"[CDATA[".starts_with(open) => return Ok(1),
            _ => return Err(refuse("the XML has malformed markup")),
        }
        self.carry.clear();
        Ok(1)
    }

    /// Parses CDATA up to the next closing bracket, or at most a single byte directly after closing brackets. Returns
    /// the number of parsed bytes.
    fn take_cdata(&mut self, bytes: &[u8]) -> usize {
        let State::Cdata(brackets) = &mut self.state else { return 0 };
        let (matched, is_compared) = (*brackets, self.frames.last().is_some_and(|frame| frame.is_compared));
        let text: &[u8] = match (matched, bytes[0]) {
            (2, b'>') => {
                self.state = State::Text;
                self.raw = self.text.len();
                return 1;
            }
            (2, b']') => b"]",
            (0 | 1, b']') => {
                *brackets += 1;
                return 1;
            }
            (1 | 2, _) => {
                *brackets = 0;
                &b"]]"[..usize::from(matched)]
            }
            _ => &bytes[..memchr::memchr(b']', bytes).unwrap_or(bytes.len())],
        };
        if is_compared {
            self.text.extend_from_slice(text);
        }
        match matched {
            0 => text.len(),
            1 => 0,
            _ => usize::from(bytes[0] == b']'),
        }
    }

    fn take_tag(&mut self, end: &[u8], evaluation: &mut BodyEvaluation) -> Result<(), Flow> {
        self.state = State::Text;
        if self.carry.is_empty() {
            return self.tag(end, evaluation);
        }
        let mut full_tag = std::mem::take(&mut self.carry);
        full_tag.extend_from_slice(end);
        let result = self.tag(&full_tag, evaluation);
        full_tag.clear();
        self.carry = full_tag;
        result
    }

    /// Processes a tag, given without its angle brackets.
    fn tag(&mut self, tag: &[u8], evaluation: &mut BodyEvaluation) -> Result<(), Flow> {
        if memchr::memchr(b'<', tag).is_some() {
            return Err(refuse("the XML has malformed markup"));
        }
        if let [b'/', name @ ..] = tag {
            let length = name.iter().rposition(|&byte| !is_white(byte)).map_or(0, |last| last + 1);
            return self.close(&name[..length], evaluation);
        }
        let (tag, empty) = tag.strip_suffix(b"/").map_or((tag, false), |tag| (tag, true));
        let end = tag.iter().position(|&byte| is_white(byte)).unwrap_or(tag.len());
        let name = &tag[..end];
        if name.is_empty() || name.iter().any(|b| b.is_ascii_control() || b"\"'=&/".contains(b)) {
            return Err(refuse("the XML has a malformed name"));
        }
        self.open(name, evaluation)?;
        if empty { self.close(name, evaluation) } else { Ok(()) }
    }

    fn open(&mut self, name: &[u8], evaluation: &BodyEvaluation) -> Result<(), Flow> {
        let paths = &evaluation.rules.xml;
        if self.frames.len() > self.depth {
            return Err(refuse(DEEP));
        }
        let parent = self.frames.last().map_or((0, 0), |frame| (frame.nodes, frame.counts));
        let (nodes, mut is_compared) = (self.nodes.len(), false);
        for at in parent.0..nodes {
            let Some(named) = paths.named(self.nodes[at], name) else { continue };
            let counts = &mut self.counts[parent.1..];
            let count = match counts.iter_mut().find(|(number, _)| *number == named.number) {
                _ if !named.is_counted() => 1,
                Some((_, count)) => {
                    *count += 1;
                    *count
                }
                None => {
                    self.counts.push((named.number, 1));
                    1
                }
            };
            for node in named.at(count) {
                is_compared |= !paths.fields(node).is_empty();
                self.nodes.push(node);
            }
        }
        let (name_at, text) = (self.names.len(), self.text.len());
        self.names.extend_from_slice(name);
        self.frames.push(Frame { name: name_at, nodes, counts: self.counts.len(), text, is_compared });
        Ok(())
    }

    fn close(&mut self, name: &[u8], evaluation: &mut BodyEvaluation) -> Result<(), Flow> {
        let frame = match self.frames.pop() {
            Some(frame) if !self.frames.is_empty() && self.names[frame.name..] == *name => frame,
            _ => return Err(refuse("the XML closes an element that is not open")),
        };
        self.names.truncate(frame.name);
        self.counts.truncate(frame.counts);
        let paths = &evaluation.rules.xml;
        for at in frame.nodes..self.nodes.len() {
            let node = self.nodes[at];
            for &field in paths.fields(node) {
                as_result(evaluation.observe(field, trimmed(&self.text[frame.text..])))?;
            }
            if self.is_only_document && paths.once(node) {
                let mut fields = Vec::new();
                paths.below(node, &mut |field| fields.push(field));
                as_result(evaluation.close(fields.into_iter()))?;
            }
        }
        self.nodes.truncate(frame.nodes);
        self.text.truncate(frame.text);
        self.raw = self.text.len();
        Ok(())
    }
}

/// Returns the offset of the first byte after a comment, if the comment ends in `bytes`. `hyphens` is the count of
/// [`State::Comment`], and is updated.
fn comment_end(hyphens: &mut u8, bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        at += 1;
        match (*hyphens, byte) {
            (2, b'>') => return Some(at),
            (count, b'-') => *hyphens = 2.min(count + 1),
            _ => {
                *hyphens = 0;
                at += memchr::memchr(b'-', &bytes[at..]).unwrap_or(bytes.len() - at);
            }
        }
    }
    None
}

/// Removes white space at the start and end of a text, as XML defines it (section 2.3: without the form feed).
fn trimmed(mut text: &[u8]) -> &[u8] {
    while let [first, rest @ ..] = text
        && is_white(*first)
    {
        text = rest;
    }
    while let [rest @ .., last] = text
        && is_white(*last)
    {
        text = rest;
    }
    text
}

pub(super) fn is_white(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}
