//! Checks of what a client says to an open server, the same for every protocol.

use crate::mail::asker::Asker;
use crate::mail::sasl;
use crate::refusal::Refusal;
use crate::ruleset::Action;
use crate::run::Outcome;

/// So many bytes may be handed on, or a refusal.
pub(super) type Passed = Result<usize, Refusal>;

/// The first line, without its end, and its bytes; none while it is incomplete. What servers end lines by differs.
pub(super) fn line<'b>(asker: &Asker, bytes: &'b [u8]) -> Result<Option<(&'b [u8], usize)>, Refusal> {
    let fault = |why| Err(asker.rules.refusal(500, why));
    let Some(end) = memchr::memchr(b'\n', bytes) else {
        return if bytes.len() > asker.rules.limits.head.0 { fault("a line is above its limit") } else { Ok(None) };
    };
    match bytes[..end].strip_suffix(b"\r") {
        None => fault("a line ends without CR"),
        Some(line) if line.iter().any(|&b| b == 0 || b == b'\r') => fault("a line has control characters"),
        Some(line) => Ok(Some((line, end + 1))),
    }
}

/// A command that is not handed on: what follows it could not be read.
pub(super) fn not_offered<T>(asker: &Asker, status: u16, why: &'static str) -> Result<T, Refusal> {
    Err(asker.rules.refusal(status, why))
}

/// Whether the rules let something pass.
pub(super) fn pass(asker: &Asker, outcome: Option<Outcome>) -> Result<(), Refusal> {
    match outcome {
        Some(Outcome { rule, action: Action::Refuse(status) }) => Err(asker.rules.refused(rule, status)),
        _ => Ok(()),
    }
}

/// Asks about the names in a response of SASL's PLAIN mechanism.
pub(super) fn authenticates(asker: &Asker, response: &[u8]) -> Result<(), Refusal> {
    match sasl::users(response) {
        Some(users) => pass(asker, Some(asker.conclude_users(&users))),
        None => not_offered(asker, 500, "the response is malformed"),
    }
}
