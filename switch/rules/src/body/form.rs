//! Forms (`application/x-www-form-urlencoded`) in pieces. A value may be an XML document.

use super::xml::{DEEP, DOCTYPE, Xml};
use super::{Asking, Flow};
use crate::field::FieldId;
use crate::http::path::decode_form;
use crate::values::taken;

#[derive(Debug)]
pub(crate) struct Form {
    in_value: bool,
    name: Vec<u8>,
    /// The field of the current value, if a rule asks about it.
    field: Option<FieldId>,
    value: Vec<u8>,
    /// The beginning of an escape.
    carry: Vec<u8>,
    document: Document,
}

/// Whether the current value is an XML document.
#[derive(Debug)]
enum Document {
    /// So far there was nothing but white space.
    Unknown,
    Xml(Box<Xml>),
    None,
}

impl Form {
    pub(crate) fn new() -> Form {
        let document = Document::None;
        Form { in_value: false, name: Vec::new(), field: None, value: Vec::new(), carry: Vec::new(), document }
    }

    pub(crate) fn memory(&self) -> usize {
        let xml = if let Document::Xml(xml) = &self.document { size_of::<Xml>() + xml.memory() } else { 0 };
        taken(&self.name) + taken(&self.value) + taken(&self.carry) + xml
    }

    pub(crate) fn push(&mut self, mut bytes: &[u8], asking: &mut Asking) -> Flow {
        while !bytes.is_empty() {
            let mark = if self.in_value { memchr::memchr(b'&', bytes) } else { memchr::memchr2(b'=', b'&', bytes) };
            let (part, rest) = bytes.split_at(mark.unwrap_or(bytes.len()));
            if self.in_value {
                self.value(part, false, asking)?
            } else {
                self.name.extend_from_slice(part)
            }
            match rest.first() {
                Some(b'=') => self.begin(asking),
                Some(_) => self.finish(asking)?,
                None => {}
            }
            bytes = rest.get(1..).unwrap_or_default();
        }
        Flow::Continue(())
    }

    pub(crate) fn end(&mut self, asking: &mut Asking) -> Flow {
        self.finish(asking)
    }

    /// The name is complete.
    fn begin(&mut self, asking: &Asking) {
        let mut name = Vec::new();
        decode_form(&self.name, &mut name);
        self.field = asking.rules.lookup.form.get(&name[..]).copied();
        self.document = if asking.rules.xml.is_empty() { Document::None } else { Document::Unknown };
        self.in_value = true;
    }

    /// The value is complete, or there was none.
    fn finish(&mut self, asking: &mut Asking) -> Flow {
        if !self.in_value && !self.name.is_empty() {
            self.begin(asking);
        }
        self.value(b"", true, asking)?;
        if let Some(field) = self.field.take() {
            asking.observe(field, &self.value)?;
        }
        *self = Form::new();
        Flow::Continue(())
    }

    /// Takes a piece of a value; an escape at its end waits for its rest.
    fn value(&mut self, bytes: &[u8], end: bool, asking: &mut Asking) -> Flow {
        if self.field.is_none() && matches!(self.document, Document::None) {
            return Flow::Continue(());
        }
        self.carry.extend_from_slice(bytes);
        let whole = match &self.carry[self.carry.len().saturating_sub(2)..] {
            _ if end => self.carry.len(),
            [.., b'%'] => self.carry.len() - 1,
            [b'%', _] => self.carry.len() - 2,
            _ => self.carry.len(),
        };
        let mut text = Vec::with_capacity(whole);
        decode_form(&self.carry[..whole], &mut text);
        self.carry.drain(..whole);
        if self.field.is_some() {
            self.value.extend_from_slice(&text);
        }
        if let (Document::Unknown, Some(first)) = (&self.document, text.trim_ascii_start().first()) {
            let xml = Xml::new(asking.rules.limits.depth, false);
            self.document = if *first == b'<' { Document::Xml(Box::new(xml)) } else { Document::None };
        }
        let Document::Xml(xml) = &mut self.document else { return Flow::Continue(()) };
        match xml.push(&text, asking) {
            // A text that only begins like XML.
            Flow::Break(Err(fault)) if fault.why != DOCTYPE && fault.why != DEEP => {
                self.document = Document::None;
                Flow::Continue(())
            }
            flow => flow,
        }
    }
}
