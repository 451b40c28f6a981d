//! Evaluates the rules without indexes: one rule after the other, on all values. Tests compare the indexes' results
//! with those of this evaluation.

use crate::evaluation::Outcome;
use crate::ruleset::{Action, RuleSet};
use crate::values::Values;

/// Returns the outcome of the first rule that matches, or that has an `else`; a `goto` is followed. If there is no such
/// rule, the default applies.
pub(crate) fn first_match(rules: &RuleSet, values: &Values) -> Outcome {
    trace(rules, values, &mut |_, _| {})
}

/// Returns the outcome as [`first_match`] does; `visit` receives the index of every evaluated rule, and whether the
/// rule matches.
pub(crate) fn trace(rules: &RuleSet, values: &Values, visit: &mut impl FnMut(usize, bool)) -> Outcome {
    let mut rule = 0;
    while rule < rules.actions.len() {
        let holds = rules
            .alternatives
            .iter()
            .filter(|alt| alt.rule as usize == rule)
            .any(|alt| alt.conds.iter().all(|cond| cond.holds(values.of(cond.field, values.len()))));
        visit(rule, holds);
        let action = if holds { Some(rules.actions[rule]) } else { rules.misses[rule] };
        match action {
            Some(Action::Goto(block)) => {
                rule = rules.block_of.iter().position(|&other| other == block).expect("blocks have rules");
            }
            Some(action) => return Outcome { rule: Some(rule as u32), action },
            None => rule += 1,
        }
    }
    Outcome { rule: None, action: rules.default }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::first_match;
    use crate::evaluation::Evaluation;
    use crate::field::{Field, FieldId};
    use crate::random::{Random, head, id};
    use crate::ruleset::RuleSet;
    use crate::values::Values;

    /// The evaluation with indexes receives the values one by one, and may decide before all have arrived. Its outcome
    /// equals that of the evaluation without indexes, which receives all values at once.
    #[test]
    fn indexes_agree_with_the_rules_as_they_read() {
        let mut early = 0;
        for seed in 0..1000 {
            let mut random = Random(seed);
            let list = random.rules();
            let content = json!({"protocol": "http", "default": {"to": "d"}, "rules": list}).to_string();
            let rules = RuleSet::from_json(content.as_bytes()).unwrap_or_else(|e| panic!("{content}: {e:?}"));
            for _ in 0..10 {
                let (mut all, before) = (Values::default(), random.0);
                let mut evaluation = Evaluation::new(&rules, head(&rules, &mut random));
                for index in 0..head(&rules, &mut Random(before)).len() {
                    let values = head(&rules, &mut Random(before));
                    let (field, text) = values.get(index);
                    all.push(field, text);
                }
                let mut decided = evaluation.outcome(&rules);
                let late = [Field::Xml("a".into()), Field::Xml("b:1".into()), Field::Json("a".into())];
                let mut open: Vec<FieldId> = late.iter().filter_map(|field| id(&rules, field)).collect();
                for _ in 0..random.below(6) {
                    if open.is_empty() {
                        break;
                    }
                    let index = random.below(open.len());
                    let text = random.text();
                    all.push(open[index], text.as_bytes());
                    evaluation.observe(&rules, open[index], text.as_bytes());
                    if random.below(3) == 0 {
                        evaluation.close(&rules, [open.remove(index)]);
                    }
                    if decided.is_none() {
                        decided = evaluation.outcome(&rules);
                        early += usize::from(decided.is_some());
                    }
                }
                evaluation.close_all(&rules);
                let outcome = decided.or_else(|| evaluation.outcome(&rules));
                assert_eq!(outcome, Some(first_match(&rules, &all)), "seed {seed}: {content}\n{all:?}");
            }
        }
        assert!(early > 300, "decided by a body before its end: {early}");
    }
}
