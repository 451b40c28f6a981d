//! Reads bodies piece by piece, and asks the rules about the values in them.

mod form;
mod json;
mod xml;

use std::ops::ControlFlow;

use crate::field::{Field, FieldId};
use crate::http::Fault;
use crate::http::head::Media;
use crate::ruleset::RuleSet;
use crate::run::{Outcome, Run};

/// Whether to read on: the rules have decided, or the body is at fault.
pub(crate) type Flow = ControlFlow<Result<Outcome, Fault>>;

/// The rules, and where they have got to with a request.
#[derive(Debug)]
pub(crate) struct Asking<'r> {
    pub rules: &'r RuleSet,
    pub run: &'r mut Run,
}

impl Asking<'_> {
    fn observe(&mut self, field: FieldId, value: &[u8]) -> Flow {
        self.run.observe(self.rules, field, value);
        self.decided()
    }

    fn close(&mut self, fields: impl Iterator<Item = FieldId>) -> Flow {
        self.run.close(self.rules, fields);
        self.decided()
    }

    fn decided(&mut self) -> Flow {
        self.run.outcome(self.rules).map_or(Flow::Continue(()), |outcome| Flow::Break(Ok(outcome)))
    }
}

fn refuse(why: &'static str) -> Flow {
    Flow::Break(Err(Fault { status: 400, why }))
}

/// A flow's break as an error.
fn go_on(flow: Flow) -> Result<(), Flow> {
    if flow.is_break() { Err(flow) } else { Ok(()) }
}

/// A body's reader, by its media type.
#[derive(Debug)]
pub(crate) enum Reader {
    Xml(xml::Xml),
    Json(json::Json),
    Form(form::Form),
}

impl Reader {
    /// The reader, and the fields that such a body cannot have closed; none when no rule asks about such a body.
    pub(crate) fn new(media: Media, asking: &mut Asking) -> Option<Reader> {
        let rules = asking.rules;
        let depth = rules.limits.depth;
        let reader = match media {
            Media::Xml if !rules.xml.is_empty() => Reader::Xml(xml::Xml::new(depth, true)),
            Media::Json if !rules.json.is_empty() => Reader::Json(json::Json::new(depth)),
            Media::Form if !(rules.lookup.form.is_empty() && rules.xml.is_empty()) => Reader::Form(form::Form::new()),
            _ => return None,
        };
        let has = |field: &Field| match (media, field) {
            (Media::Xml | Media::Form, Field::Xml(_)) => true,
            (Media::Json, Field::Json(_)) | (Media::Form, Field::Form(_)) => true,
            _ => !field.is_late(),
        };
        let fields = rules.fields.iter().enumerate();
        let without = fields.filter(|(_, field)| !has(field)).map(|(id, _)| FieldId(id as u32));
        asking.run.close(rules, without);
        Some(reader)
    }

    /// Takes decoded bytes.
    pub(crate) fn push(&mut self, bytes: &[u8], asking: &mut Asking) -> Flow {
        match self {
            Reader::Xml(xml) => xml.push(bytes, asking),
            Reader::Json(json) => json.push(bytes, asking),
            Reader::Form(form) => form.push(bytes, asking),
        }
    }

    /// Takes the body's end.
    pub(crate) fn end(&mut self, asking: &mut Asking) -> Flow {
        match self {
            Reader::Xml(xml) => xml.end(),
            Reader::Json(json) => json.end(asking),
            Reader::Form(form) => form.end(asking),
        }
    }
}
