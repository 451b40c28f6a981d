//! Reads bodies piece by piece, and asks the rules about the values in them.

mod declaration;
mod encoding;
mod form;
mod json;
mod utf8;
mod xml;

use std::ops::ControlFlow;

use crate::charset::Charset;
use crate::field::{Field, FieldId};
use crate::http::Fault;
use crate::http::head::Media;
use crate::ruleset::{Action, RuleSet};
use crate::run::{Outcome, Run};

/// What came of a request, when it is not yet a decision about a group.
pub(crate) type Answer = Result<Outcome, Fault>;

/// Whether to read on: the rules have decided, or the body is at fault.
pub(crate) type Flow = ControlFlow<Answer>;

/// A body may have what a refusing rule asks for, in a form that is not read.
pub(crate) const HIDDEN: Fault = Fault { status: 415, why: "the body cannot be read, and a rule on it may refuse" };

/// Values may take so many times `limits.body`: short ones, or those that several paths name, take more than they are.
const VALUES: usize = 4;

/// The rules, and where they have got to with a request.
#[derive(Debug)]
pub(crate) struct Asking<'r> {
    pub rules: &'r RuleSet,
    pub run: &'r mut Run,
    /// A decision for a group waits for the body's end, which may show that the body has two readings.
    pub reads_on: bool,
}

impl Asking<'_> {
    /// Tells the rules a value. A body whose values take too much memory is as one above its limit.
    fn observe(&mut self, field: FieldId, value: &[u8]) -> Flow {
        self.run.observe(self.rules, field, value);
        self.decided()?;
        if self.run.late_bytes() > self.rules.limits.body.0.saturating_mul(VALUES) {
            return Flow::Break(self.give_up());
        }
        Flow::Continue(())
    }

    /// Ends the reading of a body that is too large.
    pub(crate) fn give_up(&mut self) -> Answer {
        const ABOVE: Fault = Fault { status: 413, why: "the body is above its limit, and a rule on it may refuse" };
        if self.reads_on && self.run.outcome(self.rules).is_some() {
            return Err(ABOVE);
        }
        self.run.give_up(self.rules).ok_or(ABOVE)
    }

    /// Ends the reading of a document that goes on in a form that may mean something else to a server, if a rule may refuse it.
    fn go_on_unread(&mut self) -> Flow {
        match self.run.clone().give_up(self.rules) {
            Some(_) => Flow::Continue(()),
            None => Flow::Break(Err(HIDDEN)),
        }
    }

    fn close(&mut self, fields: impl Iterator<Item = FieldId>) -> Flow {
        self.run.close(self.rules, fields);
        self.decided()
    }

    fn decided(&mut self) -> Flow {
        match self.run.outcome(self.rules) {
            Some(outcome) if !self.reads_on || matches!(outcome.action, Action::Refuse(_)) => Flow::Break(Ok(outcome)),
            _ => Flow::Continue(()),
        }
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

    /// Memory taken beside the reader itself.
    pub(crate) fn memory(&self) -> usize {
        match self {
            Reader::Xml(xml) => xml.memory(),
            Reader::Json(json) => json.memory(),
            Reader::Form(form) => form.memory(),
        }
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
