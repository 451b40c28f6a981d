//! Errors of loading a program and of changing its state.

use thiserror::Error;

/// Why a program was refused. A refused program is not run at all.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{path}{}: {reason}; {remedy}{}", note(.object, "(", ")"), note(.source_info, "[", "]"))]
pub struct LoadError {
    /// The place in the JSON as a JSON pointer (RFC 6901), for example `/pipelines/0/tables/3/key/1`; `/` for the whole
    /// document.
    pub path: String,
    /// The named object around that place, for example `table 'I.routes'`.
    pub object: Option<String>,
    /// What is wrong or not supported.
    pub reason: String,
    /// What the user can do about it.
    pub remedy: &'static str,
    /// The place in the P4 source, if the JSON states it: `file(line): fragment`.
    pub source_info: Option<String>,
}

fn note(text: &Option<String>, open: &str, close: &str) -> String {
    text.as_ref().map_or_else(String::new, |text| format!(" {open}{text}{close}"))
}

/// Why a request to read or change state was refused. A refused request changes nothing.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ControlError {
    /// The entry, member, group, session or other object does not exist.
    #[error("not found: {0}")]
    NotFound(String),
    /// The object exists already.
    #[error("already exists: {0}")]
    AlreadyExists(String),
    /// The request contradicts the program: for example, a value is too wide, or the table does not have the action.
    #[error("invalid argument: {0}")]
    InvalidArgument(String),
    /// The index lies outside of the array.
    #[error("out of range: {0}")]
    OutOfRange(String),
    /// The declared size of the table or profile is used up.
    #[error("resource exhausted: {0}")]
    ResourceExhausted(String),
    /// Another object still refers to this one: for example, a group to a member, or an entry to a group.
    #[error("failed precondition: {0}")]
    FailedPrecondition(String),
    /// The table or its default action is constant.
    #[error("permission denied: {0}")]
    PermissionDenied(String),
    /// The engine cannot do this.
    #[error("unimplemented: {0}")]
    Unimplemented(String),
}
