//! Errors of loading a program and of changing its state.

use thiserror::Error;

/// Why a program was refused. Nothing of a refused program runs.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{path}{}: {reason}; {remedy}{}", note(.object, "(", ")"), note(.source_info, "[", "]"))]
pub struct LoadError {
    /// Where in the JSON, as a JSON pointer (RFC 6901), for example `/pipelines/0/tables/3/key/1`; `/` for all of it.
    pub path: String,
    /// What has a name there, for example `table 'I.routes'`.
    pub object: Option<String>,
    /// What is wrong or not supported.
    pub reason: String,
    /// What to do about it.
    pub remedy: &'static str,
    /// The place in the P4 source, when the JSON carries it: `file(line): fragment`.
    pub source_info: Option<String>,
}

fn note(text: &Option<String>, open: &str, close: &str) -> String {
    text.as_ref().map_or_else(String::new, |text| format!(" {open}{text}{close}"))
}

/// Why a request to read or change state was refused. A refused request changes nothing.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ControlError {
    /// The entry, member, group, session ... does not exist.
    #[error("not found: {0}")]
    NotFound(String),
    /// It exists already.
    #[error("already exists: {0}")]
    AlreadyExists(String),
    /// A value does not fit, an action does not belong to the table, ...
    #[error("invalid argument: {0}")]
    InvalidArgument(String),
    /// An index outside of the array.
    #[error("out of range: {0}")]
    OutOfRange(String),
    /// The declared size is used up.
    #[error("resource exhausted: {0}")]
    ResourceExhausted(String),
    /// Still referred to (a member in a group, a group in an entry).
    #[error("failed precondition: {0}")]
    FailedPrecondition(String),
    /// The table or its default action is constant.
    #[error("permission denied: {0}")]
    PermissionDenied(String),
    /// The engine cannot do this.
    #[error("unimplemented: {0}")]
    Unimplemented(String),
}
