//! Dialogues of mail protocols: the agent greets and answers until rules can decide, and says it again to the server.

mod follow;
mod imap;
mod pop3;
mod replay;
pub(crate) mod sasl;
mod smtp;

pub use follow::{Followed, Follower};
pub use replay::{Replay, Replayed};

use crate::config::Protocol;
use crate::decide::{decision, enter_facts};
use crate::decision::{ConnectionFacts, Decision, HandOn, Refusal};
use crate::field::{FieldId, Kind};
use crate::http::Fault;
use crate::ruleset::{Action, RuleSet};
use crate::run::{Outcome, Run};
use crate::values::Values;
use replay::Step;

/// A dialogue as far as it has come.
#[derive(Debug)]
pub(crate) struct Dialogue {
    facts: ConnectionFacts,
    started: bool,
    /// Where the next line begins, behind bytes that the command before it has counted; and how far its end was looked for.
    at: usize,
    looked_at: usize,
    /// What is said when all counted bytes have come.
    then: Vec<u8>,
    speaker: Speaker,
}

#[derive(Debug)]
enum Speaker {
    Smtp(smtp::Smtp),
    Imap(imap::Imap),
    Pop3(pop3::Pop3),
}

/// What the client has told so far: some fields have their values, others may have theirs yet.
#[derive(Debug, Default)]
struct Told<'t> {
    values: Vec<(Option<FieldId>, &'t [u8])>,
    /// This one was left out, and comes no more.
    left_out: Option<FieldId>,
    /// Nothing more will be told.
    all: bool,
}

/// What becomes of a line.
#[derive(Debug)]
enum Act {
    /// It is answered, and the next line is read.
    Answer(Vec<u8>),
    /// So many bytes behind it belong to its command: they are taken with it, whatever becomes of it.
    Counted {
        /// What is said at once.
        say: Vec<u8>,
        bytes: usize,
        /// What is said when they have come.
        then: Vec<u8>,
    },
    /// The server takes over: these steps are said to it again, and it hears the stream from that offset on.
    HandOn(Outcome, Vec<Step>, usize),
    /// The client leaves.
    Quit(&'static str),
}

impl Dialogue {
    pub(crate) fn new(protocol: Protocol, facts: ConnectionFacts) -> Dialogue {
        let speaker = match protocol {
            Protocol::Imap => Speaker::Imap(imap::Imap::default()),
            Protocol::Pop3 => Speaker::Pop3(pop3::Pop3::default()),
            _ => Speaker::Smtp(smtp::Smtp::default()),
        };
        Dialogue { facts, started: false, at: 0, looked_at: 0, then: Vec::new(), speaker }
    }

    /// Memory taken: lines are kept to be said again, at most all that were read.
    pub(crate) fn memory(&self) -> usize {
        size_of::<Dialogue>() + self.at
    }

    pub(crate) fn feed(&mut self, rules: &RuleSet, stream: &[u8]) -> Decision {
        let facts = self.facts;
        let asker = Asker { rules, facts: &facts };
        let mut say = Vec::new();
        if !self.started {
            self.started = true;
            if let Some(outcome) = asker.ask(&Told::default()) {
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

    /// Where the current line ends.
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
    let said = std::mem::take(say);
    let replay = Replay::new(asker.rules.protocol, steps);
    let hand_on = HandOn::Mail { replay, from, say: said.clone(), follower: Box::new(follower) };
    match decision(asker.rules, asker.facts, outcome, hand_on) {
        Decision::Refuse(refusal) => Decision::Refuse(Refusal { say: [said, refusal.say].concat(), ..refusal }),
        decision => decision,
    }
}

/// A line of the client.
#[derive(Clone, Copy, Debug)]
struct Line<'s> {
    /// Without its end.
    text: &'s [u8],
    start: usize,
    end: usize,
    stream: &'s [u8],
}

impl<'s> Line<'s> {
    /// The first word, and the rest without the spaces between.
    fn word(self) -> (&'s [u8], &'s [u8]) {
        word(self.text)
    }
}

fn word(text: &[u8]) -> (&[u8], &[u8]) {
    let (word, rest) = crate::http::head::split(text, b' ');
    (word, rest.trim_ascii())
}

/// Asks the rules.
#[derive(Clone, Copy, Debug)]
struct Asker<'r> {
    rules: &'r RuleSet,
    facts: &'r ConnectionFacts,
}

impl Asker<'_> {
    /// What the rules say, if they can by now.
    fn ask(&self, told: &Told) -> Option<Outcome> {
        self.run(told).outcome(self.rules)
    }

    fn run(&self, told: &Told) -> Run {
        let rules = self.rules;
        let mut values = Values::default();
        enter_facts(rules, self.facts, &mut values);
        let mut run = Run::new(rules, values);
        let known = told.values.iter().filter_map(|&(field, value)| Some((field?, value)));
        for (field, value) in known {
            match rules.fields[field.0 as usize].kind() {
                Kind::Caseless => run.observe(rules, field, &value.to_ascii_lowercase()),
                _ => run.observe(rules, field, value),
            }
            run.close(rules, [field]);
        }
        run.close(rules, told.left_out);
        if told.all {
            run.close_all(rules);
        }
        run
    }

    /// What the rules say when the rest is hidden from them: it does not hold. None when a rule on it may refuse.
    fn give_up(&self, told: &Told) -> Option<Outcome> {
        self.run(told).give_up(self.rules)
    }

    /// What the rules say of a user who has logged in by these names, the first of which is the mailbox's: each is asked about,
    /// and a refusal of one counts.
    fn conclude_users(&self, users: &[impl AsRef<[u8]>]) -> Outcome {
        let field = self.rules.lookup.user;
        let outcome = |user| self.conclude(Told { values: vec![(field, user)], ..Told::default() });
        let mut outcomes: Vec<Outcome> = users.iter().map(|user| outcome(user.as_ref())).collect();
        let refusal = outcomes.iter().position(|outcome| matches!(outcome.action, Action::Refuse(_)));
        outcomes.swap_remove(refusal.unwrap_or(0))
    }

    /// Whether the operator offers an extension; of several words the first counts.
    fn offers(&self, extension: &str) -> bool {
        let first =
            |offer: &String| offer.split([' ', '=']).next().is_some_and(|word| word.eq_ignore_ascii_case(extension));
        self.rules.offer.iter().any(first)
    }

    /// What the rules say when nothing more will be told.
    fn conclude(&self, mut told: Told) -> Outcome {
        told.all = true;
        self.ask(&told).unwrap_or(Outcome { rule: None, action: self.rules.default })
    }
}

impl Speaker {
    fn greeting(&self, rules: &RuleSet, facts: &ConnectionFacts) -> Vec<u8> {
        match self {
            Speaker::Smtp(_) => format!("220 {} ESMTP\r\n", smtp::literal(facts.destination)),
            Speaker::Imap(_) => format!("* OK [CAPABILITY {}] ready\r\n", imap::capabilities(rules)),
            Speaker::Pop3(_) => "+OK ready\r\n".to_owned(),
        }
        .into_bytes()
    }

    fn take(&mut self, asker: &Asker, line: Line) -> Act {
        match self {
            Speaker::Smtp(smtp) => smtp.take(asker, line),
            Speaker::Imap(imap) => imap.take(asker, line),
            Speaker::Pop3(pop3) => pop3.take(asker, line),
        }
    }
}
