//! Why one update or one read was refused.

use prost::Message;
use sluice_engine::ControlError;
use tonic::{Code, Status};

use crate::proto::google::rpc;
use crate::proto::p4::v1 as p4;

/// The type of the details of a refused batch.
const ERROR_TYPE: &str = "type.googleapis.com/p4.v1.Error";
/// Bytes of text in those details. They travel in HTTP/2 headers, of which clients take 8 to 64 KB; with more, they
/// would not learn a single code. Errors beyond have their code and no text.
const ERROR_TEXT: usize = 16 << 10;

/// The refusal of one update or one read: a canonical code and a text that names the place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The canonical code of the P4Runtime specification for this case.
    pub code: Code,
    /// What is wrong, where, and what would be right.
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
    /// The request contradicts itself, P4Info or the specification.
    invalid => InvalidArgument,
    /// A value has more bits than its field, or an index is beyond the end.
    out_of_range => OutOfRange,
    /// The id, key or index names nothing.
    not_found => NotFound,
    /// The program forbids it.
    denied => PermissionDenied,
    /// Not possible in the present state.
    precondition => FailedPrecondition,
    /// It is there already.
    exists => AlreadyExists,
    /// No room.
    exhausted => ResourceExhausted,
    /// The batch it belongs to failed elsewhere.
    aborted => Aborted,
    /// This switch does not do that.
    unimplemented => Unimplemented,
}

/// The result of one update or read.
pub type Outcome<T = ()> = Result<T, Fault>;

impl Fault {
    /// The same refusal with the place put in front. What a text begins with that ends the place is not said twice.
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

/// The status of a batch in which something was refused: one `p4.v1.Error` per element, in order.
pub fn batch_status(outcomes: &[Outcome]) -> Option<Status> {
    let failed = outcomes.iter().filter(|outcome| outcome.is_err()).count();
    let faults = || outcomes.iter().filter_map(|outcome| outcome.as_ref().err());
    // What was aborted only says that something else failed.
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
        for (place, text, whole) in [
            ("table I.t", "table I.t has no entry", "table I.t has no entry"),
            ("profile I.p, member 1", "member 1 is used", "profile I.p, member 1 is used"),
            ("profile I.p, member 1", "member 12 is used", "profile I.p, member 1: member 12 is used"),
            ("table I.t", "the priority is missing", "table I.t: the priority is missing"),
        ] {
            assert_eq!(Fault::invalid(text).within(place).message, whole);
        }
    }

    #[test]
    fn the_text_of_many_errors_is_bounded_and_the_codes_are_whole() {
        let outcomes = vec![Err(Fault::exists("x".repeat(100))); 500];
        let details = rpc::Status::decode(batch_status(&outcomes).unwrap().details()).unwrap().details;
        let errors: Vec<_> = details.iter().map(|any| p4::Error::decode(&any.value[..]).unwrap()).collect();
        assert!(errors.iter().all(|error| error.canonical_code == Code::AlreadyExists as i32));
        assert_eq!(errors.iter().filter(|error| !error.message.is_empty()).count(), ERROR_TEXT / 100);
    }
}
