//! What is wrong with a rule set, and where.

use std::fmt;

/// One mistake in the `content:` block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The place, such as `rules[3].match.path.regex`. Alternatives of a list have an index: `rules[3].match[0].path`.
    pub path: String,
    /// What is wrong, naming the rule and the field.
    pub message: String,
    /// What to write instead.
    pub remedy: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.message)?;
        if self.remedy.is_empty() { Ok(()) } else { write!(f, "; {}", self.remedy) }
    }
}

impl std::error::Error for Problem {}
