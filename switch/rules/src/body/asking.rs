//! Asks the rules about the values of a body, and says whether to read on.

use std::ops::ControlFlow;

use crate::field::FieldId;
use crate::http::Fault;
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
    pub(super) fn observe(&mut self, field: FieldId, value: &[u8]) -> Flow {
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
    pub(super) fn go_on_unread(&mut self) -> Flow {
        match self.run.clone().give_up(self.rules) {
            Some(_) => Flow::Continue(()),
            None => Flow::Break(Err(HIDDEN)),
        }
    }

    pub(super) fn close(&mut self, fields: impl Iterator<Item = FieldId>) -> Flow {
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

pub(super) fn refuse(why: &'static str) -> Flow {
    Flow::Break(Err(Fault { status: 400, why }))
}

/// A flow's break as an error.
pub(super) fn go_on(flow: Flow) -> Result<(), Flow> {
    if flow.is_break() { Err(flow) } else { Ok(()) }
}
