//! A mail dialogue from the greeting up to the rules' decision.

use super::act::Act;
use super::asker::{Asker, SentFields};
use super::follow::Follower;
use super::imap::Imap;
use super::line::Line;
use super::pop3::Pop3;
use super::replay::{Replay, Step};
use super::smtp::Smtp;
use super::speaker::Speaker;
use crate::config::Protocol;
use crate::decision::{Decision, HandOn, decision};
use crate::facts::ConnectionFacts;
use crate::http::Fault;
use crate::refusal::Refusal;
use crate::ruleset::RuleSet;
use crate::run::Outcome;

/// The state of a dialogue.
#[derive(Debug)]
pub(crate) struct Dialogue {
    facts: ConnectionFacts,
    started: bool,
    /// Start of the next line, behind the bytes that the command before it counts; and the offset up to which the
    /// stream was searched for its end.
    at: usize,
    looked_at: usize,
    /// The answer that is sent behind the last counted byte.
    then: Vec<u8>,
    speaker: Speaker,
}

impl Dialogue {
    pub(crate) fn new(protocol: Protocol, facts: ConnectionFacts) -> Dialogue {
        let speaker = match protocol {
            Protocol::Imap => Speaker::Imap(Imap::default()),
            Protocol::Pop3 => Speaker::Pop3(Pop3::default()),
            _ => Speaker::Smtp(Smtp::default()),
        };
        Dialogue { facts, started: false, at: 0, looked_at: 0, then: Vec::new(), speaker }
    }

    /// Returns the bytes of memory in use. Lines are stored to repeat them to a server; they are at most all bytes
    /// read.
    pub(crate) fn memory(&self) -> usize {
        size_of::<Dialogue>() + self.at
    }

    pub(crate) fn feed(&mut self, rules: &RuleSet, stream: &[u8]) -> Decision {
        let facts = self.facts;
        let asker = Asker { rules, facts: &facts };
        let mut say = Vec::new();
        if !self.started {
            self.started = true;
            if let Some(outcome) = asker.ask(&SentFields::default()) {
                return decision(rules, &facts, outcome, HandOn::Opaque);
            }
            say = self.speaker.greeting(rules, &facts);
        }
        match self.read(&asker, stream, &mut say) {
            Ok(Some(decision)) => decision,
            Ok(None) => Decision::NeedMore { say },
            Err(fault) => {
                let mut refusal = rules.fault(fault);
                refusal.say.splice(..0, say);
                Decision::Refuse(refusal)
            }
        }
    }

    /// Returns the offset behind the current line.
    fn line_end(&mut self, stream: &[u8]) -> Option<usize> {
        let from = self.looked_at.max(self.at);
        let end = memchr::memchr(b'\n', &stream[from..]).map(|end| from + end + 1);
        self.looked_at = end.map_or(stream.len(), |end| end - 1);
        end
    }

    fn read(&mut self, asker: &Asker, stream: &[u8], say: &mut Vec<u8>) -> Result<Option<Decision>, Fault> {
        let rules = asker.rules;
        loop {
            if self.at > rules.limits.head.0 {
                return Err(Fault { status: 552, why: "a command has more bytes than the dialogue's limit" });
            }
            if self.at > stream.len() {
                break;
            }
            say.append(&mut self.then);
            let Some(end) = self.line_end(stream) else { break };
            if end > rules.limits.head.0 {
                break;
            }
            let Some(line) = stream[self.at..end].strip_suffix(b"\r\n") else {
                return Err(Fault { status: 500, why: "a line ends without CR" });
            };
            if line.iter().any(|&b| b == 0 || b == b'\r') {
                return Err(Fault { status: 500, why: "a line has control characters" });
            }
            let line = Line { text: line, start: self.at, end, stream };
            match self.speaker.take(asker, line) {
                Act::Answer(answer) => {
                    say.extend_from_slice(&answer);
                    self.at = end;
                }
                Act::Counted { say: now, bytes, then } => {
                    say.extend_from_slice(&now);
                    self.at = end.saturating_add(bytes);
                    self.looked_at = self.at;
                    self.then = then;
                }
                Act::HandOn(outcome, steps, from) => {
                    let follower = Follower::new(&self.speaker, self.facts, &steps);
                    return Ok(Some(hand_on(asker, outcome, (steps, from), follower, say)));
                }
                Act::Quit(goodbye) => {
                    let say = [&std::mem::take(say)[..], goodbye.as_bytes()].concat();
                    return Ok(Some(Decision::Refuse(Refusal {
                        status: 0,
                        why: "the client leaves",
                        rule: None,
                        say,
                    })));
                }
            }
        }
        if stream.len() > rules.limits.head.0 {
            return Err(Fault { status: 500, why: "the dialogue is above its limit" });
        }
        Ok(None)
    }
}

fn hand_on(
    asker: &Asker,
    outcome: Outcome,
    (steps, from): (Vec<Step>, usize),
    follower: Follower,
    say: &mut Vec<u8>,
) -> Decision {
    let answers = std::mem::take(say);
    let replay = Replay::new(asker.rules.protocol, steps);
    let hand_on = HandOn::Mail { replay, from, say: answers.clone(), follower: Box::new(follower) };
    match decision(asker.rules, asker.facts, outcome, hand_on) {
        Decision::Refuse(refusal) => Decision::Refuse(Refusal { say: [answers, refusal.say].concat(), ..refusal }),
        decision => decision,
    }
}
