//! Errors that occur when a program is loaded or when its state is changed.

use thiserror::Error;

/// The reason why a program was refused. A refused program is not run at all.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{path}{}: {reason}; {remedy}{}", note(.object, "(", ")"), note(.source_info, "[", "]"))]
pub struct LoadError {
    /// The place in the program's JSON as a JSON pointer (RFC 6901), for example `/pipelines/0/tables/3/key/1`; `/`
    /// denotes the whole document.
    pub path: String,
    /// The named object that contains this place, for example `table 'I.routes'`.
    pub object: Option<String>,
    /// A description of what is wrong or not supported at this place.
    pub reason: String,
    /// The step by which the user can solve the problem.
    pub remedy: &'static str,
    /// The place in the P4 source, if the JSON contains it: `file(line): fragment`.
    pub source_info: Option<String>,
}

fn note(text: &Option<String>, open: &str, close: &str) -> String {
    text.as_ref().map_or_else(String::new, |text| format!(" {open}{text}{close}"))
}

/// The reason why a request to read or change state was refused. A refused request changes nothing.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ControlError {
    /// The entry, member, group, session or other object does not exist.
    #[error("not found: {0}")]
    NotFound(String),
    /// The object to be created exists already.
    #[error("already exists: {0}")]
    AlreadyExists(String),
    /// The request contradicts the program: for example, a value is too wide, or the table does not have the action.
    #[error("invalid argument: {0}")]
    InvalidArgument(String),
    /// The index exceeds the array.
    #[error("out of range: {0}")]
    OutOfRange(String),
    /// The table, profile or value set would exceed its limit on entries, members or values.
    #[error("resource exhausted: {0}")]
    ResourceExhausted(String),
    /// Another object still refers to the object: for example, a group to a member, or an entry to a group.
    #[error("failed precondition: {0}")]
    FailedPrecondition(String),
    /// The table or its default action is constant.
    #[error("permission denied: {0}")]
    PermissionDenied(String),
    /// The engine does not support the request.
    #[error("unimplemented: {0}")]
    Unimplemented(String),
}
