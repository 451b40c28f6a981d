//! Evaluates the rules on the values of a body while it is parsed, and reports whether to parse on.

use std::ops::ControlFlow;

use crate::evaluation::{Evaluation, Outcome};
use crate::field::FieldId;
use crate::http::Fault;
use crate::ruleset::{Action, RuleSet};

/// The rules' outcome for a request by its body, or the fault of the body.
pub(crate) type BodyOutcome = Result<Outcome, Fault>;

/// Whether to parse on (continue), or the final result (break): the rules have decided, or the body is at fault.
pub(crate) type Flow = ControlFlow<BodyOutcome>;

/// The body may contain a value that a refusing rule matches, in a form that this crate does not parse.
pub(crate) const HIDDEN: Fault = Fault { status: 415, why: "the body cannot be read, and a rule on it may refuse" };

/// The memory for the values of a body may be this many times `limits.body`: bookkeeping makes short values, and
/// values that several paths select, larger than their text.
const MEMORY_FACTOR: usize = 4;

/// The rules, and their evaluation on one request so far.
#[derive(Debug)]
pub(crate) struct BodyEvaluation<'r> {
    pub rules: &'r RuleSet,
    pub state: &'r mut Evaluation,
    /// A route is returned only at the end of the body, because a later duplicate name may show that two readers read
    /// the body differently.
    pub reads_to_end: bool,
}

impl BodyEvaluation<'_> {
    /// Evaluates the rules on one more value. Treats a body whose values take too much memory like one above its
    /// limit.
    pub(super) fn observe(&mut self, field: FieldId, value: &[u8]) -> Flow {
        self.state.observe(self.rules, field, value);
        self.decided()?;
        if self.state.late_bytes() > self.rules.limits.body.0.saturating_mul(MEMORY_FACTOR) {
            return Flow::Break(self.give_up());
        }
        Flow::Continue(())
    }

    /// Ends the parsing of a body that is too large.
    pub(crate) fn give_up(&mut self) -> BodyOutcome {
        const TOO_LARGE: Fault = Fault { status: 413, why: "the body is above its limit, and a rule on it may refuse" };
        if self.reads_to_end && self.state.outcome(self.rules).is_some() {
            return Err(TOO_LARGE);
        }
        self.state.give_up(self.rules).ok_or(TOO_LARGE)
    }

    /// Ends the parsing of a document whose remaining bytes a server may read differently, if a rule may refuse it.
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

/// Turns a break of the flow into an error, for `?`.
pub(super) fn as_result(flow: Flow) -> Result<(), Flow> {
    if flow.is_break() { Err(flow) } else { Ok(()) }
}
