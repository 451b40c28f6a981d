//! Evaluates the rules on the values of a body while it is parsed, and reports whether the parser has to continue.

use std::ops::ControlFlow;

use crate::evaluation::{Evaluation, Outcome};
use crate::field::FieldId;
use crate::http::Fault;
use crate::ruleset::{Action, RuleSet};

/// The rules' outcome for a request with a body, or the fault that the body has.
pub(crate) type BodyOutcome = Result<Outcome, Fault>;

/// `Continue` if the parser has to read further bytes; `Break` with the final result if the rules have decided, or if
/// the body has a fault.
pub(crate) type Flow = ControlFlow<BodyOutcome>;

/// The fault of a body that this crate cannot read, because of its media type, coding or character set. The body may
/// contain a value that a refusing rule matches.
pub(crate) const HIDDEN: Fault = Fault { status: 415, why: "the body cannot be read, and a rule on it may refuse" };

/// The memory for a body's values may be this many times `limits.body`. Each value needs memory for bookkeeping in
/// addition to its text, and a value that several paths select is stored several times.
const MEMORY_FACTOR: usize = 4;

/// The rules, and the state of their evaluation on a request.
#[derive(Debug)]
pub(crate) struct BodyEvaluation<'r> {
    pub rules: &'r RuleSet,
    pub state: &'r mut Evaluation,
    /// Whether a route is returned only at the end of the body, because a later duplicate name may show that two
    /// parsers read the body differently.
    pub reads_to_end: bool,
}

impl BodyEvaluation<'_> {
    /// Evaluates the rules on a further value. If the values need too much memory, the body is treated like a body
    /// above its size limit.
    pub(super) fn observe(&mut self, field: FieldId, value: &[u8]) -> Flow {
        self.state.observe(self.rules, field, value);
        self.decided()?;
        if self.state.late_bytes() > self.rules.limits.body.0.saturating_mul(MEMORY_FACTOR) {
            return Flow::Break(self.give_up());
        }
        Flow::Continue(())
    }

    /// Returns the outcome for a body that is too large to be parsed to its end: conditions that need its other values
    /// do not hold. Returns the fault 413 if such a condition belongs to a refusing rule, or if a decided route depends
    /// on the rest of the body (`reads_to_end`).
    pub(crate) fn give_up(&mut self) -> BodyOutcome {
        const TOO_LARGE: Fault = Fault { status: 413, why: "the body is above its limit, and a rule on it may refuse" };
        if self.reads_to_end && self.state.outcome(self.rules).is_some() {
            return Err(TOO_LARGE);
        }
        self.state.give_up(self.rules).ok_or(TOO_LARGE)
    }

    /// Ends the parsing with the fault [`HIDDEN`] if a rule may still refuse the request. The caller has found bytes
    /// that a server may decode differently, into values that the rule refuses.
    pub(super) fn stop_if_refusable(&mut self) -> Flow {
        match self.state.clone().give_up(self.rules) {
            Some(_) => Flow::Continue(()),
            None => Flow::Break(Err(HIDDEN)),
        }
    }

    pub(super) fn close(&mut self, fields: impl Iterator<Item = FieldId>) -> Flow {
        self.state.close(self.rules, fields);
        self.decided()
    }

    fn decided(&mut self) -> Flow {
        match self.state.outcome(self.rules) {
            Some(outcome) if !self.reads_to_end || matches!(outcome.action, Action::Refuse(_)) => {
                Flow::Break(Ok(outcome))
            }
            _ => Flow::Continue(()),
        }
    }
}

pub(super) fn refuse(why: &'static str) -> Flow {
    Flow::Break(Err(Fault { status: 400, why }))
}

/// Converts a `Break` to an error, so that callers can use `?`.
pub(super) fn as_result(flow: Flow) -> Result<(), Flow> {
    if flow.is_break() { Err(flow) } else { Ok(()) }
}
