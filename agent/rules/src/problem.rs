//! Mistakes in the configuration of rules, with their places.

use std::fmt;

/// A mistake in the `content:` block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The place, such as `rules[3].match.path.regex`. In a list of alternatives, the place contains an index:
    /// `rules[3].match[0].path`.
    pub path: String,
    /// A message about what is wrong, with the names of the rule and the field.
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
