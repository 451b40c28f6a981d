//! Mail protocols, in which the server sends the first bytes: the agent's own error replies, and the replay of a
//! dialogue to a server.

use std::sync::Arc;

use sluice_rules::{DialogueGuard, GuardVerdict, Replay, ReplayStatus, RuleSet};

use crate::policy::{DialogueReplay, Framing, Progress, Reason, ReplayDriver, ReplayProgress};
use crate::rules::rejection;

/// Returns the reply that rejects a client for a reason of the agent itself. For SMTP, its code is 421, after which
/// clients try again (RFC 5321, section 3.8), except for a dialogue that is too long: it would be too long again.
pub fn error_reply(rules: &RuleSet, reason: Reason) -> Vec<u8> {
    let why = match reason {
        Reason::Timeout => "no command came in time",
        Reason::Crowded => "too many connections",
        Reason::CutShort => "the connection was closed",
        Reason::TooLarge => "the dialogue is too long",
        Reason::NoServer => "no server answers",
        Reason::ServerRefused => "the server refuses",
    };
    let status = if reason == Reason::TooLarge { 500 } else { 421 };
    rules.refusal(status, why).reply
}

/// Builds the replay of a dialogue. The agent has answered the client's first `answered` bytes, except that `reply` is
/// still to be sent.
pub fn dialogue_replay(replay: Replay, answered: usize, reply: Vec<u8>) -> DialogueReplay {
    let lines = replay.lines();
    debug_assert!(lines.len() <= answered, "the replay is longer than what the client has sent");
    DialogueReplay { reply, answered, lines, driver: Box::new(replay) }
}

impl ReplayDriver for Replay {
    fn feed_server(&mut self, bytes: &[u8]) -> ReplayProgress {
        match self.feed(bytes) {
            ReplayStatus::Wait => ReplayProgress::Wait,
            ReplayStatus::Send(line) => ReplayProgress::Send(line.len()),
            ReplayStatus::Ready { used } => ReplayProgress::Ready { used },
            ReplayStatus::Failed { reply } => ReplayProgress::Failed { reply },
        }
    }
}

/// The framing of a mail dialogue. Each command is checked against the rules, until no rule can refuse a later one.
pub struct DialogueFraming {
    rules: Arc<RuleSet>,
    guard: DialogueGuard,
}

impl DialogueFraming {
    /// Creates the framing once the dialogue so far was replayed to the server.
    pub fn new(rules: &Arc<RuleSet>, guard: DialogueGuard) -> DialogueFraming {
        DialogueFraming { rules: Arc::clone(rules), guard }
    }
}

impl Framing for DialogueFraming {
    fn request(&mut self, bytes: &[u8]) -> Progress {
        match self.guard.client(&self.rules, bytes) {
            GuardVerdict::Pass(used) => Progress::Partial(used),
            GuardVerdict::Open => Progress::Opaque,
            GuardVerdict::Refuse(refusal) => Progress::Refused(rejection(refusal)),
        }
    }

    fn response(&mut self, bytes: &[u8]) -> Progress {
        self.guard.server(bytes);
        if self.guard.is_open() { Progress::Opaque } else { Progress::More }
    }

    fn memory(&self) -> usize {
        self.guard.memory()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_protocol_has_a_reply_for_every_reason() {
        let reasons = [Reason::Timeout, Reason::Crowded, Reason::CutShort, Reason::NoServer, Reason::ServerRefused];
        for (protocol, start) in [("smtp", "421 "), ("imap", "* BYE "), ("pop3", "-ERR ")] {
            let content = format!(r#"{{"protocol": "{protocol}", "default": {{"to": "a"}}}}"#);
            let rules = RuleSet::from_json(content.as_bytes()).unwrap();
            for reason in reasons {
                let reply = String::from_utf8(error_reply(&rules, reason)).unwrap();
                assert!(reply.starts_with(start) && reply.ends_with("\r\n"), "{reply}");
            }
        }
    }
}
