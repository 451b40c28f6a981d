//! Parses forms (`application/x-www-form-urlencoded`) incrementally. A value may itself be an XML document.

use super::evaluation::{BodyEvaluation, Flow};
use super::xml::{DEEP, DOCTYPE, MARK, Xml};
use crate::charset::Charset;
use crate::field::FieldId;
use crate::http::path::decode_form;
use crate::values::allocated;

#[derive(Debug)]
pub(crate) struct Form {
    charset: Charset,
    in_value: bool,
    name: Vec<u8>,
    /// The field of the current value, if a rule has a condition on it.
    field: Option<FieldId>,
    value: Vec<u8>,
    /// The first bytes of an escape (`%4`) whose remaining bytes are in the next piece of the body.
    carry: Vec<u8>,
    document: Document,
}

/// What is known about whether the current value is an XML document.
#[derive(Debug)]
enum Document {
    /// The first bytes of the value, which do not show yet whether the value is an XML document.
    Unknown(Vec<u8>),
    Xml(Box<Xml>),
    None,
}

impl Form {
    pub(crate) fn new(charset: Charset) -> Form {
        let (name, value, carry) = (Vec::new(), Vec::new(), Vec::new());
        Form { charset, in_value: false, name, field: None, value, carry, document: Document::None }
    }

    pub(crate) fn memory(&self) -> usize {
        let xml = if let Document::Xml(xml) = &self.document { size_of::<Xml>() + xml.memory() } else { 0 };
        allocated(&self.name) + allocated(&self.value) + allocated(&self.carry) + xml
    }

    pub(crate) fn push(&mut self, mut bytes: &[u8], evaluation: &mut BodyEvaluation) -> Flow {
        while !bytes.is_empty() {
            let mark = if self.in_value { memchr::memchr(b'&', bytes) } else { memchr::memchr2(b'=', b'&', bytes) };
            let (piece, rest) = bytes.split_at(mark.unwrap_or(bytes.len()));
            if self.in_value {
                self.value(piece, false, evaluation)?
            } else {
                self.name.extend_from_slice(piece)
            }
            match rest.first() {
                Some(b'=') => self.begin(evaluation)?,
                Some(_) => self.finish(evaluation)?,
                None => {}
            }
            bytes = rest.get(1..).unwrap_or_default();
        }
        Flow::Continue(())
    }

    pub(crate) fn end(&mut self, evaluation: &mut BodyEvaluation) -> Flow {
        self.finish(evaluation)
    }

    /// Processes a name that has just ended.
    fn begin(&mut self, evaluation: &mut BodyEvaluation) -> Flow {
        let mut name = Vec::new();
        decode_form(&self.name, &mut name);
        if !evaluation.rules.lookup.form.is_empty() {
            self.check(&name, evaluation)?;
        }
        self.field = evaluation.rules.lookup.form.get(&name[..]).copied();
        self.document = if evaluation.rules.xml.is_empty() { Document::None } else { Document::Unknown(Vec::new()) };
        self.in_value = true;
        Flow::Continue(())
    }

    /// Ends the parsing if a rule may still refuse the form, and this name or value contains characters that the parser
    /// does not understand: in a character set other than UTF-8, it understands only ASCII.
    fn check(&self, text: &[u8], evaluation: &mut BodyEvaluation) -> Flow {
        if self.charset == Charset::Utf8 || text.is_ascii() {
            Flow::Continue(())
        } else {
            evaluation.stop_if_refusable()
        }
    }

    /// Processes a name and its value, or a name without a value, that has just ended.
    fn finish(&mut self, evaluation: &mut BodyEvaluation) -> Flow {
        if !self.in_value && !self.name.is_empty() {
            self.begin(evaluation)?;
        }
        self.value(b"", true, evaluation)?;
        if let Some(field) = self.field.take() {
            evaluation.observe(field, &self.value)?;
        }
        *self = Form::new(self.charset);
        Flow::Continue(())
    }

    /// Processes a piece of a value. An incomplete escape at the end of the piece is stored until the next piece.
    fn value(&mut self, bytes: &[u8], end: bool, evaluation: &mut BodyEvaluation) -> Flow {
        if self.field.is_none() && matches!(self.document, Document::None) {
            return Flow::Continue(());
        }
        self.carry.extend_from_slice(bytes);
        let complete = match &self.carry[self.carry.len().saturating_sub(2)..] {
            _ if end => self.carry.len(),
            [.., b'%'] => self.carry.len() - 1,
            [b'%', _] => self.carry.len() - 2,
            _ => self.carry.len(),
        };
        let mut text = Vec::with_capacity(complete);
        decode_form(&self.carry[..complete], &mut text);
        self.carry.drain(..complete);
        if self.field.is_some() {
            self.check(&text, evaluation)?;
            self.value.extend_from_slice(&text);
        }
        if let Document::Unknown(start) = &mut self.document {
            start.extend_from_slice(&text);
            text = std::mem::take(start).trim_ascii_start().to_vec();
            self.document = match Beginning::of(&text) {
                Beginning::Document => {
                    Document::Xml(Box::new(Xml::new(evaluation.rules.limits.depth, false, self.charset)))
                }
                Beginning::Unknown if !end => Document::Unknown(std::mem::take(&mut text)),
                Beginning::Unreadable => {
                    evaluation.stop_if_refusable()?;
                    Document::None
                }
                Beginning::Unknown | Beginning::Text => Document::None,
            };
        }
        let Document::Xml(xml) = &mut self.document else { return Flow::Continue(()) };
        match xml.push(&text, evaluation) {
            // The value only begins like XML, so the parser treats it as plain text.
            Flow::Break(Err(fault)) if fault.status == 400 && fault.why != DOCTYPE && fault.why != DEEP => {
                self.document = Document::None;
                Flow::Continue(())
            }
            flow => flow,
        }
    }
}

/// The kind of a form value, determined by its first bytes in the same way as XML parsers do (XML 1.0, appendix F.1).
enum Beginning {
    Unknown,
    Document,
    /// A document in UTF-16, UTF-32 or EBCDIC.
    Unreadable,
    Text,
}

impl Beginning {
    const UNREADABLE: [&[u8]; 4] = [b"\0", b"\xfe\xff", b"\xff\xfe", b"\x4c\x6f\xa7\x94"];

    /// Classifies a value whose leading white space was removed.
    fn of(text: &[u8]) -> Beginning {
        let unmarked = text.strip_prefix(MARK).unwrap_or(text).trim_ascii_start();
        let mut start = Beginning::UNREADABLE.into_iter().chain([MARK]);
        if unmarked.first() == Some(&b'<') {
            Beginning::Document
        } else if Beginning::UNREADABLE.iter().any(|&mark| text.starts_with(mark)) {
            Beginning::Unreadable
        } else if unmarked.is_empty() || start.any(|mark| mark.starts_with(text)) {
            Beginning::Unknown
        } else {
            Beginning::Text
        }
    }
}
