//! Checks a mail dialogue between client and server in which rules may refuse commands: the rules are evaluated for
//! every login and every envelope.
//!
//! The agent forwards a single command at a time; the next command waits for the server's answer. So the kind of the
//! client's next bytes is always known: a command, counted bytes (of a literal or chunk), the text of a mail, or a
//! response to a challenge.

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

/// Which of a client's bytes may be forwarded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GuardVerdict {
    /// This number of bytes, from the first on. Later bytes wait until the client or the server has sent more.
    Pass(usize),
    /// All following bytes, because the rules cannot refuse anything later.
    Open,
    /// No byte. The caller sends [`Refusal::reply`] and closes the connection.
    Refuse(Refusal),
}

/// Checks the rest of a dialogue after a server has accepted the replay of the first commands.
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
    /// Creates the guard of the dialogue that follows the commands in `steps`, which the agent repeats to the server.
    pub(super) fn new(responder: &Responder, facts: ConnectionFacts, steps: &[ReplayCommand]) -> DialogueGuard {
        let (state, has_literals) = match responder {
            Responder::Smtp(smtp) => (ProtocolState::Smtp(smtp::Smtp::new(smtp.envelope())), false),
            Responder::Imap(_) => (ProtocolState::Imap(imap::Imap::new(steps)), true),
            Responder::Pop3(_) => (ProtocolState::Pop3(pop3::Pop3::new(steps)), false),
        };
        DialogueGuard { facts, server: Lines::new(has_literals), state }
    }

    /// Checks `bytes`: all bytes of the client that were not forwarded yet.
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

    /// Processes further bytes of the server.
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

    /// Returns whether the client has logged in, so that later bytes need no check. In SMTP, always false.
    pub fn is_open(&self) -> bool {
        match &self.state {
            ProtocolState::Smtp(_) => false,
            ProtocolState::Imap(imap) => imap.is_open(),
            ProtocolState::Pop3(pop3) => pop3.is_open(),
        }
    }
}
