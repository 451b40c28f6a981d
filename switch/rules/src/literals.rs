//! Texts of which one occurs wherever an expression matches.

use regex_syntax::hir::literal::Extractor;
use regex_syntax::hir::{Hir, HirKind};

/// More texts than these, and the expression is tried by itself.
const MOST: usize = 64;

/// The texts; none when the expression may match without any.
pub(crate) fn required(expression: &str) -> Option<Vec<Vec<u8>>> {
    let hir = regex_syntax::ParserBuilder::new().utf8(false).build().parse(expression).ok()?;
    best(&hir)
}

/// The longest texts of the parts that every match has.
fn best(hir: &Hir) -> Option<Vec<Vec<u8>>> {
    let parts: Vec<Option<Vec<Vec<u8>>>> = match hir.kind() {
        HirKind::Capture(capture) => vec![best(&capture.sub)],
        HirKind::Repetition(repetition) if repetition.min > 0 => vec![best(&repetition.sub)],
        HirKind::Concat(parts) => {
            (0..parts.len()).flat_map(|i| [heads(&Hir::concat(parts[i..].to_vec())), best(&parts[i])]).collect()
        }
        HirKind::Alternation(parts) => {
            let all: Option<Vec<_>> = parts.iter().map(best).collect();
            vec![all.map(|all| all.concat()).filter(|texts| texts.len() <= MOST)]
        }
        HirKind::Literal(_) | HirKind::Class(_) => vec![heads(hir)],
        _ => vec![],
    };
    parts.into_iter().flatten().max_by_key(|texts| (shortest(texts), std::cmp::Reverse(texts.len())))
}

fn shortest(texts: &[Vec<u8>]) -> usize {
    texts.iter().map(Vec::len).min().unwrap_or(0)
}

/// What a match of the part begins with.
fn heads(hir: &Hir) -> Option<Vec<Vec<u8>>> {
    let heads = Extractor::new().limit_total(MOST).extract(hir);
    let texts: Vec<Vec<u8>> = heads.literals()?.iter().map(|literal| literal.as_bytes().to_vec()).collect();
    (!texts.is_empty() && texts.len() <= MOST && shortest(&texts) > 0).then_some(texts)
}

#[cfg(test)]
mod tests {
    use super::required;

    fn texts(expression: &str) -> Vec<String> {
        let mut texts: Vec<_> = required(expression)
            .unwrap_or_default()
            .iter()
            .map(|text| String::from_utf8_lossy(text).into_owned())
            .collect();
        texts.sort();
        texts
    }

    #[test]
    fn longest_required_text() {
        assert_eq!(texts(r"xmlprocess\.pl$"), ["xmlprocess.pl"]);
        assert_eq!(texts(r"^/\d+/invoice/.*\.pdf$"), ["/invoice/"]);
        assert_eq!(texts(r".*(jpeg|png)x*"), ["jpeg", "png"]);
        assert_eq!(texts(r"(?i)ab"), ["AB", "Ab", "aB", "ab"]);
        assert_eq!(texts(r"(?:foo)+"), ["foo"]);
    }

    #[test]
    fn expressions_without_one() {
        for expression in [r"\w+", r"(?:foo)?", r"foo|\d*", r"[^a]", r"^$", ""] {
            assert!(texts(expression).is_empty(), "{expression}: {:?}", texts(expression));
        }
    }
}
