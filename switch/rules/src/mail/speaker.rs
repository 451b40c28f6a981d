//! The agent's side of a dialogue, by the protocol.

use super::act::Act;
use super::asker::Asker;
use super::imap::{Imap, capabilities};
use super::line::Line;
use super::pop3::Pop3;
use super::smtp::{Smtp, literal};
use crate::facts::ConnectionFacts;
use crate::ruleset::RuleSet;

/// Greets a client, and answers its commands before the decision.
#[derive(Debug)]
pub(super) enum Speaker {
    Smtp(Smtp),
    Imap(Imap),
    Pop3(Pop3),
}

impl Speaker {
    pub(super) fn greeting(&self, rules: &RuleSet, facts: &ConnectionFacts) -> Vec<u8> {
        match self {
            Speaker::Smtp(_) => format!("220 {} ESMTP\r\n", literal(facts.destination)),
            Speaker::Imap(_) => format!("* OK [CAPABILITY {}] ready\r\n", capabilities(rules)),
            Speaker::Pop3(_) => "+OK ready\r\n".to_owned(),
        }
        .into_bytes()
    }

    pub(super) fn take(&mut self, asker: &Asker, line: Line) -> Act {
        match self {
            Speaker::Smtp(smtp) => smtp.take(asker, line),
            Speaker::Imap(imap) => imap.take(asker, line),
            Speaker::Pop3(pop3) => pop3.take(asker, line),
        }
    }
}
