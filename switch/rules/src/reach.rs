//! Finds rules that no request can reach.
//!
//! A rule is reported when each of its alternatives implies an alternative of a rule that is always evaluated before.
//! Conditions are compared syntactically, so some unreachable rules are missed; but a reported rule never matches
//! first.

use crate::field::{Field, FieldId};
use crate::number::Compare;
use crate::ruleset::{Action, Alternative, RuleSet};
use crate::test::{Branch, Cond, Matcher, Test};

/// A rule that no request reaches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreachable {
    /// Index of the rule.
    pub rule: u32,
    /// Indexes of the earlier rules that match all of its requests.
    pub because: Vec<u32>,
}

impl RuleSet {
    /// Returns the rules that no request can reach.
    pub fn unreachable(&self) -> Vec<Unreachable> {
        let mut unreachable = Vec::new();
        let mut rules = 0..0;
        for block in 0..self.blocks.len() {
            let first = rules.end;
            let size = self.block_of[first..].iter().take_while(|&&other| other as usize == block).count();
            let fresh = self.is_target(block as u32) || block == 0;
            // Unless a goto leads to it, a block is evaluated only when no rule of the block before has matched.
            rules = if fresh { first..first + size } else { rules.start..first + size };
            let passed = (!fresh).then(|| self.blocks[block - 1].miss).flatten();
            for rule in first..first + size {
                let because = match passed {
                    Some((other, _)) => Some(vec![other]),
                    None if self.misses[rule].is_some() => None,
                    None => self.shadows(rules.start as u32, rule as u32),
                };
                unreachable.extend(because.map(|because| Unreachable { rule: rule as u32, because }));
            }
        }
        unreachable
    }

    fn is_target(&self, block: u32) -> bool {
        let goto = Action::Goto(block);
        self.actions.contains(&goto) || self.misses.contains(&Some(goto))
    }

    /// Returns the rules from `first` on that together match all alternatives of a later rule.
    fn shadows(&self, first: u32, rule: u32) -> Option<Vec<u32>> {
        let of = |wanted: u32| {
            let start = self.alternatives.partition_point(|alt| alt.rule < wanted);
            start..start + self.alternatives[start..].partition_point(|alt| alt.rule == wanted)
        };
        let earlier = &self.alternatives[of(first).start..of(rule).start];
        let mut because = Vec::new();
        for alternative in &self.alternatives[of(rule)] {
            because.push(earlier.iter().find(|other| self.implies(alternative, other))?.rule);
        }
        because.sort_unstable();
        because.dedup();
        Some(because)
    }

    /// Whether all requests that satisfy the first alternative satisfy the second.
    fn implies(&self, one: &Alternative, other: &Alternative) -> bool {
        let implied = |cond: &Cond| {
            one.conds
                .iter()
                .any(|held| held.field == cond.field && cond_implies(held, cond, self.is_single(cond.field)))
        };
        other.conds.iter().all(implied)
    }

    /// Whether a field has at most one value.
    fn is_single(&self, field: FieldId) -> bool {
        use Field::{Cookie, Form, Header, Json, Query, Xml};
        !matches!(
            self.fields[field.0 as usize],
            Query(_) | Header(_) | Cookie(_) | Xml(_) | Json(_) | Form(_) | Field::Alpn
        )
    }
}

fn cond_implies(one: &Cond, other: &Cond, single: bool) -> bool {
    let implied = |branch: &Branch| other.branches.iter().any(|other| branch_implies(branch, other, single));
    one.branches.iter().all(implied)
}

fn branch_implies(one: &Branch, other: &Branch, single: bool) -> bool {
    match (one.negated, other.negated) {
        (false, false) => within(&one.test, &other.test),
        (true, true) => within(&other.test, &one.test),
        (false, true) => single && apart(&one.test, &other.test),
        (true, false) => false,
    }
}

/// Whether every value that satisfies the first test satisfies the second.
fn within(one: &Test, other: &Test) -> bool {
    match (one, other) {
        (Test::Is(Matcher::Exact(text)), _) => other.holds(text),
        (Test::Any(tests), _) => tests.iter().all(|test| within(test, other)),
        (_, Test::All(tests)) => tests.iter().all(|test| within(one, test)),
        (Test::Not(one), Test::Not(other)) => within(other, one),
        (_, Test::Not(other)) => apart(one, other),
        (_, Test::Any(tests)) if tests.iter().any(|test| within(one, test)) => true,
        (Test::All(tests), _) => tests.iter().any(|test| within(test, other)),
        (Test::Is(one), Test::Is(other)) => matcher_within(one, other),
        _ => false,
    }
}

/// Whether no value satisfies both tests.
fn apart(one: &Test, other: &Test) -> bool {
    match (one, other) {
        (Test::Is(Matcher::Exact(text)), test) | (test, Test::Is(Matcher::Exact(text))) => !test.holds(text),
        (Test::Any(tests), test) | (test, Test::Any(tests)) => tests.iter().all(|one| apart(one, test)),
        (Test::All(tests), test) | (test, Test::All(tests)) => tests.iter().any(|one| apart(one, test)),
        (Test::Is(Matcher::Net(one)), Test::Is(Matcher::Net(other))) => !one.encloses(other) && !other.encloses(one),
        (Test::Is(Matcher::Prefix(one)), Test::Is(Matcher::Prefix(other))) => {
            !one.starts_with(other) && !other.starts_with(one)
        }
        _ => false,
    }
}

fn matcher_within(one: &Matcher, other: &Matcher) -> bool {
    use Matcher::{Contains, Net, Number, Prefix, Regex, Suffix};
    match (one, other) {
        (Prefix(text), Prefix(head)) => text.starts_with(head),
        (Suffix(text), Suffix(tail)) => text.ends_with(tail),
        (Prefix(text) | Suffix(text) | Contains(text), Contains(part)) => memchr::memmem::find(text, part).is_some(),
        (Net(net), Net(wider)) => wider.encloses(net),
        (Regex(one), Regex(other)) => one.as_str() == other.as_str(),
        (&Number(compare, bound), &Number(other, wider)) => number_within(compare, bound, other, wider),
        _ => false,
    }
}

/// Whether each value that satisfies the first comparison satisfies the second.
fn number_within(one: Compare, bound: f64, other: Compare, wider: f64) -> bool {
    use Compare::{Above, AtLeast, AtMost, Below, Equal, Unequal};
    match (one, other) {
        (Equal, _) => other.holds(bound, wider),
        (Above, Above | AtLeast) | (AtLeast, AtLeast) => bound >= wider,
        (Below, Below | AtMost) | (AtMost, AtMost) => bound <= wider,
        (AtLeast, Above) => bound > wider,
        (AtMost, Below) => bound < wider,
        (Above | AtLeast | Below | AtMost, Unequal) => !one.holds(wider, bound),
        (Unequal, Unequal) => bound == wider,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use serde_json::{Value, json};

    use super::Unreachable;
    use crate::field::Field;
    use crate::naive::trace;
    use crate::random::{Random, head, id};
    use crate::ruleset::RuleSet;

    fn rules(rules: &Value) -> RuleSet {
        let content = json!({"protocol": "http", "default": {"to": "d"}, "rules": rules}).to_string();
        RuleSet::from_json(content.as_bytes()).unwrap_or_else(|e| panic!("{content}: {e:?}"))
    }

    /// Returns whether the second condition is reported as unreachable behind the first.
    fn shadowed(first: Value, second: Value) -> bool {
        let rules =
            rules(&json!([{"name": "a", "match": first, "to": "x"}, {"name": "b", "match": second, "to": "y"}]));
        match rules.unreachable()[..] {
            [] => false,
            [Unreachable { rule: 1, ref because }] => because == &[0],
            _ => panic!("the first rule is reachable"),
        }
    }

    #[test]
    fn shadows() {
        for (first, second) in [
            (json!({}), json!({"path": "/a"})),
            (json!({"path": {"prefix": "/a"}}), json!({"path": "/ab"})),
            (json!({"path": {"prefix": "/a"}}), json!({"path": {"prefix": "/ab"}, "method": "GET"})),
            (json!({"path": {"suffix": ".gif"}}), json!([{"path": {"suffix": "x.gif"}}, {"path": "/y.gif"}])),
            (json!({"path": {"contains": "b"}}), json!({"path": {"prefix": "/abc"}})),
            (json!({"path": {"regex": "b$"}}), json!({"path": ["/ab", "/b"]})),
            (json!({"xml": {"a": "> 5"}}), json!({"xml": {"a": ">= 6"}})),
            (json!({"xml": {"a": "!= 5"}}), json!({"xml": {"a": "< 5"}})),
            (json!({"method": ["GET", "HEAD"]}), json!({"method": "HEAD"})),
            (json!({"source": "10.0.0.0/8"}), json!({"source": "10.1.0.0/16"})),
            (json!({"source": "!10.0.0.0/8"}), json!({"source": "11.0.0.0/8"})),
            (json!({"host": "*.example"}), json!({"host": "a.example"})),
            (json!({"path": {"not": {"prefix": "/ab"}}}), json!({"path": {"not": {"prefix": "/a"}}})),
            (json!({"cookie": {"a": {"present": true}}}), json!({"cookie": {"a": "x"}})),
            (json!({"path": {"prefix": "/a", "not": {"suffix": "b"}}}), json!({"path": "/ac"})),
        ] {
            assert!(shadowed(first.clone(), second.clone()), "{first} {second}");
        }
    }

    #[test]
    fn no_shadows() {
        for (first, second) in [
            (json!({"path": "/a"}), json!({"path": {"prefix": "/a"}})),
            (json!({"path": {"prefix": "/a"}, "method": "GET"}), json!({"path": "/a"})),
            (json!({"path": {"prefix": "/a"}}), json!([{"path": "/ab"}, {"host": "b"}])),
            (json!({"xml": {"a": "> 5"}}), json!({"xml": {"a": ">= 5"}})),
            (json!({"xml": {"a": {"not": "1"}}}), json!({"xml": {"a": "2"}})),
            (json!({"source": "10.1.0.0/16"}), json!({"source": "10.0.0.0/8"})),
            (json!({"path": {"prefix": "/a", "not": {"suffix": "b"}}}), json!({"path": "/ab"})),
        ] {
            assert!(!shadowed(first.clone(), second.clone()), "{first} {second}");
        }
    }

    #[test]
    fn goto_and_else() {
        let named =
            |list: Value| rules(&list).unreachable().iter().map(|u| (u.rule, u.because.clone())).collect::<Vec<_>>();
        // A rule that is skipped unless the first rule fails, and a rule that no other leads to.
        let list = json!([
            {"name": "a", "match": {"path": {"prefix": "/a"}}, "goto": "d"},
            {"name": "b", "match": {"path": "/ab"}, "to": "x"},
            {"name": "c", "match": {"path": "/c"}, "to": "x", "else": {"to": "y"}},
            {"name": "d", "match": {"path": "/ab"}, "to": "x"},
        ]);
        assert_eq!(named(list), [(1, vec![0])]);
        let list = json!([
            {"name": "a", "match": {"path": "/a"}, "to": "x", "else": {"to": "y"}},
            {"name": "b", "match": {"path": "/b"}, "to": "x"},
        ]);
        assert_eq!(named(list), [(1, vec![0])]);
    }

    /// Reported rules never match when they are evaluated. Many rules are reported, so the test is not vacuous.
    #[test]
    fn named_rules_take_nothing() {
        let mut named = 0;
        for seed in 0..4000 {
            let mut random = Random(seed);
            let rules = rules(&random.rules());
            let unreachable: HashSet<usize> = rules.unreachable().iter().map(|u| u.rule as usize).collect();
            named += unreachable.len();
            if unreachable.is_empty() {
                continue;
            }
            for _ in 0..20 {
                let mut values = head(&rules, &mut random);
                for field in [Field::Xml("a".into()), Field::Xml("b:1".into()), Field::Json("a".into())] {
                    for _ in 0..random.below(3) {
                        if let Some(field) = id(&rules, &field) {
                            values.push(field, random.text().as_bytes());
                        }
                    }
                }
                trace(&rules, &values, &mut |rule, holds| {
                    assert!(!holds || !unreachable.contains(&rule), "seed {seed}: rule {rule}");
                });
            }
        }
        assert!(named > 500, "{named}");
    }
}
