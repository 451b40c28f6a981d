//! Checks a dialogue whose server is open, where rules may refuse: the rules are evaluated for every login and every
//! envelope.
//!
//! One command is forwarded at a time; the next one waits for the server's answer. So the kind of the client's next
//! bytes is always known: a command, counted bytes, the text of a mail, or a response to a challenge.

mod checks;
mod imap;
mod lines;
mod pop3;
mod smtp;

use super::evaluator::Evaluator;
use super::replay::ReplayCommand;
use super::responder::Responder;
use crate::facts::ConnectionFacts;
use crate::refusal::Refusal;
use crate::ruleset::RuleSet;
use lines::Lines;

/// What may be forwarded of a client's bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GuardVerdict {
    /// This many of the first bytes. The others wait for more bytes of the client or of the server.
    Pass(usize),
    /// All following bytes: nothing more can be refused.
    Open,
    /// Nothing: send [`Refusal::reply`], and close.
    Refuse(Refusal),
}

/// Checks the rest of a dialogue, from where a server has taken it over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DialogueGuard {
    facts: ConnectionFacts,
    server: Lines,
    state: ProtocolState,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum ProtocolState {
    Smtp(smtp::Smtp),
    Imap(imap::Imap),
    Pop3(pop3::Pop3),
}

impl DialogueGuard {
    /// Begins when the server has answered these commands.
    pub(super) fn new(responder: &Responder, facts: ConnectionFacts, steps: &[ReplayCommand]) -> DialogueGuard {
        let (state, has_literals) = match responder {
            Responder::Smtp(smtp) => (ProtocolState::Smtp(smtp::Smtp::new(smtp.envelope())), false),
            Responder::Imap(_) => (ProtocolState::Imap(imap::Imap::new(steps)), true),
            Responder::Pop3(_) => (ProtocolState::Pop3(pop3::Pop3::new(steps)), false),
        };
        DialogueGuard { facts, server: Lines::new(has_literals), state }
    }

    /// Checks all bytes of the client that were not forwarded.
    pub fn client(&mut self, rules: &RuleSet, bytes: &[u8]) -> GuardVerdict {
        let evaluator = Evaluator { rules, facts: &self.facts };
        if self.is_open() {
            return GuardVerdict::Open;
        }
        let passed = match &mut self.state {
            ProtocolState::Smtp(smtp) => smtp.client(&evaluator, bytes),
            ProtocolState::Imap(imap) => imap.client(&evaluator, bytes),
            ProtocolState::Pop3(pop3) => pop3.client(&evaluator, bytes),
        };
        passed.map_or_else(GuardVerdict::Refuse, GuardVerdict::Pass)
    }

    /// Takes further bytes of the server.
    pub fn server(&mut self, bytes: &[u8]) {
        let state = &mut self.state;
        self.server.feed(bytes, &mut |line| match state {
            ProtocolState::Smtp(smtp) => smtp.server(line),
            ProtocolState::Imap(imap) => imap.server(line),
            ProtocolState::Pop3(pop3) => pop3.server(line),
        });
    }

    /// Returns the bytes of memory in use.
    pub fn memory(&self) -> usize {
        let state = match &self.state {
            ProtocolState::Smtp(smtp) => smtp.memory(),
            ProtocolState::Imap(imap) => imap.memory(),
            ProtocolState::Pop3(_) => 0,
        };
        size_of::<DialogueGuard>() + self.server.memory() + state
    }

    /// Whether nothing more can be refused, because the client has logged in.
    pub fn is_open(&self) -> bool {
        match &self.state {
            ProtocolState::Smtp(_) => false,
            ProtocolState::Imap(imap) => imap.is_open(),
            ProtocolState::Pop3(pop3) => pop3.is_open(),
        }
    }
}
