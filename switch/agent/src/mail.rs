//! Mail protocols, where the server speaks first: the agent's own error replies, and the replay of a dialogue to a
//! server.

use std::sync::Arc;

use sluice_rules::{Followed, Follower, Replay, Replayed, RuleSet};

use crate::decider::{Answers, Framing, Heard, Progress, Reason, Repetition};
use crate::rules::refused;

/// Returns the reply for a reason of the agent. SMTP: 421, after which clients try again (RFC 5321, section 3.8).
pub fn apology(rules: &RuleSet, reason: Reason) -> Vec<u8> {
    let why = match reason {
        Reason::Timeout => "no command came in time",
        Reason::Crowded => "too many connections",
        Reason::CutShort => "the connection was closed",
        Reason::TooLarge => "too much was said",
        Reason::NoServer => "no server answers",
        Reason::ServerRefused => "the server refuses",
    };
    let status = if reason == Reason::TooLarge { 500 } else { 421 };
    rules.refusal(status, why).say
}

/// Builds the replay of a dialogue whose first `answered` bytes the agent has answered.
pub fn repetition(replay: Replay, answered: usize, say: Vec<u8>) -> Repetition {
    let lines = replay.lines();
    debug_assert!(lines.len() <= answered, "a line is repeated that the client has not sent");
    Repetition { say, answered, lines, answers: Box::new(replay) }
}

impl Answers for Replay {
    fn hear(&mut self, bytes: &[u8]) -> Heard {
        match self.feed(bytes) {
            Replayed::Wait => Heard::Nothing,
            Replayed::Say(line) => Heard::GoOn(line.len()),
            Replayed::Ready { used } => Heard::Ready { used },
            Replayed::Failed { say } => Heard::Failed { say },
        }
    }
}

/// A dialogue whose commands are checked, until nothing more can be refused.
pub struct Dialogue {
    rules: Arc<RuleSet>,
    follower: Follower,
}

impl Dialogue {
    /// Begins when the dialogue so far was replayed to the server.
    pub fn new(rules: &Arc<RuleSet>, follower: Follower) -> Dialogue {
        Dialogue { rules: Arc::clone(rules), follower }
    }
}

impl Framing for Dialogue {
    fn request(&mut self, bytes: &[u8]) -> Progress {
        match self.follower.client(&self.rules, bytes) {
            Followed::Pass(used) => Progress::Part(used),
            Followed::Open => Progress::Opaque,
            Followed::Refuse(refusal) => Progress::Refused(refused(refusal)),
        }
    }

    fn response(&mut self, bytes: &[u8]) -> Progress {
        self.follower.server(bytes);
        if self.follower.is_open() { Progress::Opaque } else { Progress::More }
    }

    fn memory(&self) -> usize {
        self.follower.memory()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_protocol_has_words_for_every_reason() {
        let reasons = [Reason::Timeout, Reason::Crowded, Reason::CutShort, Reason::NoServer, Reason::ServerRefused];
        for (protocol, start) in [("smtp", "421 "), ("imap", "* BYE "), ("pop3", "-ERR ")] {
            let content = format!(r#"{{"protocol": "{protocol}", "default": {{"to": "a"}}}}"#);
            let rules = RuleSet::from_json(content.as_bytes()).unwrap();
            for reason in reasons {
                let say = String::from_utf8(apology(&rules, reason)).unwrap();
                assert!(say.starts_with(start) && say.ends_with("\r\n"), "{say}");
            }
        }
    }
}
