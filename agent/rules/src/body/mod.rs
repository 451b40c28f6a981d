//! Parses bodies incrementally, by their media types.

mod declaration;
mod encoding;
mod evaluation;
mod form;
mod json;
mod utf8;
mod xml;

use crate::charset::Charset;
use crate::field::{Field, FieldId};
use crate::http::head::Media;

pub(crate) use evaluation::{BodyEvaluation, BodyOutcome, Flow, HIDDEN};

/// The parser of a body, selected by the body's media type.
#[derive(Debug)]
pub(crate) enum Reader {
    Xml(xml::Xml),
    Json(json::Json),
    Form(form::Form),
}

impl Reader {
    /// Creates the parser for a body of type `media`, and marks as final the fields that a body of this type cannot
    /// have. Returns `None` if no rule has a condition on this type, or if this crate does not parse the type or its
    /// character set.
    pub(crate) fn new(media: Media, evaluation: &mut BodyEvaluation) -> Option<Reader> {
        let rules = evaluation.rules;
        let depth = rules.limits.depth;
        let reader = match media {
            _ if !media.has_conditions(rules) => return None,
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
        evaluation.state.close(rules, without);
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

    /// Parses the next bytes of the body, without chunked framing.
    pub(crate) fn push(&mut self, bytes: &[u8], evaluation: &mut BodyEvaluation) -> Flow {
        match self {
            Reader::Xml(xml) => xml.push(bytes, evaluation),
            Reader::Json(json) => json.push(bytes, evaluation),
            Reader::Form(form) => form.push(bytes, evaluation),
        }
    }

    /// Processes the end of the body.
    pub(crate) fn end(&mut self, evaluation: &mut BodyEvaluation) -> Flow {
        match self {
            Reader::Xml(xml) => xml.end(),
            Reader::Json(json) => json.end(evaluation),
            Reader::Form(form) => form.end(evaluation),
        }
    }
}
