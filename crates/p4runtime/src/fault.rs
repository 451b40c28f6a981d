//! The error of one refused update or read, with its code and message.

use prost::Message;
use sluice_engine::ControlError;
use tonic::{Code, Status};

use crate::proto::google::rpc;
use crate::proto::p4::v1 as p4;

/// The protobuf type URL of the messages in the details of a refused batch.
const ERROR_TYPE: &str = "type.googleapis.com/p4.v1.Error";
/// Limit on the bytes of all error messages in the details of a refused batch. Details are sent in HTTP/2 headers, of
/// which clients accept 8 to 64 KB. With longer headers a client would receive no codes at all. An error whose message
/// would exceed the limit has only its code.
const ERROR_TEXT: usize = 16 << 10;

/// The error of one refused update or read: a canonical code and a message that names the place in the request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The canonical code that P4Runtime prescribes for the case.
    pub code: Code,
    /// States what is wrong, at which place, and how to correct it.
    pub message: String,
}

macro_rules! constructors {
    ($($(#[$doc:meta])* $name:ident => $code:ident),* $(,)?) => {
        impl Fault { $(
            $(#[$doc])*
            pub fn $name(message: impl Into<String>) -> Self {
                Self { code: Code::$code, message: message.into() }
            }
        )* }
    };
}

constructors! {
    /// The request contradicts itself, P4Info or P4Runtime.
    invalid => InvalidArgument,
    /// A value has more bits than its field, or an index is beyond the last cell.
    out_of_range => OutOfRange,
    /// No entity has the given id or key, or no value has the given name.
    not_found => NotFound,
    /// The program or the sender's role forbids the request.
    denied => PermissionDenied,
    /// The request is impossible in the current state of the switch.
    precondition => FailedPrecondition,
    /// The entity exists already.
    exists => AlreadyExists,
    /// A limit on memory or on the number of objects is reached.
    exhausted => ResourceExhausted,
    /// Another update of the same batch failed.
    aborted => Aborted,
    /// This switch does not support the request.
    unimplemented => Unimplemented,
}

/// The result of one update or one read.
pub type Outcome<T = ()> = Result<T, Fault>;

impl Fault {
    /// Returns this error with `place` in front of the message. If the message begins with the last part of `place`
    /// (the text after its last comma), this part is not repeated.
    #[must_use]
    pub fn within(self, place: &str) -> Self {
        let subject = place.rsplit(", ").next().unwrap_or(place);
        let message = match self.message.strip_prefix(subject) {
            Some(rest) if rest.starts_with([' ', ':', ',']) => format!("{place}{rest}"),
            _ => format!("{place}: {}", self.message),
        };
        Self { code: self.code, message }
    }
}

impl From<ControlError> for Fault {
    fn from(error: ControlError) -> Self {
        let (code, message) = match error {
            ControlError::NotFound(text) => (Code::NotFound, text),
            ControlError::AlreadyExists(text) => (Code::AlreadyExists, text),
            ControlError::InvalidArgument(text) => (Code::InvalidArgument, text),
            ControlError::OutOfRange(text) => (Code::OutOfRange, text),
            ControlError::ResourceExhausted(text) => (Code::ResourceExhausted, text),
            ControlError::FailedPrecondition(text) => (Code::FailedPrecondition, text),
            ControlError::PermissionDenied(text) => (Code::PermissionDenied, text),
            ControlError::Unimplemented(text) => (Code::Unimplemented, text),
        };
        Self { code, message }
    }
}

impl From<Fault> for Status {
    fn from(fault: Fault) -> Self {
        Status::new(fault.code, fault.message)
    }
}

/// Returns the status of a batch, with one `p4.v1.Error` per element in the order of the batch. Returns `None` if no
/// element failed.
pub fn batch_status(outcomes: &[Outcome]) -> Option<Status> {
    let failed = outcomes.iter().filter(|outcome| outcome.is_err()).count();
    let faults = || outcomes.iter().filter_map(|outcome| outcome.as_ref().err());
    // An aborted update only reports that another update failed; the status names the cause.
    let first = faults().find(|fault| fault.code != Code::Aborted).or_else(|| faults().next())?;
    let message = match outcomes.len() {
        1 => first.message.clone(),
        all => format!("{failed} of {all} failed, first: {}", first.message),
    };
    let mut room = ERROR_TEXT;
    let details = outcomes.iter().map(|outcome| {
        let error = match outcome {
            Ok(()) => p4::Error::default(),
            Err(fault) => {
                let fits = fault.message.len() <= room;
                room -= if fits { fault.message.len() } else { 0 };
                let message = if fits { fault.message.clone() } else { String::new() };
                p4::Error { canonical_code: fault.code as i32, message, ..Default::default() }
            }
        };
        prost_types::Any { type_url: ERROR_TYPE.to_owned(), value: error.encode_to_vec() }
    });
    let status = rpc::Status { code: Code::Unknown as i32, message: message.clone(), details: details.collect() };
    Some(Status::with_details(Code::Unknown, message, status.encode_to_vec().into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_element_of_a_failed_batch_has_its_error() {
        assert!(batch_status(&[Ok(()), Ok(())]).is_none());
        let status = batch_status(&[Ok(()), Err(Fault::not_found("table 7"))]).unwrap();
        assert_eq!(status.code(), Code::Unknown);
        let details = rpc::Status::decode(status.details()).unwrap();
        assert_eq!(details.code, Code::Unknown as i32);
        assert_eq!(details.details[0].type_url, "type.googleapis.com/p4.v1.Error");
        let errors: Vec<_> = details.details.iter().map(|any| p4::Error::decode(&any.value[..]).unwrap()).collect();
        assert_eq!(errors[0], p4::Error::default());
        assert_eq!((errors[1].canonical_code, errors[1].message.as_str()), (5, "table 7"));
    }

    #[test]
    fn a_place_is_not_named_twice() {
        for (place, text, expected) in [
            ("table I.t", "table I.t has no entry", "table I.t has no entry"),
            ("profile I.p, member 1", "member 1 is used", "profile I.p, member 1 is used"),
            ("profile I.p, member 1", "member 12 is used", "profile I.p, member 1: member 12 is used"),
            ("table I.t", "the priority is missing", "table I.t: the priority is missing"),
        ] {
            assert_eq!(Fault::invalid(text).within(place).message, expected);
        }
    }

    #[test]
    fn the_messages_of_many_errors_are_limited_and_no_code_is_missing() {
        let outcomes = vec![Err(Fault::exists("x".repeat(100))); 500];
        let details = rpc::Status::decode(batch_status(&outcomes).unwrap().details()).unwrap().details;
        let errors: Vec<_> = details.iter().map(|any| p4::Error::decode(&any.value[..]).unwrap()).collect();
        assert!(errors.iter().all(|error| error.canonical_code == Code::AlreadyExists as i32));
        assert_eq!(errors.iter().filter(|error| !error.message.is_empty()).count(), ERROR_TEXT / 100);
    }
}
