//! Errors for P4Info that does not match the compiled program.

use thiserror::Error;

/// The reason why P4Info does not fit the program.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum BindError {
    /// P4Info contains an object that is missing in the program.
    #[error(
        "P4Info has {kind} {name}, the program's JSON does not: they are not from the same compilation; give what one run of p4c wrote"
    )]
    Missing {
        /// The kind of object, for example "table".
        kind: &'static str,
        /// The object's name in P4Info.
        name: String,
    },
    /// P4Info and the program both contain the object, with different properties.
    #[error(
        "{place}: P4Info has {p4info}, the program's JSON has {json}: they are not from the same compilation; give what one run of p4c wrote"
    )]
    Different {
        /// The kind and name of the object.
        place: String,
        /// The value of the property in P4Info.
        p4info: String,
        /// The value of the property in the program's JSON.
        json: String,
    },
    /// The P4Info message contradicts itself.
    #[error("P4Info: {0}; p4c does not write this: compile the program again")]
    Malformed(String),
    /// P4Info is valid, but uses a feature that this switch does not support.
    #[error("P4Info: {0} is not supported by this switch; change it in the program and compile that again")]
    Unsupported(String),
}
