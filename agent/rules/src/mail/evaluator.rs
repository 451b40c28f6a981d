//! Evaluates the rules on the fields that a mail client has sent so far: host name, sender, recipient and user name.

use crate::evaluation::{Evaluation, Outcome};
use crate::facts::{ConnectionFacts, enter_facts};
use crate::field::{FieldId, Kind};
use crate::ruleset::{Action, RuleSet};
use crate::values::Values;

/// The fields that a mail client has sent so far.
#[derive(Debug, Default)]
pub(super) struct SentFields<'t> {
    /// The fields with their values. The id is none if no rule has a condition on the field.
    pub(super) values: Vec<(Option<FieldId>, &'t [u8])>,
    /// A field that the client has skipped, and cannot send later.
    pub(super) skipped: Option<FieldId>,
    /// Whether the client sends no further field.
    pub(super) is_complete: bool,
}

/// Evaluates the rules for a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Evaluator<'r> {
    pub(super) rules: &'r RuleSet,
    pub(super) facts: &'r ConnectionFacts,
}

impl Evaluator<'_> {
    /// Returns the rules' outcome, if the fields in `sent` determine it.
    pub(super) fn evaluate(&self, sent: &SentFields) -> Option<Outcome> {
        self.evaluation(sent).outcome(self.rules)
    }

    fn evaluation(&self, sent: &SentFields) -> Evaluation {
        let rules = self.rules;
        let mut values = Values::default();
        enter_facts(rules, self.facts, &mut values);
        let mut evaluation = Evaluation::new(rules, values);
        let relevant_values = sent.values.iter().filter_map(|&(field, value)| Some((field?, value)));
        for (field, value) in relevant_values {
            match rules.fields[field.0 as usize].kind() {
                Kind::Caseless => evaluation.observe(rules, field, &value.to_ascii_lowercase()),
                _ => evaluation.observe(rules, field, value),
            }
            evaluation.close(rules, [field]);
        }
        evaluation.close(rules, sent.skipped);
        if sent.is_complete {
            evaluation.close_all(rules);
        }
        evaluation
    }

    /// Returns the rules' outcome if later fields cannot be read, so that conditions on these fields do not hold.
    /// Returns none if a rule with such a condition may refuse.
    pub(super) fn give_up(&self, sent: &SentFields) -> Option<Outcome> {
        self.evaluation(sent).give_up(self.rules)
    }

    /// Returns the rules' outcome for a login with several names (see [`users`](crate::mail::sasl::users)). The rules
    /// are evaluated for each name. If they refuse any name, the refusal counts; otherwise the outcome for the first
    /// name counts, because the login opens the mailbox of this user.
    pub(super) fn conclude_users(&self, users: &[impl AsRef<[u8]>]) -> Outcome {
        let field = self.rules.lookup.user;
        let outcome = |user| self.conclude(SentFields { values: vec![(field, user)], ..SentFields::default() });
        let mut outcomes: Vec<Outcome> = users.iter().map(|user| outcome(user.as_ref())).collect();
        let refusal = outcomes.iter().position(|outcome| matches!(outcome.action, Action::Refuse(_)));
        outcomes.swap_remove(refusal.unwrap_or(0))
    }

    /// Returns whether the configuration offers an extension. The first word of an offer is the name of the extension.
    pub(super) fn offers(&self, extension: &str) -> bool {
        let names_extension =
            |offer: &String| offer.split([' ', '=']).next().is_some_and(|word| word.eq_ignore_ascii_case(extension));
        self.rules.offer.iter().any(names_extension)
    }

    /// Returns the rules' outcome if no further field follows.
    pub(super) fn conclude(&self, mut sent: SentFields) -> Outcome {
        sent.is_complete = true;
        self.evaluate(&sent).unwrap_or(Outcome { rule: None, action: self.rules.default })
    }
}
