//! Indexes of the conditions on a field. A rule matches if one of its alternatives does, and an alternative is a list
//! of conditions that must all hold. A search by a field's value finds the alternatives that the value may satisfy,
//! without a scan of all rules. So a decision by 10,000 rules takes hardly longer than a decision by a single rule.
//!
//! An alternative is added to the index under *one* of its conditions, by the condition's cover: a set of matchers of
//! which at least one must hold. A search returns candidates, and the caller checks their other conditions.
//! Alternatives are numbered in the order of the rules.

use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, HashMap};

use aho_corasick::AhoCorasick;
use regex::bytes::Regex;

use crate::expressions::Expressions;
use crate::number::{Compare, number};
use crate::test::{Matcher, Net, address_of};

/// The number of an alternative.
pub(crate) type Alt = u32;

/// Receives the candidates that a search finds: alternatives with numbers below `bound`. The receiver may decrease
/// `bound` during the search.
pub(crate) trait Visit {
    /// Receives a candidate.
    fn candidate(&mut self, alt: Alt);
    /// Returns the number from which on the search skips alternatives.
    fn bound(&self) -> Alt;
}

/// Visits the alternatives of an ascending list that are below the visitor's bound.
fn visit_all(alts: &[Alt], visit: &mut impl Visit) {
    for &alt in alts {
        if alt >= visit.bound() {
            return;
        }
        visit.candidate(alt);
    }
}

/// Collects the entries of a field before the field's indexes are built.
#[derive(Default)]
pub(crate) struct Builder {
    exact: HashMap<Box<[u8]>, Vec<Alt>>,
    prefixes: HashMap<Box<[u8]>, Vec<Alt>>,
    suffixes: HashMap<Box<[u8]>, Vec<Alt>>,
    nets: HashMap<Net, Vec<Alt>>,
    literals: HashMap<Box<[u8]>, Vec<Alt>>,
    numbers: [Vec<(f64, Alt)>; 4],
    equal: HashMap<u64, Vec<Alt>>,
    expressions: Vec<(Alt, Regex)>,
    others: Vec<Alt>,
}

impl Builder {
    /// Adds an alternative under a matcher. If the matcher is none, a search by any value finds the alternative.
    pub(crate) fn enter(&mut self, alt: Alt, matcher: Option<&Matcher>) {
        match matcher {
            Some(Matcher::Exact(text)) => self.exact.entry(text.clone()).or_default().push(alt),
            Some(Matcher::Prefix(text)) => self.prefixes.entry(text.clone()).or_default().push(alt),
            Some(Matcher::Suffix(text)) => {
                self.suffixes.entry(text.iter().rev().copied().collect()).or_default().push(alt);
            }
            Some(Matcher::Contains(text)) => self.literals.entry(text.clone()).or_default().push(alt),
            Some(Matcher::Net(net)) => self.nets.entry(*net).or_default().push(alt),
            Some(Matcher::Number(compare, bound)) => self.enter_number(alt, *compare, *bound),
            Some(Matcher::Regex(regex)) => self.expressions.push((alt, regex.clone())),
            None => self.others.push(alt),
        }
    }

    /// Adds an alternative under literals: each text that the alternative's regular expression matches contains at
    /// least one of them.
    pub(crate) fn enter_texts(&mut self, alt: Alt, texts: &[Vec<u8>]) {
        for text in texts {
            self.literals.entry(text.as_slice().into()).or_default().push(alt);
        }
    }

    fn enter_number(&mut self, alt: Alt, compare: Compare, bound: f64) {
        match compare {
            Compare::Equal => self.equal.entry(bound.to_bits()).or_default().push(alt),
            Compare::Unequal => self.others.push(alt),
            Compare::Above => self.numbers[0].push((bound, alt)),
            Compare::AtLeast => self.numbers[1].push((bound, alt)),
            Compare::Below => self.numbers[2].push((-bound, alt)),
            Compare::AtMost => self.numbers[3].push((-bound, alt)),
        }
    }

    pub(crate) fn build(mut self) -> Index {
        self.others.dedup();
        let numeric = self.numbers.iter().any(|list| !list.is_empty()) || !self.equal.is_empty();
        Index {
            exact: self.exact,
            prefixes: Forest::new(self.prefixes.into_iter().map(|(text, alts)| (PrefixKey(text), alts))),
            suffixes: Forest::new(self.suffixes.into_iter().map(|(text, alts)| (SuffixKey(text), alts))),
            nets: Forest::new(self.nets),
            literals: Literals::new(self.literals),
            numbers: self.numbers.map(Thresholds::new),
            equal: self.equal,
            numeric,
            expressions: Expressions::new(self.expressions),
            others: self.others,
        }
    }
}

/// The indexes of a field.
#[derive(Debug)]
pub(crate) struct Index {
    exact: HashMap<Box<[u8]>, Vec<Alt>>,
    prefixes: Forest<PrefixKey>,
    suffixes: Forest<SuffixKey>,
    nets: Forest<Net>,
    literals: Option<Literals>,
    numbers: [Thresholds; 4],
    equal: HashMap<u64, Vec<Alt>>,
    numeric: bool,
    expressions: Expressions,
    others: Vec<Alt>,
}

impl Index {
    /// Visits the alternatives that `value` may satisfy. An alternative may be visited more than once.
    pub(crate) fn search(&self, value: &[u8], visit: &mut impl Visit) {
        if let Some(alts) = self.exact.get(value) {
            visit_all(alts, visit);
        }
        self.prefixes.search(value, visit);
        self.suffixes.search(value, visit);
        if !self.nets.keys.is_empty()
            && let Some(address) = address_of(value)
        {
            self.nets.search(&address, visit);
        }
        if self.numeric
            && let Some(value) = number(value)
        {
            self.search_numbers(value, visit);
        }
        if let Some(literals) = &self.literals {
            literals.search(value, visit);
        }
        self.expressions.search(value, visit);
        visit_all(&self.others, visit);
    }

    fn search_numbers(&self, value: f64, visit: &mut impl Visit) {
        if let Some(alts) = self.equal.get(&value.to_bits()) {
            visit_all(alts, visit);
        }
        let [above, at_least, below, at_most] = &self.numbers;
        above.search(|bound| bound < value, visit);
        at_least.search(|bound| bound <= value, visit);
        below.search(|bound| bound < -value, visit);
        at_most.search(|bound| bound <= -value, visit);
    }
}

/// A key that matches an interval of values. Two intervals are either nested or disjoint.
trait Nested: Ord {
    type Value: ?Sized;
    /// Compares the key with a value, in the order of the keys.
    fn order(&self, value: &Self::Value) -> Ordering;
    fn holds(&self, value: &Self::Value) -> bool;
    fn encloses(&self, other: &Self) -> bool;
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct PrefixKey(Box<[u8]>);

impl Nested for PrefixKey {
    type Value = [u8];

    fn order(&self, value: &[u8]) -> Ordering {
        (*self.0).cmp(value)
    }

    fn holds(&self, value: &[u8]) -> bool {
        value.starts_with(&self.0)
    }

    fn encloses(&self, other: &PrefixKey) -> bool {
        other.0.starts_with(&self.0)
    }
}

/// A suffix; its bytes are stored in reverse order.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct SuffixKey(Box<[u8]>);

impl Nested for SuffixKey {
    type Value = [u8];

    fn order(&self, value: &[u8]) -> Ordering {
        self.0.iter().cmp(value.iter().rev())
    }

    fn holds(&self, value: &[u8]) -> bool {
        self.0.len() <= value.len() && self.0.iter().eq(value.iter().rev().take(self.0.len()))
    }

    fn encloses(&self, other: &SuffixKey) -> bool {
        other.0.starts_with(&self.0)
    }
}

impl Nested for Net {
    type Value = u128;

    fn order(&self, value: &u128) -> Ordering {
        self.first.cmp(value)
    }

    fn holds(&self, value: &u128) -> bool {
        self.contains(*value)
    }

    fn encloses(&self, other: &Net) -> bool {
        Net::encloses(self, other)
    }
}

const NONE: u32 = u32::MAX;

/// Keys with nested intervals, in ascending order. `parents` contains for each key the index of the narrowest other key
/// that encloses it. To search for a value, a binary search finds the last key that is not above the value. The keys
/// that match the value are among this key and the keys that enclose it.
#[derive(Debug)]
struct Forest<K> {
    keys: Vec<K>,
    parents: Vec<u32>,
    alts: Vec<Vec<Alt>>,
}

impl<K: Nested> Forest<K> {
    fn new(entries: impl IntoIterator<Item = (K, Vec<Alt>)>) -> Forest<K> {
        let mut entries: Vec<_> = entries.into_iter().collect();
        entries.sort_by(|a, b| a.0.cmp(&b.0));
        let (keys, alts): (Vec<K>, Vec<Vec<Alt>>) = entries.into_iter().unzip();
        let mut parents: Vec<u32> = Vec::with_capacity(keys.len());
        for (i, key) in keys.iter().enumerate() {
            let mut parent = if i == 0 { NONE } else { i as u32 - 1 };
            while parent != NONE && !keys[parent as usize].encloses(key) {
                parent = parents[parent as usize];
            }
            parents.push(parent);
        }
        Forest { keys, parents, alts }
    }

    fn search(&self, value: &K::Value, visit: &mut impl Visit) {
        let after = self.keys.partition_point(|key| key.order(value) != Ordering::Greater);
        let mut at = (after as u32).wrapping_sub(1);
        while at != NONE && !self.keys[at as usize].holds(value) {
            at = self.parents[at as usize];
        }
        while at != NONE {
            visit_all(&self.alts[at as usize], visit);
            at = self.parents[at as usize];
        }
    }
}

/// Numeric bounds in ascending order, with a segment tree that finds the least alternative number in a range of bounds.
#[derive(Debug)]
struct Thresholds {
    bounds: Vec<f64>,
    alts: Vec<Alt>,
    /// A binary tree of indexes into `alts`. Its leaves begin at `bounds.len()`, one for each index. A node above two
    /// others contains the index with the lesser alternative number.
    tree: Vec<u32>,
}

impl Thresholds {
    fn new(mut entries: Vec<(f64, Alt)>) -> Thresholds {
        entries.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let (bounds, alts): (Vec<f64>, Vec<Alt>) = entries.into_iter().unzip();
        let n = alts.len();
        let mut tree = vec![0; 2 * n];
        for i in 0..n {
            tree[n + i] = i as u32;
        }
        for i in (1..n).rev() {
            tree[i] = least(&alts, tree[2 * i], tree[2 * i + 1]);
        }
        Thresholds { bounds, alts, tree }
    }

    /// Returns the index of the least alternative number in the range from `from` (inclusive) to `to` (exclusive).
    fn least(&self, from: usize, to: usize) -> u32 {
        let n = self.alts.len();
        let (mut left, mut right, mut best) = (from + n, to + n, from as u32);
        while left < right {
            if left & 1 == 1 {
                best = least(&self.alts, best, self.tree[left]);
                left += 1;
            }
            if right & 1 == 1 {
                right -= 1;
                best = least(&self.alts, best, self.tree[right]);
            }
            (left, right) = (left / 2, right / 2);
        }
        best
    }

    /// Visits the alternatives whose bounds match, in ascending order of the alternatives. The search ends as soon as
    /// an alternative holds, because the visitor then decreases its own bound to this alternative.
    fn search(&self, holds: impl Fn(f64) -> bool, visit: &mut impl Visit) {
        let end = self.bounds.partition_point(|&bound| holds(bound));
        if end == 0 {
            return;
        }
        let entry = |from: usize, to: usize| {
            let place = self.least(from, to);
            Reverse((self.alts[place as usize], place as usize, from, to))
        };
        let mut ranges = BinaryHeap::new();
        let mut range = entry(0, end);
        loop {
            let Reverse((alt, place, from, to)) = range;
            if alt >= visit.bound() {
                return;
            }
            visit.candidate(alt);
            if visit.bound() <= alt {
                return;
            }
            ranges.extend((from < place).then(|| entry(from, place)));
            ranges.extend((place + 1 < to).then(|| entry(place + 1, to)));
            let Some(next) = ranges.pop() else { return };
            range = next;
        }
    }
}

fn least(alts: &[Alt], a: u32, b: u32) -> u32 {
    if alts[b as usize] < alts[a as usize] { b } else { a }
}

/// Literals that may occur anywhere in a value.
#[derive(Debug)]
struct Literals {
    automaton: AhoCorasick,
    alts: Vec<Vec<Alt>>,
}

impl Literals {
    fn new(entries: HashMap<Box<[u8]>, Vec<Alt>>) -> Option<Literals> {
        if entries.is_empty() {
            return None;
        }
        let mut entries: Vec<_> = entries.into_iter().collect();
        entries.sort();
        let automaton = AhoCorasick::new(entries.iter().map(|(text, _)| text)).ok()?;
        Some(Literals { automaton, alts: entries.into_iter().map(|(_, alts)| alts).collect() })
    }

    fn search(&self, value: &[u8], visit: &mut impl Visit) {
        let mut visited = Vec::new();
        for hit in self.automaton.find_overlapping_iter(value) {
            let pattern = hit.pattern().as_usize();
            if visited.is_empty() {
                visited.resize(self.alts.len(), false);
            }
            if !std::mem::replace(&mut visited[pattern], true) {
                visit_all(&self.alts[pattern], visit);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Recorder(Vec<Alt>, Alt);

    impl Visit for Recorder {
        fn candidate(&mut self, alt: Alt) {
            self.0.push(alt);
        }

        fn bound(&self) -> Alt {
            self.1
        }
    }

    fn hit(index: &Index, value: &[u8]) -> Vec<Alt> {
        let mut all = Recorder(Vec::new(), NONE);
        index.search(value, &mut all);
        all.0.sort_unstable();
        all.0
    }

    fn index(matchers: &[Matcher]) -> Index {
        let mut builder = Builder::default();
        for (alt, matcher) in matchers.iter().enumerate() {
            builder.enter(alt as Alt, Some(matcher));
        }
        builder.build()
    }

    #[test]
    fn all_enclosing_keys_match() {
        let texts = [&b"/"[..], b"/a", b"/a/b/", b"/a/c", b"/b", b"/a/b/c/d"];
        let index = index(&texts.map(|text| Matcher::Prefix(text.into())));
        assert_eq!(hit(&index, b"/a/b/c"), [0, 1, 2]);
        assert_eq!(hit(&index, b"/a/b/c/d/e"), [0, 1, 2, 5]);
        assert_eq!(hit(&index, b"/a"), [0, 1]);
        assert_eq!(hit(&index, b"/z"), [0]);
        assert!(hit(&index, b"z").is_empty());
        assert!(hit(&index, b"").is_empty());
    }

    #[test]
    fn thresholds_are_visited_in_rule_order() {
        let bounds = [50.0, 10.0, 30.0, 20.0, 40.0];
        let index = index(&bounds.map(|bound| Matcher::Number(Compare::Above, bound)));
        let mut all = Recorder(Vec::new(), NONE);
        index.search(b"35", &mut all);
        assert_eq!(all.0, [1, 2, 3]);
        let mut first = Recorder(Vec::new(), 2);
        index.search(b"100", &mut first);
        assert_eq!(first.0, [0, 1]);
    }
}
