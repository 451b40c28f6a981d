//! A mail dialogue with the agent, from the greeting up to the rules' decision.

use super::evaluator::{Evaluator, SentFields};
use super::guard::DialogueGuard;
use super::imap::Imap;
use super::line::Line;
use super::line_action::LineAction;
use super::pop3::Pop3;
use super::replay::{Replay, ReplayCommand};
use super::responder::Responder;
use super::smtp::Smtp;
use crate::config::Protocol;
use crate::decision::{Decision, Forwarding, decision};
use crate::evaluation::Outcome;
use crate::facts::ConnectionFacts;
use crate::http::Fault;
use crate::refusal::Refusal;
use crate::ruleset::RuleSet;

/// The state of a mail dialogue with the agent.
#[derive(Debug)]
pub(crate) struct Dialogue {
    facts: ConnectionFacts,
    started: bool,
    /// `at` is the offset in the stream at which the next line starts: after the previous command and its counted bytes
    /// (of a literal or chunk). `scanned` is the offset up to which the stream was searched for the end of that line.
    at: usize,
    scanned: usize,
    /// The answer that is sent after the last counted byte (of a literal or chunk) has arrived.
    pending_reply: Vec<u8>,
    responder: Responder,
}

impl Dialogue {
    pub(crate) fn new(protocol: Protocol, facts: ConnectionFacts) -> Dialogue {
        let responder = match protocol {
            Protocol::Imap => Responder::Imap(Imap::default()),
            Protocol::Pop3 => Responder::Pop3(Pop3::default()),
            _ => Responder::Smtp(Smtp::default()),
        };
        Dialogue { facts, started: false, at: 0, scanned: 0, pending_reply: Vec::new(), responder }
    }

    /// Returns an upper bound for the bytes of memory in use. The dialogue stores those lines that it will repeat to a
    /// server; together they are no longer than `at`, the number of bytes read.
    pub(crate) fn memory(&self) -> usize {
        size_of::<Dialogue>() + self.at
    }

    pub(crate) fn feed(&mut self, rules: &RuleSet, stream: &[u8]) -> Decision {
        let facts = self.facts;
        let evaluator = Evaluator { rules, facts: &facts };
        let mut reply = Vec::new();
        if !self.started {
            self.started = true;
            if let Some(outcome) = evaluator.evaluate(&SentFields::default()) {
                return decision(rules, &facts, outcome, Forwarding::Opaque);
            }
            reply = self.responder.greeting(rules, &facts);
        }
        match self.read(&evaluator, stream, &mut reply) {
            Ok(Some(decision)) => decision,
            Ok(None) => Decision::NeedMore { reply },
            Err(fault) => {
                let mut refusal = rules.fault(fault);
                refusal.reply.splice(..0, reply);
                Decision::Refuse(refusal)
            }
        }
    }

    /// Returns the offset of the first byte after the current line; none while the line is incomplete.
    fn line_end(&mut self, stream: &[u8]) -> Option<usize> {
        let from = self.scanned.max(self.at);
        let end = memchr::memchr(b'\n', &stream[from..]).map(|end| from + end + 1);
        self.scanned = end.map_or(stream.len(), |end| end - 1);
        end
    }

    fn read(&mut self, evaluator: &Evaluator, stream: &[u8], reply: &mut Vec<u8>) -> Result<Option<Decision>, Fault> {
        let rules = evaluator.rules;
        loop {
            if self.at > rules.limits.head.0 {
                return Err(Fault { status: 552, why: "a command has more bytes than the dialogue's limit" });
            }
            if self.at > stream.len() {
                break;
            }
            reply.append(&mut self.pending_reply);
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
            match self.responder.take(evaluator, line) {
                LineAction::Reply(answer) => {
                    reply.extend_from_slice(&answer);
                    self.at = end;
                }
                LineAction::Counted { reply: answer, bytes, reply_behind } => {
                    reply.extend_from_slice(&answer);
                    self.at = end.saturating_add(bytes);
                    self.scanned = self.at;
                    self.pending_reply = reply_behind;
                }
                LineAction::Forward(outcome, steps, from) => {
                    let guard = DialogueGuard::new(&self.responder, self.facts, &steps);
                    return Ok(Some(forward(evaluator, outcome, (steps, from), guard, reply)));
                }
                LineAction::Quit(goodbye) => {
                    let reply = [&std::mem::take(reply)[..], goodbye.as_bytes()].concat();
                    return Ok(Some(Decision::Refuse(Refusal {
                        status: 0,
                        why: "the client leaves",
                        rule: None,
                        reply,
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

fn forward(
    evaluator: &Evaluator,
    outcome: Outcome,
    (steps, from): (Vec<ReplayCommand>, usize),
    guard: DialogueGuard,
    reply: &mut Vec<u8>,
) -> Decision {
    let answers = std::mem::take(reply);
    let replay = Replay::new(evaluator.rules.protocol, steps);
    let forward = Forwarding::Mail { replay, from, reply: answers.clone(), guard: Box::new(guard) };
    match decision(evaluator.rules, evaluator.facts, outcome, forward) {
        Decision::Refuse(refusal) => Decision::Refuse(Refusal { reply: [answers, refusal.reply].concat(), ..refusal }),
        decision => decision,
    }
}
