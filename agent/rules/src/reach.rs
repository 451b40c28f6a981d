//! Finds unreachable rules: rules that never decide, because earlier rules match the same requests.
//!
//! A rule is reported if each of its alternatives implies an alternative of a rule that is always evaluated earlier.
//! The rules behind a rule with `else` are reported as well, up to the next target of a `goto`. Conditions are compared
//! syntactically, so some unreachable rules are not found. However, a reported rule is never the first to match.

use crate::field::{Field, FieldId};
use crate::number::Compare;
use crate::ruleset::{Action, Alternative, RuleSet};
use crate::test::{Branch, Cond, Matcher, Test};

/// A rule that no request can reach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreachable {
    /// Index of the rule.
    pub rule: u32,
    /// Indexes of the earlier rules that together match every request that this rule matches, or the index of an
    /// earlier rule whose `else` applies to all other requests.
    pub shadowed_by: Vec<u32>,
}

impl RuleSet {
    /// Returns the rules that no request can reach.
    pub fn unreachable(&self) -> Vec<Unreachable> {
        let mut unreachable = Vec::new();
        let mut rules = 0..0;
        for block in 0..self.blocks.len() {
            let first = rules.end;
            let size = self.block_of[first..].iter().take_while(|&&second| second as usize == block).count();
            let is_entry = self.is_target(block as u32) || block == 0;
            // A block that is no target of a `goto` is evaluated only if no rule of the previous block has matched. So
            // the rules of that block may make the rules of this block unreachable.
            rules = if is_entry { first..first + size } else { rules.start..first + size };
            let passed = (!is_entry).then(|| self.blocks[block - 1].miss).flatten();
            for rule in first..first + size {
                let shadowed_by = match passed {
                    Some((second, _)) => Some(vec![second]),
                    None if self.misses[rule].is_some() => None,
                    None => self.shadows(rules.start as u32, rule as u32),
                };
                unreachable.extend(shadowed_by.map(|shadowed_by| Unreachable { rule: rule as u32, shadowed_by }));
            }
        }
        unreachable
    }

    fn is_target(&self, block: u32) -> bool {
        let goto = Action::Goto(block);
        self.actions.contains(&goto) || self.misses.contains(&Some(goto))
    }

    /// Returns the rules from `first` on that together match every request that the later rule `rule` matches; none if
    /// an alternative of `rule` implies no earlier alternative.
    fn shadows(&self, first: u32, rule: u32) -> Option<Vec<u32>> {
        let of = |target: u32| {
            let start = self.alternatives.partition_point(|alt| alt.rule < target);
            start..start + self.alternatives[start..].partition_point(|alt| alt.rule == target)
        };
        let earlier = &self.alternatives[of(first).start..of(rule).start];
        let mut shadowed_by = Vec::new();
        for alternative in &self.alternatives[of(rule)] {
            shadowed_by.push(earlier.iter().find(|second| self.implies(alternative, second))?.rule);
        }
        shadowed_by.sort_unstable();
        shadowed_by.dedup();
        Some(shadowed_by)
    }

    /// Returns whether a comparison of the conditions shows that all requests that satisfy the first alternative
    /// satisfy the second. False if it cannot decide.
    fn implies(&self, first: &Alternative, second: &Alternative) -> bool {
        let implied = |cond: &Cond| {
            first.conds.iter().any(|condition| {
                condition.field == cond.field && cond_implies(condition, cond, self.is_single(cond.field))
            })
        };
        second.conds.iter().all(implied)
    }

    /// Returns whether a field has at most one value in a request.
    fn is_single(&self, field: FieldId) -> bool {
        use Field::{Cookie, Form, Header, Json, Query, Xml};
        !matches!(
            self.fields[field.0 as usize],
            Query(_) | Header(_) | Cookie(_) | Xml(_) | Json(_) | Form(_) | Field::Alpn
        )
    }
}

fn cond_implies(first: &Cond, second: &Cond, single: bool) -> bool {
    let implied = |branch: &Branch| second.branches.iter().any(|second| branch_implies(branch, second, single));
    first.branches.iter().all(implied)
}

fn branch_implies(first: &Branch, second: &Branch, single: bool) -> bool {
    match (first.negated, second.negated) {
        (false, false) => test_implies(&first.test, &second.test),
        (true, true) => test_implies(&second.test, &first.test),
        (false, true) => single && are_disjoint(&first.test, &second.test),
        (true, false) => false,
    }
}

/// Returns whether a syntactic comparison shows that every value that satisfies the first test satisfies the second.
/// False if it cannot decide.
fn test_implies(first: &Test, second: &Test) -> bool {
    match (first, second) {
        (Test::Is(Matcher::Exact(text)), _) => second.holds(text),
        (Test::Any(tests), _) => tests.iter().all(|test| test_implies(test, second)),
        (_, Test::All(tests)) => tests.iter().all(|test| test_implies(first, test)),
        (Test::Not(first), Test::Not(second)) => test_implies(second, first),
        (_, Test::Not(second)) => are_disjoint(first, second),
        (_, Test::Any(tests)) if tests.iter().any(|test| test_implies(first, test)) => true,
        (Test::All(tests), _) => tests.iter().any(|test| test_implies(test, second)),
        (Test::Is(first), Test::Is(second)) => matcher_implies(first, second),
        _ => false,
    }
}

/// Returns whether a syntactic comparison shows that no value satisfies both tests. False if it cannot decide.
fn are_disjoint(first: &Test, second: &Test) -> bool {
    match (first, second) {
        (Test::Is(Matcher::Exact(text)), test) | (test, Test::Is(Matcher::Exact(text))) => !test.holds(text),
        (Test::Any(tests), test) | (test, Test::Any(tests)) => tests.iter().all(|first| are_disjoint(first, test)),
        (Test::All(tests), test) | (test, Test::All(tests)) => tests.iter().any(|first| are_disjoint(first, test)),
        (Test::Is(Matcher::Net(first)), Test::Is(Matcher::Net(second))) => {
            !first.encloses(second) && !second.encloses(first)
        }
        (Test::Is(Matcher::Prefix(first)), Test::Is(Matcher::Prefix(second))) => {
            !first.starts_with(second) && !second.starts_with(first)
        }
        _ => false,
    }
}

fn matcher_implies(first: &Matcher, second: &Matcher) -> bool {
    use Matcher::{Contains, Net, Number, Prefix, Regex, Suffix};
    match (first, second) {
        (Prefix(text), Prefix(head)) => text.starts_with(head),
        (Suffix(text), Suffix(tail)) => text.ends_with(tail),
        (Prefix(text) | Suffix(text) | Contains(text), Contains(pattern)) => {
            memchr::memmem::find(text, pattern).is_some()
        }
        (Net(net), Net(wider)) => wider.encloses(net),
        (Regex(first), Regex(second)) => first.as_str() == second.as_str(),
        (&Number(compare, bound), &Number(second, wider)) => comparison_implies(compare, bound, second, wider),
        _ => false,
    }
}

/// Returns whether each value that satisfies the first comparison satisfies the second.
fn comparison_implies(first: Compare, bound: f64, second: Compare, wider: f64) -> bool {
    use Compare::{Above, AtLeast, AtMost, Below, Equal, Unequal};
    match (first, second) {
        (Equal, _) => second.holds(bound, wider),
        (Above, Above | AtLeast) | (AtLeast, AtLeast) => bound >= wider,
        (Below, Below | AtMost) | (AtMost, AtMost) => bound <= wider,
        (AtLeast, Above) => bound > wider,
        (AtMost, Below) => bound < wider,
        (Above | AtLeast | Below | AtMost, Unequal) => !first.holds(wider, bound),
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

    /// Returns whether, of two rules with these conditions, the second rule is reported as unreachable.
    fn shadowed(first: Value, second: Value) -> bool {
        let rules =
            rules(&json!([{"name": "a", "match": first, "to": "x"}, {"name": "b", "match": second, "to": "y"}]));
        match rules.unreachable()[..] {
            [] => false,
            [Unreachable { rule: 1, ref shadowed_by }] => shadowed_by == &[0],
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
        let named = |list: Value| {
            rules(&list).unreachable().iter().map(|u| (u.rule, u.shadowed_by.clone())).collect::<Vec<_>>()
        };
        // In the first list, rule b is evaluated only if rule a does not match, so b never matches. In the second list,
        // rule a always decides (`to` or `else`), so no request reaches rule b.
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

    /// A reported rule never matches when it is evaluated. Many rules are reported, so that the test is not vacuous.
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
