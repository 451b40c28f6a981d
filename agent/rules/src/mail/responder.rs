//! The agent's side of a mail dialogue, for each protocol.

use super::evaluator::Evaluator;
use super::imap::{Imap, capability_list};
use super::line::Line;
use super::line_action::LineAction;
use super::pop3::Pop3;
use super::smtp::{Smtp, literal};
use crate::facts::ConnectionFacts;
use crate::ruleset::RuleSet;

/// Sends the greeting to a client, and answers the client's commands before the rules have decided.
#[derive(Debug)]
pub(super) enum Responder {
    Smtp(Smtp),
    Imap(Imap),
    Pop3(Pop3),
}

impl Responder {
    pub(super) fn greeting(&self, rules: &RuleSet, facts: &ConnectionFacts) -> Vec<u8> {
        match self {
            Responder::Smtp(_) => format!("220 {} ESMTP\r\n", literal(facts.destination)),
            Responder::Imap(_) => format!("* OK [CAPABILITY {}] ready\r\n", capability_list(rules)),
            Responder::Pop3(_) => "+OK ready\r\n".to_owned(),
        }
        .into_bytes()
    }

    pub(super) fn take(&mut self, evaluator: &Evaluator, line: Line) -> LineAction {
        match self {
            Responder::Smtp(smtp) => smtp.take(evaluator, line),
            Responder::Imap(imap) => imap.take(evaluator, line),
            Responder::Pop3(pop3) => pop3.take(evaluator, line),
        }
    }
}
