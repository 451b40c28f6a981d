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

use super::asker::Asker;
use super::replay::Step;
use super::speaker::Speaker;
use crate::facts::ConnectionFacts;
use crate::refusal::Refusal;
use crate::ruleset::RuleSet;
use lines::Lines;

/// What may be forwarded of a client's bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Followed {
    /// The first so many bytes. The others wait for more bytes of the client or of the server.
    Pass(usize),
    /// All following bytes: nothing more can be refused.
    Open,
    /// Nothing: send [`Refusal::reply`], and close.
    Refuse(Refusal),
}

/// Checks the rest of a dialogue, from where a server has taken it over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Follower {
    facts: ConnectionFacts,
    server: Lines,
    side: Side,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Side {
    Smtp(smtp::Smtp),
    Imap(imap::Imap),
    Pop3(pop3::Pop3),
}

impl Follower {
    /// Begins when the server has answered these commands.
    pub(super) fn new(speaker: &Speaker, facts: ConnectionFacts, steps: &[Step]) -> Follower {
        let (side, has_literals) = match speaker {
            Speaker::Smtp(smtp) => (Side::Smtp(smtp::Smtp::new(smtp.envelope())), false),
            Speaker::Imap(_) => (Side::Imap(imap::Imap::new(steps)), true),
            Speaker::Pop3(_) => (Side::Pop3(pop3::Pop3::new(steps)), false),
        };
        Follower { facts, server: Lines::new(has_literals), side }
    }

    /// Checks all bytes of the client that were not forwarded.
    pub fn client(&mut self, rules: &RuleSet, bytes: &[u8]) -> Followed {
        let asker = Asker { rules, facts: &self.facts };
        if self.is_open() {
            return Followed::Open;
        }
        let passed = match &mut self.side {
            Side::Smtp(smtp) => smtp.client(&asker, bytes),
            Side::Imap(imap) => imap.client(&asker, bytes),
            Side::Pop3(pop3) => pop3.client(&asker, bytes),
        };
        passed.map_or_else(Followed::Refuse, Followed::Pass)
    }

    /// Takes further bytes of the server.
    pub fn server(&mut self, bytes: &[u8]) {
        let side = &mut self.side;
        self.server.feed(bytes, &mut |line| match side {
            Side::Smtp(smtp) => smtp.server(line),
            Side::Imap(imap) => imap.server(line),
            Side::Pop3(pop3) => pop3.server(line),
        });
    }

    /// Returns the bytes of memory in use.
    pub fn memory(&self) -> usize {
        let side = match &self.side {
            Side::Smtp(smtp) => smtp.memory(),
            Side::Imap(imap) => imap.memory(),
            Side::Pop3(_) => 0,
        };
        size_of::<Follower>() + self.server.memory() + side
    }

    /// Whether nothing more can be refused, because the client has logged in.
    pub fn is_open(&self) -> bool {
        match &self.side {
            Side::Smtp(_) => false,
            Side::Imap(imap) => imap.is_open(),
            Side::Pop3(pop3) => pop3.is_open(),
        }
    }
}
