//! Finds literals of which every match of a regular expression contains at least one.
//!
//! An expression is tried only for values that contain one of its literals. (A single automaton of all expressions
//! would be slow, and need tens of megabytes.) If an expression has several literal sets, the set that the fewest rules
//! share is indexed. Expressions without a literal are matched together for every value.

use regex_syntax::hir::literal::Extractor;
use regex_syntax::hir::{Hir, HirKind};

/// The maximum number of literals in a set that is indexed.
const MAX_LITERALS: usize = 64;

/// A literal set: every match of the expression contains at least one of these texts.
pub(crate) type Texts = Vec<Vec<u8>>;

/// Returns all literal sets of an expression; an empty list if the expression requires no literal.
pub(crate) fn required(expression: &str) -> Vec<Texts> {
    let parsed = regex_syntax::ParserBuilder::new().utf8(false).build().parse(expression);
    let mut choices = parsed.map(|hir| of(&hir)).unwrap_or_default();
    choices.sort();
    choices.dedup();
    choices
}

/// Returns the literal sets of those parts of an expression that every match contains.
fn of(hir: &Hir) -> Vec<Texts> {
    match hir.kind() {
        HirKind::Capture(capture) => of(&capture.sub),
        HirKind::Repetition(repetition) if repetition.min > 0 => of(&repetition.sub),
        HirKind::Concat(parts) => {
            let heads = (0..parts.len()).filter_map(|i| heads(&Hir::concat(parts[i..].to_vec())));
            heads.chain(parts.iter().flat_map(of)).collect()
        }
        HirKind::Alternation(parts) => {
            // Each branch contributes the one of its sets whose shortest literal is longest.
            let longest = |branch| of(branch).into_iter().max_by_key(|texts| shortest(texts));
            let all: Option<Vec<Texts>> = parts.iter().map(longest).collect();
            all.map(|all| all.concat()).filter(|texts| texts.len() <= MAX_LITERALS).into_iter().collect()
        }
        HirKind::Literal(_) | HirKind::Class(_) => heads(hir).into_iter().collect(),
        _ => Vec::new(),
    }
}

/// Returns the length of the shortest literal.
pub(crate) fn shortest(texts: &[Vec<u8>]) -> usize {
    texts.iter().map(Vec::len).min().unwrap_or(0)
}

/// Returns a set of literals such that every match begins with one of them; none if there is no such set.
fn heads(hir: &Hir) -> Option<Texts> {
    let heads = Extractor::new().limit_total(MAX_LITERALS).extract(hir);
    let texts: Texts = heads.literals()?.iter().map(|literal| literal.as_bytes().to_vec()).collect();
    (!texts.is_empty() && texts.len() <= MAX_LITERALS && shortest(&texts) > 0).then_some(texts)
}

#[cfg(test)]
mod tests {
    use super::required;

    /// Returns whether `texts` is one of the literal sets of the expression.
    fn offers(expression: &str, texts: &[&str]) -> bool {
        let of = |choice: &Vec<Vec<u8>>| {
            let mut choice: Vec<_> = choice.iter().map(|text| String::from_utf8_lossy(text).into_owned()).collect();
            choice.sort();
            choice == texts
        };
        required(expression).iter().any(of)
    }

    #[test]
    fn texts_that_every_match_has() {
        assert!(offers(r"xmlprocess\.pl$", &["xmlprocess.pl"]));
        assert!(offers(r"^/\d+/invoice/.*\.pdf$", &["/invoice/"]));
        assert!(offers(r"^/\d+/invoice/.*\.pdf$", &[".pdf"]));
        assert!(offers(r".*(jpeg|png)x*", &["jpeg", "png"]));
        assert!(offers(r"(?i)ab", &["AB", "Ab", "aB", "ab"]));
        assert!(offers(r"(?:foo)+", &["foo"]));
    }

    #[test]
    fn expressions_without_a_literal() {
        for expression in [r"\w+", r"(?:foo)?", r"foo|\d*", r"[^a]", r"^$", ""] {
            assert_eq!(required(expression), Vec::<Vec<Vec<u8>>>::new(), "{expression}");
        }
    }
}
