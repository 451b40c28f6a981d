//! Evaluates a rule set on values as they arrive.
//!
//! The values of the head are known at the beginning. Late values (of a body or a dialogue) arrive one by one, until
//! their field is closed. The evaluation ends as soon as no late value can change the outcome.

use crate::field::FieldId;
use crate::index::{Alt, Visit};
use crate::ruleset::{Action, Alternative, Block, RuleSet};
use crate::test::Cond;
use crate::values::{Values, allocated};

/// The outcome of an evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// The index of the rule whose action (or `else` action) applies; `None` if the default applies.
    pub rule: Option<u32>,
    pub action: Action,
}

/// The value of `best` while no alternative holds.
const NO_ALTERNATIVE: Alt = Alt::MAX;

/// The state of the evaluation of a rule set on a request. Every method receives the rule set as a parameter.
#[derive(Clone, Debug)]
pub(crate) struct Evaluation {
    known: Known,
    block: u32,
    /// The first of the current block's alternatives that hold; `NO_ALTERNATIVE` while none holds.
    best: Alt,
    /// The alternatives whose unknown conditions are re-evaluated on each late value. They have no false condition.
    tracked: Vec<Tracked>,
    /// Alternatives that may hold according to the head, each with the late field (of a body or a dialogue) of which it
    /// still needs a value. When such a value arrives, the index of the field finds the alternative.
    active: Vec<(Alt, FieldId)>,
    /// How many entries at the start of the block's list `late`, and at the start of `active`, have closed fields.
    /// These entries need no further check.
    passed: [usize; 2],
}

/// An alternative, and for each of its conditions whether the condition holds regardless of later values.
#[derive(Clone, Debug)]
struct Tracked {
    alt: Alt,
    satisfied: Vec<bool>,
}

/// The values received so far, and the closed fields, which get no more values.
#[derive(Clone, Debug, Default)]
struct Known {
    values: Values,
    /// The number of values that come from the head.
    heads: usize,
    closed: Vec<bool>,
    all_closed: bool,
}

/// Whether a condition holds regardless of later values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Truth {
    True,
    False,
    Unknown,
}

impl Known {
    fn is_closed(&self, field: FieldId) -> bool {
        self.all_closed || self.closed.get(field.0 as usize).copied().unwrap_or(false)
    }

    fn cond(&self, cond: &Cond, late: bool) -> Truth {
        let values = self.values.of(cond.field, if late { self.values.len() } else { self.heads });
        if !late || self.is_closed(cond.field) {
            return if cond.holds(values) { Truth::True } else { Truth::False };
        }
        if values.into_iter().any(|value| cond.settled_by(value)) { Truth::True } else { Truth::Unknown }
    }

    fn alternative(&self, alternative: &Alternative) -> Truth {
        let mut truth = Truth::True;
        for (index, cond) in alternative.conds.iter().enumerate() {
            match self.cond(cond, index >= alternative.heads) {
                Truth::True => {}
                Truth::False => return Truth::False,
                Truth::Unknown => truth = Truth::Unknown,
            }
        }
        truth
    }

    fn tracked(&self, alt: Alt, alternative: &Alternative) -> Tracked {
        let satisfied = |(index, cond)| self.cond(cond, index >= alternative.heads) == Truth::True;
        Tracked { alt, satisfied: alternative.conds.iter().enumerate().map(satisfied).collect() }
    }
}

/// Checks the candidates that an index search visits.
struct Search<'r> {
    rules: &'r RuleSet,
    known: &'r Known,
    /// The alternatives that are re-evaluated on each late value as it arrives. The search does not evaluate them.
    tracked: &'r [Tracked],
    best: Alt,
    unknown: Vec<Alt>,
}

impl Visit for Search<'_> {
    fn candidate(&mut self, alt: Alt) {
        if self.tracked.iter().any(|tracked| tracked.alt == alt) {
            return;
        }
        match self.known.alternative(self.rules.alternative(alt)) {
            Truth::True => self.best = self.best.min(alt),
            Truth::False => {}
            Truth::Unknown => self.unknown.push(alt),
        }
    }

    fn bound(&self) -> Alt {
        self.best
    }
}

impl Evaluation {
    /// Creates an evaluation with the values of a head.
    pub(crate) fn new(rules: &RuleSet, values: Values) -> Evaluation {
        let heads = values.len();
        let known = Known { values, heads, ..Known::default() };
        let (tracked, active) = (Vec::new(), Vec::new());
        let mut evaluation = Evaluation { known, block: 0, best: NO_ALTERNATIVE, tracked, active, passed: [0; 2] };
        evaluation.enter(rules);
        evaluation
    }

    /// Returns the bytes of memory in use.
    pub(crate) fn memory(&self) -> usize {
        let satisfied: usize = self.tracked.iter().map(|tracked| allocated(&tracked.satisfied)).sum();
        let known = self.known.values.memory() + allocated(&self.known.closed);
        known + allocated(&self.tracked) + satisfied + allocated(&self.active)
    }

    /// Returns the bytes of memory in use for late values (of a body or a dialogue).
    pub(crate) fn late_bytes(&self) -> usize {
        self.known.values.used_behind(self.known.heads)
    }

    /// Begins the current block: evaluates the values of the head first, then the late values received so far.
    fn enter(&mut self, rules: &RuleSet) {
        (self.best, self.passed) = (NO_ALTERNATIVE, [0; 2]);
        self.tracked.clear();
        self.active.clear();
        let Some(block) = rules.blocks.get(self.block as usize) else { return };
        for index in 0..self.known.heads {
            self.search(rules, block, index);
        }
        for &alt in block.unindexed.iter().chain(&block.absent) {
            if alt >= self.best {
                continue;
            }
            match self.known.alternative(rules.alternative(alt)) {
                Truth::True => self.best = alt,
                Truth::False => {}
                Truth::Unknown => self.track(rules, alt, true),
            }
        }
        self.active.sort_unstable();
        for index in self.known.heads..self.known.values.len() {
            self.search(rules, block, index);
        }
    }

    /// Searches the index of a value's field for the alternatives that the value may satisfy. `value` is the number of
    /// the value in `known`.
    fn search(&mut self, rules: &RuleSet, block: &Block, value: usize) {
        let (field, text) = self.known.values.get(value);
        let Some(index) = block.indexes.get(&field) else { return };
        let (known, tracked) = (&self.known, &self.tracked);
        let mut search = Search { rules, known, tracked, best: self.best, unknown: Vec::new() };
        index.search(text, &mut search);
        let Search { best, unknown, .. } = search;
        self.best = best;
        for alt in unknown {
            self.track(rules, alt, value < self.known.heads);
        }
    }

    /// Records an alternative that a later value may satisfy. `by_head`: the alternative was found without a late
    /// value. If such an alternative has a late field, it still needs a value of this field, and so becomes active
    /// instead of tracked.
    fn track(&mut self, rules: &RuleSet, alt: Alt, by_head: bool) {
        let alternative = rules.alternative(alt);
        match alternative.late_cover {
            Some(field) if by_head => self.active.push((alt, field)),
            _ if self.tracked.iter().any(|tracked| tracked.alt == alt) => {}
            _ => self.tracked.push(self.known.tracked(alt, alternative)),
        }
    }

    /// Evaluates a late value (of a body or a dialogue).
    pub(crate) fn observe(&mut self, rules: &RuleSet, field: FieldId, value: &[u8]) {
        self.known.values.push(field, value);
        let Some(block) = rules.blocks.get(self.block as usize) else { return };
        let best = &mut self.best;
        self.tracked.retain_mut(|tracked| {
            for (satisfied, cond) in tracked.satisfied.iter_mut().zip(&rules.alternative(tracked.alt).conds) {
                *satisfied = *satisfied || cond.field == field && cond.settled_by(value);
            }
            let all = tracked.satisfied.iter().all(|&satisfied| satisfied);
            if all {
                *best = tracked.alt.min(*best);
            }
            !all
        });
        self.search(rules, block, self.known.values.len() - 1);
    }

    /// Closes fields: no more values of these fields will arrive.
    pub(crate) fn close(&mut self, rules: &RuleSet, fields: impl IntoIterator<Item = FieldId>) {
        if self.known.closed.is_empty() {
            self.known.closed.resize(rules.fields.len(), false);
        }
        for field in fields {
            self.known.closed[field.0 as usize] = true;
        }
        self.review(rules);
    }

    /// Closes all fields.
    pub(crate) fn close_all(&mut self, rules: &RuleSet) {
        self.known.all_closed = true;
        self.review(rules);
    }

    /// Re-evaluates unknown conditions after fields were closed.
    fn review(&mut self, rules: &RuleSet) {
        let (known, best) = (&self.known, &mut self.best);
        self.tracked.retain_mut(|tracked| {
            let alternative = rules.alternative(tracked.alt);
            let truth = known.alternative(alternative);
            match truth {
                Truth::True => *best = tracked.alt.min(*best),
                Truth::False => {}
                Truth::Unknown => *tracked = known.tracked(tracked.alt, alternative),
            }
            truth == Truth::Unknown
        });
    }

    /// Returns the first alternative that a later value may satisfy; `NO_ALTERNATIVE` if there is none.
    fn first_open(&mut self, block: &Block) -> Alt {
        if self.known.all_closed {
            return NO_ALTERNATIVE;
        }
        let mut first = self.tracked.iter().map(|tracked| tracked.alt).min().unwrap_or(NO_ALTERNATIVE);
        for (passed, list) in self.passed.iter_mut().zip([&block.late, &self.active]) {
            while list.get(*passed).is_some_and(|&(_, field)| self.known.is_closed(field)) {
                *passed += 1;
            }
            first = first.min(list.get(*passed).map_or(NO_ALTERNATIVE, |&(alt, _)| alt));
        }
        first
    }

    /// Returns the outcome, if no later value can change it.
    pub(crate) fn outcome(&mut self, rules: &RuleSet) -> Option<Outcome> {
        while let Some(block) = rules.blocks.get(self.block as usize) {
            if self.first_open(block) < self.best {
                return None;
            }
            if let Some(outcome) = self.leave(rules, block) {
                return Some(outcome);
            }
        }
        Some(Outcome { rule: None, action: rules.default })
    }

    /// Ends the evaluation although values are missing: unknown conditions count as false. Returns none if an
    /// alternative with unknown conditions could have led to a refusal.
    pub(crate) fn give_up(&mut self, rules: &RuleSet) -> Option<Outcome> {
        while let Some(block) = rules.blocks.get(self.block as usize) {
            let unknown =
                |&alt: &Alt| alt < self.best && self.known.alternative(rules.alternative(alt)) == Truth::Unknown;
            if !rules.refusing.is_empty() && block.guards.iter().any(unknown) {
                return None;
            }
            if let Some(outcome) = self.leave(rules, block) {
                return Some(outcome);
            }
        }
        Some(Outcome { rule: None, action: rules.default })
    }

    /// Applies the action of a decided block: returns the outcome, or enters the block of a `goto` or the next block
    /// and returns `None`.
    fn leave(&mut self, rules: &RuleSet, block: &Block) -> Option<Outcome> {
        let selected = match self.best {
            NO_ALTERNATIVE => block.miss,
            best => Some(rules.alternative(best).rule).map(|rule| (rule, rules.actions[rule as usize])),
        };
        match selected {
            Some((_, Action::Goto(target))) => self.block = target,
            Some((rule, action)) => return Some(Outcome { rule: Some(rule), action }),
            None => self.block += 1,
        }
        self.enter(rules);
        None
    }
}
