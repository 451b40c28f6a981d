//! A server that is opened behind a greeting of the agent's own hears again what the client has said, line by line.
//!
//! The lines take the place of the client's answered bytes, right before those that are not answered. So the server is opened with
//! a number that lies ahead of the client's first by what the agent kept to itself, and the client's own numbers are right on both
//! sides. The server's greeting and answers are swallowed: what the agent has said in their place is in the delta.

use crate::assembler::Assembler;
use crate::connection::Fate::Stays;
use crate::connection::{Connection, Context, Fate, Phase};
use crate::decider::{Heard, Reason, Refusal, Repetition};
use crate::seq::Seq;
use crate::wire::Segment;
use crate::wire::flags::{ACK, FIN, RST, SYN};

/// How long a server may take in all, from the decision on. Clients of SMTP wait for five minutes (RFC 5321, section 4.5.3.2).
const PATIENCE: u64 = 60_000_000_000;
/// Bytes that a server may say meanwhile.
const ROOM: usize = 64 << 10;

/// A dialogue on its way to the server.
pub struct Repeating {
    repetition: Repetition,
    /// What the server has said.
    said: Assembler,
    /// The number of its FIN.
    fin: Option<Seq>,
    /// When it is given up.
    pub until: u64,
}

impl Repeating {
    /// Memory taken.
    pub fn memory(&self) -> usize {
        size_of::<Self>() + self.repetition.lines.capacity() + self.said.memory()
    }

    /// What the server's answers ask for.
    fn hear(&mut self) -> Heard {
        self.repetition.answers.hear(self.said.ready())
    }

    /// The server has ended its side, or talks without end.
    fn is_hopeless(&self) -> bool {
        self.fin == Some(self.said.end()) || self.said.room() == 0
    }
}

impl Connection {
    /// Takes the first segment of a client. An agent that greets does not wait for a request.
    pub fn begin(&mut self, ctx: &mut Context<'_>, segment: &Segment<'_>) -> Fate {
        let fate = self.on_client(ctx, segment);
        let is_silent = self.speech.is_none() && self.request.ready().is_empty();
        if fate == Stays && is_silent && self.service.rules.greets() && matches!(self.phase, Phase::Reading) {
            return self.read(ctx);
        }
        fate
    }

    /// Puts what the server is to hear in the place of what the client has said.
    pub fn prepare_repetition(&mut self, ctx: &mut Context<'_>, mut repetition: Repetition) {
        let answered = self.request.base() + repetition.answered as u32;
        let say = std::mem::take(&mut repetition.say);
        if !say.is_empty() {
            self.say(ctx, say, false);
        } else if self.owned.is_before(answered) {
            self.own(ctx);
        }
        self.request.replace_before(answered, &repetition.lines);
        let said = Assembler::new(Seq(0), ROOM);
        self.repeating = Some(Box::new(Repeating { repetition, said, fin: None, until: ctx.now + PATIENCE }));
    }

    /// Begins to listen to a server that was opened, if it is to hear a dialogue.
    pub fn begin_repeating(&mut self) {
        if let (Phase::Serving(serving), Some(repeating)) = (&mut self.phase, &mut self.repeating) {
            repeating.said = Assembler::new(serving.begin_repeating(), ROOM);
        }
    }

    /// Takes a client's segment meanwhile: it is for later. A client that repeats itself hears that it has come.
    pub fn hold_client(&mut self, ctx: &mut Context<'_>, segment: &Segment<'_>, has_come: bool) -> Fate {
        if has_come { Stays } else { self.read_or_acknowledge(ctx, segment, false) }
    }

    /// Takes a segment of a server that hears the dialogue.
    pub fn hear_server(&mut self, ctx: &mut Context<'_>, segment: &Segment<'_>) -> Fate {
        let Phase::Serving(serving) = &mut self.phase else { return Stays };
        if segment.has(RST) {
            let is_its = segment.seq() == serving.next();
            return if is_its { self.leave_server(ctx, Reason::ServerRefused, Vec::new()) } else { Stays };
        }
        if segment.has(SYN) {
            self.acknowledge_server(ctx);
            return Stays;
        }
        if !segment.has(ACK) {
            return Stays;
        }
        self.take_acknowledgement(ctx, segment);
        let Some(repeating) = &mut self.repeating else { return Stays };
        repeating.said.insert(segment.seq(), segment.payload());
        if segment.has(FIN) {
            repeating.fin = Some(segment.end() - 1);
        }
        self.follow_dialogue(ctx, segment)
    }

    /// Does what the server's answers ask for.
    fn follow_dialogue(&mut self, ctx: &mut Context<'_>, segment: &Segment<'_>) -> Fate {
        let (Phase::Serving(serving), Some(repeating)) = (&mut self.phase, &mut self.repeating) else { return Stays };
        let used = loop {
            match repeating.hear() {
                Heard::GoOn(bytes) => serving.repeat_further(bytes),
                Heard::Nothing if repeating.is_hopeless() => {
                    return self.leave_server(ctx, Reason::ServerRefused, Vec::new());
                }
                Heard::Nothing => break None,
                Heard::Ready { used } => break Some(used),
                Heard::Failed { say } => return self.leave_server(ctx, Reason::ServerRefused, say),
            }
        };
        let next = repeating.said.end();
        if let Some(used) = used {
            let rest = repeating.said.ready()[used..].to_vec();
            self.repeating = None;
            if !rest.is_empty() {
                self.say(ctx, rest, false);
            }
        }
        let toward_client = self.toward_client;
        let Phase::Serving(serving) = &mut self.phase else { return Stays };
        serving.swallow(next, toward_client);
        if used.is_some() {
            serving.end_repeating();
        }
        let is_bare = segment.payload().is_empty() && segment.seq() == next;
        if !self.advance(ctx) && !is_bare {
            self.acknowledge_server(ctx);
        }
        Stays
    }

    /// Gives a server up that does not take what the agent has granted: the client hears its words, or why.
    pub fn leave_server(&mut self, ctx: &mut Context<'_>, reason: Reason, say: Vec<u8>) -> Fate {
        if let Phase::Serving(serving) = &self.phase {
            self.service.groups[serving.group].failed.add(1);
        }
        if say.is_empty() {
            return self.apologize(ctx, reason);
        }
        self.refuse(ctx, Refusal { why: reason.name(), rule: None, say })
    }
}
