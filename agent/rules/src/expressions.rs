//! Matches regular expressions that require no literal. A single automaton, built lazily, finds which of them match.
//! The automaton handles only ASCII, because classes of all Unicode characters would make it a hundred times as large.
//! The automaton's memory is bounded. In five cases, each expression is tried separately instead: the value is not
//! ASCII, needs too many states or has too many matches, there are few expressions, or they are too large for an
//! automaton.

use std::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};

use regex::bytes::Regex;
use regex_automata::hybrid::dfa::{Cache, Config, DFA, OverlappingState};
use regex_automata::nfa::thompson;
use regex_automata::util::pool::Pool;
use regex_automata::{Input, MatchKind, PatternSet};
use regex_syntax::hir::{Class, ClassUnicode, ClassUnicodeRange, Hir, HirKind, Look, Repetition};

use crate::index::{Alt, Visit};

/// With fewer expressions, trying each of them separately is as fast as the automaton.
const MIN_EXPRESSIONS: usize = 8;
/// Memory limits in bytes, of an automaton's program and of its cached states in one thread.
const PROGRAM_BYTES: usize = 2 << 20;
const STATE_BYTES: usize = 2 << 20;
/// The search is abandoned when the state cache was cleared this many times, and the automaton has read fewer than
/// `MIN_BYTES_PER_STATE` bytes per new state since the last clearing.
const MAX_CLEARS: usize = 3;
const MIN_BYTES_PER_STATE: usize = 10;

/// Alternatives in ascending order, each of which can hold only if its expression matches. The automaton numbers the
/// expressions in the same order; it is `None` if each expression is tried separately.
#[derive(Debug)]
pub(crate) struct Expressions {
    alts: Vec<Alt>,
    combined: Option<CombinedAutomaton>,
}

impl Expressions {
    pub(crate) fn new(entries: Vec<(Alt, Regex)>) -> Expressions {
        let combined = if entries.len() < MIN_EXPRESSIONS { None } else { CombinedAutomaton::new(&entries) };
        Expressions { alts: entries.into_iter().map(|(alt, _)| alt).collect(), combined }
    }

    /// Visits the alternatives whose expression matches. If the automaton gives no result, visits all alternatives, so
    /// that the visitor tries each expression.
    pub(crate) fn search(&self, value: &[u8], visit: &mut impl Visit) {
        let is_relevant = self.alts.first().is_some_and(|&first| first < visit.bound());
        let matching = self.combined.as_ref().filter(|_| is_relevant).and_then(|combined| combined.search(value));
        for (pattern, &alt) in self.alts.iter().enumerate() {
            if alt >= visit.bound() {
                return;
            }
            if matching
                .as_ref()
                .is_none_or(|matching| matching.contains(pattern.try_into().expect("as many as patterns")))
            {
                visit.candidate(alt);
            }
        }
    }
}

type NewCache = Box<dyn Fn() -> Cache + Send + Sync + UnwindSafe + RefUnwindSafe>;

/// An automaton that combines all expressions.
struct CombinedAutomaton {
    automaton: DFA,
    caches: Pool<Cache, NewCache>,
}

impl fmt::Debug for CombinedAutomaton {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Together").field("patterns", &self.automaton.pattern_len()).finish_non_exhaustive()
    }
}

impl CombinedAutomaton {
    /// Builds the automaton; none if the automaton would be too large.
    fn new(entries: &[(Alt, Regex)]) -> Option<CombinedAutomaton> {
        let config = Config::new()
            .match_kind(MatchKind::All)
            .cache_capacity(STATE_BYTES)
            .minimum_cache_clear_count(Some(MAX_CLEARS))
            .minimum_bytes_per_state(Some(MIN_BYTES_PER_STATE));
        let parsed = |(_, regex): &(Alt, Regex)| {
            regex_syntax::ParserBuilder::new().utf8(false).build().parse(regex.as_str()).map(ascii).ok()
        };
        let expressions: Vec<Hir> = entries.iter().map(parsed).collect::<Option<_>>()?;
        let limit = thompson::Config::new().utf8(false).nfa_size_limit(Some(PROGRAM_BYTES));
        let program = thompson::Compiler::new().configure(limit).build_many_from_hir(&expressions).ok()?;
        let automaton = DFA::builder().configure(config).build_from_nfa(program).ok()?;
        let new = automaton.clone();
        Some(CombinedAutomaton { automaton, caches: Pool::new(Box::new(move || new.create_cache())) })
    }

    /// Returns the set of the expressions that match; `None` if the value is not ASCII or the search is abandoned.
    fn search(&self, value: &[u8]) -> Option<PatternSet> {
        if !value.is_ascii() {
            return None;
        }
        let count = self.automaton.pattern_len();
        let (mut matching, mut state) = (PatternSet::new(count), OverlappingState::start());
        let (input, mut cache) = (Input::new(value), self.caches.get());
        // The automaton reports an expression at every end of a match. A value with very many matches would take long,
        // so the loop gives up after four reports per expression.
        for _ in 0..4 * count {
            self.automaton.try_search_overlapping_fwd(&mut cache, &input, &mut state).ok()?;
            let Some(end) = state.get_match() else { return Some(matching) };
            matching.insert(end.pattern());
            if matching.is_full() {
                return Some(matching);
            }
        }
        None
    }
}

/// Returns the expression restricted to ASCII texts.
fn ascii(hir: Hir) -> Hir {
    let all = |parts: Vec<Hir>| parts.into_iter().map(ascii).collect();
    match hir.into_kind() {
        HirKind::Empty => Hir::empty(),
        HirKind::Literal(literal) => Hir::literal(literal.0),
        HirKind::Class(mut class) => {
            if let Class::Unicode(class) = &mut class {
                class.intersect(&ClassUnicode::new([ClassUnicodeRange::new('\0', '\x7f')]));
            }
            Hir::class(class)
        }
        HirKind::Look(assertion) => Hir::look(match assertion {
            Look::WordUnicode => Look::WordAscii,
            Look::WordUnicodeNegate => Look::WordAsciiNegate,
            Look::WordStartUnicode => Look::WordStartAscii,
            Look::WordEndUnicode => Look::WordEndAscii,
            Look::WordStartHalfUnicode => Look::WordStartHalfAscii,
            Look::WordEndHalfUnicode => Look::WordEndHalfAscii,
            other => other,
        }),
        HirKind::Repetition(repetition) => {
            let sub = Box::new(ascii(*repetition.sub));
            Hir::repetition(Repetition { sub, ..repetition })
        }
        HirKind::Capture(capture) => ascii(*capture.sub),
        HirKind::Concat(parts) => Hir::concat(all(parts)),
        HirKind::Alternation(parts) => Hir::alternation(all(parts)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    struct All(Vec<Alt>, Alt);

    impl Visit for All {
        fn candidate(&mut self, alt: Alt) {
            self.0.push(alt);
        }

        fn bound(&self) -> Alt {
            self.1
        }
    }

    fn visited(expressions: &Expressions, value: &[u8], bound: Alt) -> Vec<Alt> {
        let mut all = All(Vec::new(), bound);
        expressions.search(value, &mut all);
        all.0
    }

    const TEXTS: &[&str] = &[
        "^..$",
        "[ab]2$",
        "x*",
        "(?i)^[^a]+A",
        r"^\D+\d{2}\D*$",
        r"\W\w\W",
        "(?-u)^[\\x80-\\xff]",
        "^$",
        r"[^/]/[^/]+$",
        "(?s)^.{3,}$",
        r"\pL\b",
        r"\B\w\b{start-half}",
        "^(1|2|[ab])+$",
    ];

    fn compiled(texts: &[&str]) -> Vec<(Alt, Regex)> {
        let of = |(alt, text): (usize, &&str)| (alt as Alt * 3, Regex::new(text).expect("valid"));
        texts.iter().enumerate().map(of).collect()
    }

    /// For ASCII values, the automaton finds the same matches as separate searches by each expression. For other
    /// values, all alternatives are visited.
    #[test]
    fn combined_and_single_searches_agree() {
        let entries = compiled(TEXTS);
        let expressions = Expressions::new(entries.clone());
        assert!(expressions.combined.is_some());
        let (mut random, mut searched) = (Random(7), 0);
        for _ in 0..5000 {
            let (length, cut) = (random.below(9), random.below(2));
            let value: Vec<u8> = (0..length)
                .flat_map(|_| random.of(&["a", "A", "b", "1", "2", "/", " ", "ü", "\n", "é"]).as_bytes().to_vec())
                .skip(cut)
                .collect();
            let matching: Vec<Alt> =
                entries.iter().filter(|(_, regex)| regex.is_match(&value)).map(|(alt, _)| *alt).collect();
            let visited = visited(&expressions, &value, Alt::MAX);
            if value.is_ascii() {
                assert_eq!(visited, matching, "{value:?}");
                searched += 1;
            } else {
                assert_eq!(visited.len(), entries.len(), "one by one");
            }
        }
        assert!(searched > 1000, "the automaton knew {searched} of 5000");
    }

    #[test]
    fn only_below_the_bound() {
        let expressions = Expressions::new(compiled(&["a"; 10]));
        assert_eq!(visited(&expressions, b"a", 9), [0, 3, 6]);
        assert!(visited(&expressions, b"a", 0).is_empty());
        assert!(visited(&expressions, b"b", Alt::MAX).is_empty());
    }

    /// The automaton gives no result for a value with matches at every position; each expression is then tried
    /// separately.
    #[test]
    fn the_search_gives_up_on_too_many_matches() {
        let texts: Vec<String> = (0..20).map(|i| format!("[ab]{{{i}}}[a-c]")).chain(["^z".into()]).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let expressions = Expressions::new(compiled(&texts));
        assert!(expressions.combined.as_ref().is_some_and(|combined| combined.search(&b"ab".repeat(1000)).is_none()));
        assert_eq!(visited(&expressions, &b"ab".repeat(1000), Alt::MAX).len(), texts.len());
    }

    /// With values that keep requiring new states, the search is abandoned, so the automaton's memory stays bounded.
    #[test]
    fn the_search_gives_up_on_too_many_states() {
        let texts: Vec<String> = (0..200).map(|i| format!("[ab][a-m]{{{i}}}[n-z]x")).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let expressions = Expressions::new(compiled(&texts));
        let combined = expressions.combined.as_ref().expect("not too large");
        let mut random = Random(1);
        let given_up = (0..200).any(|_| {
            let value: Vec<u8> = (0..2000).map(|_| random.of(&["a", "b", "m", "n"]).as_bytes()[0]).collect();
            combined.search(&value).is_none()
        });
        assert!(given_up);
        assert!(combined.caches.get().memory_usage() <= 2 * STATE_BYTES);
    }

    #[test]
    fn expressions_that_are_too_large_together() {
        let texts: Vec<String> = (0..40).map(|i| format!(r"^[[:alpha:]]{{{}}}$", 5000 + i)).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let entries: Vec<_> = texts
            .iter()
            .enumerate()
            .map(|(alt, text)| {
                (alt as Alt, regex::bytes::RegexBuilder::new(text).size_limit(8 << 20).build().expect("valid"))
            })
            .collect();
        let expressions = Expressions::new(entries);
        assert!(expressions.combined.is_none());
        assert_eq!(visited(&expressions, b"a", Alt::MAX).len(), 40);
    }
}
