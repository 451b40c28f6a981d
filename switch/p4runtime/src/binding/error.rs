//! Where P4Info and the program disagree.

use thiserror::Error;

/// Why P4Info does not fit the program.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum BindError {
    /// P4Info has an object that the program lacks.
    #[error(
        "P4Info has {kind} {name}, the program's JSON has not: they are not from the same compilation; give what one run of p4c wrote"
    )]
    Missing {
        /// What kind of object.
        kind: &'static str,
        /// Its name in P4Info.
        name: String,
    },
    /// Both have it, but not alike.
    #[error(
        "{place}: P4Info says {p4info}, the program's JSON says {json}: they are not from the same compilation; give what one run of p4c wrote"
    )]
    Different {
        /// The object.
        place: String,
        /// The value in P4Info.
        p4info: String,
        /// The value in the JSON.
        json: String,
    },
    /// P4Info contradicts itself.
    #[error("P4Info: {0}; p4c does not write this: compile the program again")]
    Malformed(String),
    /// Correct, but not offered by this switch.
    #[error("P4Info: {0} is not supported by this switch; change it in the program and compile that again")]
    Unsupported(String),
}
