//! Divides the rule list into blocks, at rules with `else` and at the targets of `goto`, and adds the alternatives of
//! the rules to the field indexes of their blocks.

use std::cmp::Reverse;
use std::collections::HashMap;

use crate::field::FieldId;
use crate::index::{Alt, Builder};
use crate::literals::{self, Texts};
use crate::number::Compare;
use crate::ruleset::{Action, Alternative, Block};
use crate::test::{Cond, Matcher, Test};

/// Returns the block number of each rule. A block ends after a rule with `else`, and before a rule that is the target
/// of a `goto`.
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

/// Builds the blocks, and sets the field `late_cover` of each alternative. The caller sets the field `miss` of each
/// block: its action for the case that no rule matches.
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

/// How often each matcher, and each literal of a regular expression, occurs in the conditions of a block. The smaller
/// the number, the fewer alternatives a search finds under this matcher or literal.
type Counts = HashMap<(FieldId, Key), u64>;

type Key = (u8, Box<[u8]>);

fn key(matcher: &Matcher) -> Key {
    match matcher {
        Matcher::Exact(text) => (0, text.clone()),
        Matcher::Prefix(text) => (1, text.clone()),
        Matcher::Suffix(text) => (2, text.clone()),
        Matcher::Contains(text) => (3, text.clone()),
        Matcher::Regex(regex) => text_key(regex.as_str().as_bytes()),
        Matcher::Number(Compare::Equal, bound) => (5, bound.to_bits().to_be_bytes().into()),
        // All matchers with the same comparison (such as `>`) share a key, because a value may satisfy several bounds.
        Matcher::Number(compare, _) => (6 + *compare as u8, Box::default()),
        Matcher::Net(net) => (5, [&net.first.to_be_bytes()[..], &[net.length]].concat().into()),
    }
}

struct Entries {
    counts: Counts,
    /// For each regular expression, sets of literals: every match of the expression contains a literal of each set.
    texts: HashMap<String, Vec<Texts>>,
    builders: HashMap<FieldId, Builder>,
}

/// The cover of a condition: a weight, and a set of matchers. If the condition holds, at least one matcher of the set
/// holds. `None` in the set stands for a matcher that every value satisfies. The weight estimates the cost of searches
/// if the alternative is indexed under this set: it grows with the number of alternatives that share the matchers.
type Cover<'t> = (u64, Vec<Option<&'t Matcher>>);

impl Entries {
    fn new(alternatives: &[Alternative]) -> Entries {
        let mut entries = Entries { counts: Counts::new(), texts: HashMap::new(), builders: HashMap::new() };
        for cond in alternatives.iter().flat_map(|alt| &alt.conds) {
            cond.branches.iter().for_each(|branch| entries.count(cond.field, &branch.test));
        }
        entries
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

    /// Adds an alternative to the index under the condition in `conds` whose cover has the least weight, and returns
    /// the field of this condition. Returns `None`, and adds nothing, if `conds` is empty or if all of `conds` can hold
    /// for a field without a value.
    fn enter(&mut self, alt: Alt, conds: &[Cond]) -> Option<FieldId> {
        let covers = conds.iter().filter_map(|cond| Some((cond.field, self.cover_of(cond)?)));
        let (field, (_, matchers)) = covers.min_by_key(|(_, (weight, _))| *weight)?;
        for matcher in matchers {
            let texts = matcher.and_then(|matcher| self.best_texts(field, matcher)).map(|(_, texts)| texts.clone());
            let builder = self.builders.entry(field).or_default();
            match texts {
                Some(texts) => builder.enter_texts(alt, &texts),
                None => builder.enter(alt, matcher),
            }
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
            Matcher::Regex(_) => return self.best_texts(field, matcher).map_or(LINEAR, |(weight, _)| 8 * weight),
            Matcher::Number(..) => 8,
        };
        factor * self.counts.get(&(field, key(matcher))).copied().unwrap_or(1)
    }

    /// Of the literal sets of a regular expression, returns the set whose literals occur least often in the sets of the
    /// block's expressions, and the number of these occurrences. `None` if the matcher is no expression, or the
    /// expression requires no literal.
    fn best_texts(&self, field: FieldId, matcher: &Matcher) -> Option<(u64, &Texts)> {
        let Matcher::Regex(regex) = matcher else { return None };
        let shared = |texts: &Texts| -> u64 {
            let count = |text: &Vec<u8>| self.counts.get(&(field, text_key(text))).copied().unwrap_or(1);
            texts.iter().map(count).sum()
        };
        let choices = self.texts.get(regex.as_str())?.iter();
        choices
            .map(|texts| (shared(texts), texts))
            .min_by_key(|(shared, texts)| (*shared, Reverse(literals::shortest(texts))))
    }

    fn count(&mut self, field: FieldId, test: &Test) {
        match test {
            Test::Is(Matcher::Regex(regex)) => {
                let text = regex.as_str().to_owned();
                let choices = self.texts.entry(text).or_insert_with_key(|text| literals::required(text));
                for text in choices.iter().flatten() {
                    *self.counts.entry((field, text_key(text))).or_default() += 1;
                }
            }
            Test::Is(matcher) => *self.counts.entry((field, key(matcher))).or_default() += 1,
            Test::Any(tests) | Test::All(tests) => tests.iter().for_each(|test| self.count(field, test)),
            Test::Not(test) => self.count(field, test),
        }
    }
}

fn text_key(text: &[u8]) -> Key {
    (4, text.into())
}

/// The weight (for `!=`, a factor of the weight) of a matcher that a search must try for every value. The number
/// exceeds usual weights by far, so that an alternative is indexed under another of its conditions if it has one.
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
