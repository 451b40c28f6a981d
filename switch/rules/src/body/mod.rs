//! Parses bodies incrementally, by their media types.

mod asking;
mod declaration;
mod encoding;
mod form;
mod json;
mod utf8;
mod xml;

use crate::charset::Charset;
use crate::field::{Field, FieldId};
use crate::http::head::Media;

pub(crate) use asking::{Answer, Asking, Flow, HIDDEN};

/// A body's parser, by its media type.
#[derive(Debug)]
pub(crate) enum Reader {
    Xml(xml::Xml),
    Json(json::Json),
    Form(form::Form),
}

impl Reader {
    /// Creates the parser, and closes the fields for which such a body has no values. Returns none when no rule has a
    /// condition on such a body, or when its character set is not understood.
    pub(crate) fn new(media: Media, asking: &mut Asking) -> Option<Reader> {
        let rules = asking.rules;
        let depth = rules.limits.depth;
        let reader = match media {
            _ if !media.is_asked_for(rules) => return None,
            Media::Xml(charset) if charset != Charset::Other => Reader::Xml(xml::Xml::new(depth, true, charset)),
            Media::Json(Charset::Utf8) => Reader::Json(json::Json::new(depth)),
            Media::Form(charset) if charset != Charset::Other => Reader::Form(form::Form::new(charset)),
            _ => return None,
        };
        let has = |field: &Field| match (media, field) {
            (Media::Xml(_) | Media::Form(_), Field::Xml(_)) => true,
            (Media::Json(_), Field::Json(_)) | (Media::Form(_), Field::Form(_)) => true,
            _ => !field.is_late(),
        };
        let fields = rules.fields.iter().enumerate();
        let without = fields.filter(|(_, field)| !has(field)).map(|(id, _)| FieldId(id as u32));
        asking.run.close(rules, without);
        Some(reader)
    }

    /// Returns the bytes of memory in use besides the parser itself.
    pub(crate) fn memory(&self) -> usize {
        match self {
            Reader::Xml(xml) => xml.memory(),
            Reader::Json(json) => json.memory(),
            Reader::Form(form) => form.memory(),
        }
    }

    /// Parses decoded bytes.
    pub(crate) fn push(&mut self, bytes: &[u8], asking: &mut Asking) -> Flow {
        match self {
            Reader::Xml(xml) => xml.push(bytes, asking),
            Reader::Json(json) => json.push(bytes, asking),
            Reader::Form(form) => form.push(bytes, asking),
        }
    }

    /// Handles the end of the body.
    pub(crate) fn end(&mut self, asking: &mut Asking) -> Flow {
        match self {
            Reader::Xml(xml) => xml.end(),
            Reader::Json(json) => json.end(asking),
            Reader::Form(form) => form.end(asking),
        }
    }
}
