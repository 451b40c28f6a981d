//! Cuts rules into blocks, and enters each alternative into the indexes of its block.

use std::collections::HashMap;

use crate::field::FieldId;
use crate::index::{Alt, Builder};
use crate::literals;
use crate::number::Compare;
use crate::ruleset::{Action, Alternative, Block};
use crate::test::{Cond, Matcher, Test};

/// The block of each rule. A block ends behind a rule with `else`, and before the target of a `goto`.
pub(crate) fn cut(ends: &[bool], targets: &[u32]) -> Vec<u32> {
    let mut block = 0;
    let mut starts = vec![false; ends.len()];
    for &target in targets {
        starts[target as usize] = true;
    }
    let place = |rule: usize| {
        if rule > 0 && (starts[rule] || ends[rule - 1]) {
            block += 1;
        }
        block
    };
    (0..ends.len()).map(place).collect()
}

/// Builds the blocks, without what they do when nothing matches.
pub(crate) fn build(alternatives: &mut [Alternative], block_of: &[u32], actions: &[Action]) -> Vec<Block> {
    let count = block_of.last().map_or(0, |&last| last as usize + 1);
    let mut blocks: Vec<Block> = (0..count).map(|_| Block::default()).collect();
    let mut from = 0;
    for (number, block) in blocks.iter_mut().enumerate() {
        let rules =
            alternatives[from..].iter().take_while(|alt| block_of[alt.rule as usize] as usize == number).count();
        block.alts = from as Alt..(from + rules) as Alt;
        Entries::new(&alternatives[from..from + rules]).fill(block, alternatives, actions);
        from += rules;
    }
    blocks
}

/// How many alternatives have the same matcher, and so how little an entry under it tells.
type Counts = HashMap<(FieldId, Key), u64>;

type Key = (u8, Box<[u8]>);

fn key(matcher: &Matcher) -> Key {
    match matcher {
        Matcher::Exact(text) => (0, text.clone()),
        Matcher::Prefix(text) => (1, text.clone()),
        Matcher::Suffix(text) => (2, text.clone()),
        Matcher::Contains(text) => (3, text.clone()),
        Matcher::Regex(regex) => (4, regex.as_str().as_bytes().into()),
        Matcher::Number(Compare::Equal, bound) => (5, bound.to_bits().to_be_bytes().into()),
        // All bounds together: one value may satisfy each of them.
        Matcher::Number(compare, _) => (6 + *compare as u8, Box::default()),
        Matcher::Net(net) => (5, [&net.first.to_be_bytes()[..], &[net.length]].concat().into()),
    }
}

struct Entries {
    counts: Counts,
    builders: HashMap<FieldId, Builder>,
}

/// A set of matchers of which one must hold, none for any value at all, and how little it tells.
type Cover<'t> = (u64, Vec<Option<&'t Matcher>>);

impl Entries {
    fn new(alternatives: &[Alternative]) -> Entries {
        let mut counts = Counts::new();
        for cond in alternatives.iter().flat_map(|alt| &alt.conds) {
            for branch in &cond.branches {
                count(&mut counts, cond.field, &branch.test);
            }
        }
        Entries { counts, builders: HashMap::new() }
    }

    fn fill(mut self, block: &mut Block, alternatives: &mut [Alternative], actions: &[Action]) {
        let mut first: HashMap<FieldId, Alt> = HashMap::new();
        for number in block.alts.clone() {
            let alt = &mut alternatives[number as usize];
            let (heads, lates) = alt.conds.split_at(alt.heads);
            let head = self.enter(number, heads);
            let late = self.enter(number, lates);
            if !lates.is_empty() && !matches!(actions[alt.rule as usize], Action::Route(..)) {
                block.guards.push(number);
            }
            alt.late_cover = late;
            match (heads.is_empty(), head, lates.is_empty(), late) {
                (false, Some(_), _, _) => {}
                (false, None, _, _) | (true, _, true, _) => block.unindexed.push(number),
                (true, _, false, Some(field)) => {
                    first.entry(field).or_insert(number);
                }
                (true, _, false, None) => block.absent.push(number),
            }
        }
        block.late = first.into_iter().map(|(field, alt)| (alt, field)).collect();
        block.late.sort_unstable();
        block.indexes = self.builders.into_iter().map(|(field, builder)| (field, builder.build())).collect();
    }

    /// Enters an alternative under the condition that tells most; none when all are on absence.
    fn enter(&mut self, alt: Alt, conds: &[Cond]) -> Option<FieldId> {
        let covers = conds.iter().filter_map(|cond| Some((cond.field, self.cover_of(cond)?)));
        let (field, (_, matchers)) = covers.min_by_key(|(_, (weight, _))| *weight)?;
        let builder = self.builders.entry(field).or_default();
        for matcher in matchers {
            builder.enter(alt, matcher);
        }
        Some(field)
    }

    fn cover_of<'t>(&self, cond: &'t Cond) -> Option<Cover<'t>> {
        let covers =
            cond.branches.iter().map(|branch| if branch.negated { None } else { self.cover(cond.field, &branch.test) });
        union(covers)
    }

    fn cover<'t>(&self, field: FieldId, test: &'t Test) -> Option<Cover<'t>> {
        match test {
            Test::Is(matcher) => Some((self.weight(field, matcher), vec![Some(matcher)])),
            Test::Any(tests) => union(tests.iter().map(|test| self.cover(field, test))),
            Test::All(tests) => tests
                .iter()
                .filter_map(|test| self.cover(field, test))
                .min_by_key(|(weight, _)| *weight)
                .or(Some((LINEAR, vec![None]))),
            Test::Not(_) => Some((LINEAR, vec![None])),
        }
    }

    fn weight(&self, field: FieldId, matcher: &Matcher) -> u64 {
        let factor = match matcher {
            Matcher::Exact(_) | Matcher::Number(Compare::Equal, _) => 1,
            Matcher::Prefix(_) | Matcher::Suffix(_) | Matcher::Net(_) => 2,
            Matcher::Contains(_) => 4,
            Matcher::Number(Compare::Unequal, _) => LINEAR,
            Matcher::Regex(regex) if literals::required(regex.as_str()).is_none() => LINEAR,
            Matcher::Number(..) | Matcher::Regex(_) => 8,
        };
        factor * self.counts.get(&(field, key(matcher))).copied().unwrap_or(1)
    }
}

/// The factor of what is tried for every value.
const LINEAR: u64 = 1 << 20;

fn union<'t>(covers: impl Iterator<Item = Option<Cover<'t>>>) -> Option<Cover<'t>> {
    let mut all: Cover = (0, Vec::new());
    for cover in covers {
        let (weight, matchers) = cover?;
        all.0 = all.0.saturating_add(weight);
        all.1.extend(matchers);
    }
    Some(all)
}

fn count(counts: &mut Counts, field: FieldId, test: &Test) {
    match test {
        Test::Is(matcher) => *counts.entry((field, key(matcher))).or_default() += 1,
        Test::Any(tests) | Test::All(tests) => tests.iter().for_each(|test| count(counts, field, test)),
        Test::Not(test) => count(counts, field, test),
    }
}
