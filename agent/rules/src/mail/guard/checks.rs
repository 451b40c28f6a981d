//! Checks of a mail client's commands to a server that has accepted the connection. They are the same for every
//! protocol.

use crate::evaluation::Outcome;
use crate::mail::evaluator::Evaluator;
use crate::mail::sasl;
use crate::refusal::Refusal;
use crate::ruleset::Action;

/// The number of bytes that may be forwarded, or a refusal.
pub(super) type PassedBytes = Result<usize, Refusal>;

/// Returns the first line without its line end, and its length with the line end; none while the line is incomplete. A
/// line must end by CR LF, because servers differ in how they treat other line ends.
pub(super) fn line<'b>(evaluator: &Evaluator, bytes: &'b [u8]) -> Result<Option<(&'b [u8], usize)>, Refusal> {
    let fault = |why| Err(evaluator.rules.refusal(500, why));
    let Some(end) = memchr::memchr(b'\n', bytes) else {
        return if bytes.len() > evaluator.rules.limits.head.0 { fault("a line is above its limit") } else { Ok(None) };
    };
    match bytes[..end].strip_suffix(b"\r") {
        None => fault("a line ends without CR"),
        Some(line) if line.iter().any(|&b| b == 0 || b == b'\r') => fault("a line has control characters"),
        Some(line) => Ok(Some((line, end + 1))),
    }
}

/// Returns the refusal of bytes that are not forwarded, because the rules cannot read them, or could not read the bytes
/// behind them.
pub(super) fn refuse<T>(evaluator: &Evaluator, status: u16, why: &'static str) -> Result<T, Refusal> {
    Err(evaluator.rules.refusal(status, why))
}

/// Returns the refusal if the rules refuse a command.
pub(super) fn check_outcome(evaluator: &Evaluator, outcome: Option<Outcome>) -> Result<(), Refusal> {
    match outcome {
        Some(Outcome { rule, action: Action::Refuse(status) }) => Err(evaluator.rules.refused(rule, status)),
        _ => Ok(()),
    }
}

/// Evaluates the rules on the names in a response of the SASL mechanism PLAIN.
pub(super) fn check_sasl_response(evaluator: &Evaluator, response: &[u8]) -> Result<(), Refusal> {
    match sasl::users(response) {
        Some(users) => check_outcome(evaluator, Some(evaluator.conclude_users(&users))),
        None => refuse(evaluator, 500, "the response is malformed"),
    }
}
