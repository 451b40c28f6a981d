//! Decides about an HTTP request by its head. The body is read as well, as long as a rule that can still decide has a
//! condition on the body.

use std::ops::ControlFlow;

use crate::body::{BodyEvaluation, BodyOutcome, Flow, HIDDEN, Reader};
use crate::decision::{Decision, Forwarding, decision};
use crate::evaluation::{Evaluation, Outcome};
use crate::facts::{ConnectionFacts, enter_facts};
use crate::framing::{Body, BodyFramer, Request};
use crate::http::Fault;
use crate::http::head::{self, Media, Scan, Scanned};
use crate::ruleset::RuleSet;
use crate::values::Values;

/// The state of the parser for a request.
#[derive(Debug, Default)]
pub(crate) struct HttpRequest {
    scan: Scan,
    body: Option<NeededBody>,
}

/// A body that the rules need.
#[derive(Debug)]
struct NeededBody {
    request: Request,
    /// Whether the body may contain a value that rules compare. If `reader` is none, such a value stays hidden.
    hidden: bool,
    reads_to_end: bool,
    evaluation: Evaluation,
    reader: Option<Reader>,
    framer: BodyFramer,
    /// The number of bytes of the stream that were parsed.
    at: usize,
    /// The number of decoded bytes that may still be matched before `limits.body` is reached.
    remaining: usize,
}

impl HttpRequest {
    /// Returns the bytes of memory in use.
    pub(crate) fn memory(&self) -> usize {
        let body_memory = |body: &NeededBody| body.evaluation.memory() + body.reader.as_ref().map_or(0, Reader::memory);
        size_of::<HttpRequest>() + self.body.as_ref().map_or(0, body_memory)
    }

    pub(crate) fn feed(&mut self, rules: &RuleSet, facts: &ConnectionFacts, stream: &[u8]) -> Decision {
        match self.advance(rules, facts, stream) {
            Ok(Decision::Refuse(refusal)) => Decision::Refuse(refusal.to(stream)),
            Ok(decision) => decision,
            Err(fault) => Decision::Refuse(rules.fault(fault).to(stream)),
        }
    }

    fn advance(&mut self, rules: &RuleSet, facts: &ConnectionFacts, stream: &[u8]) -> Result<Decision, Fault> {
        let reply = if self.body.is_none() {
            match self.read_head(rules, facts, stream)? {
                ControlFlow::Break(decision) => return Ok(decision),
                ControlFlow::Continue(reply) => reply,
            }
        } else {
            Vec::new()
        };
        let Some(body) = &mut self.body else { return Ok(Decision::NeedMore { reply }) };
        let reply = if body.at < stream.len() { Vec::new() } else { reply };
        match body.read(rules, stream) {
            Some(answer) => Ok(routed(rules, facts, answer?, body.request)),
            None => Ok(Decision::NeedMore { reply }),
        }
    }

    /// Parses the head once it is complete; before that, returns an empty response. Either decides by the head
    /// (`Break`), or prepares the parsing of the body and returns `100 Continue` if the client waits for it.
    fn read_head(
        &mut self,
        rules: &RuleSet,
        facts: &ConnectionFacts,
        stream: &[u8],
    ) -> Result<ControlFlow<Decision, Vec<u8>>, Fault> {
        let (start, end) = match self.scan.scan(stream, rules.limits.head.0)? {
            Scanned::More => return Ok(ControlFlow::Continue(Vec::new())),
            Scanned::Preface => return preface(rules, facts).map(ControlFlow::Break),
            Scanned::Head(start, end) => (start, end),
        };
        let mut values = Values::default();
        let mut head = head::read(rules, &stream[start..end], &mut values)?;
        head.request.head = end;
        enter_facts(rules, facts, &mut values);
        let mut evaluation = Evaluation::new(rules, values);
        if let Some(outcome) = evaluation.outcome(rules) {
            return Ok(ControlFlow::Break(routed(rules, facts, outcome, head.request)));
        }
        // Two parsers may treat a duplicate JSON name differently. So if rules may refuse the request, the document is
        // parsed to its end.
        let reads_to_end = matches!(head.media, Media::Json(_)) && rules.guards_against(facts);
        let reader = Reader::new(head.media, &mut BodyEvaluation { rules, state: &mut evaluation, reads_to_end });
        let framer = BodyFramer::new(head.request.body);
        let hidden = head.media.has_conditions(rules) && head.request.body != Body::Empty;
        let remaining = rules.limits.body.0;
        self.body = Some(NeededBody {
            request: head.request,
            hidden,
            reads_to_end,
            evaluation,
            reader,
            framer,
            at: end,
            remaining,
        });
        let reply = if head.request.expects_continue { CONTINUE.to_vec() } else { Vec::new() };
        Ok(ControlFlow::Continue(reply))
    }
}

const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// Decides about a connection that begins with the preface of HTTP/2, whose requests the rules cannot read. Such a
/// connection is assigned to the default group, unless rules may refuse requests.
fn preface(rules: &RuleSet, facts: &ConnectionFacts) -> Result<Decision, Fault> {
    if rules.guards_against(facts) {
        return Err(Fault { status: 505, why: "HTTP/2 passes by rules that refuse" });
    }
    Ok(decision(rules, facts, Outcome { rule: None, action: rules.default }, Forwarding::Opaque))
}

fn routed(rules: &RuleSet, facts: &ConnectionFacts, outcome: Outcome, request: Request) -> Decision {
    decision(rules, facts, outcome, Forwarding::Http(request))
}

impl NeededBody {
    /// Parses the bytes of the body that are not parsed yet. Returns none if the rules need more bytes.
    fn read(&mut self, rules: &RuleSet, stream: &[u8]) -> Option<BodyOutcome> {
        let Some(reader) = &mut self.reader else { return Some(unread(rules, &mut self.evaluation, self.hidden)) };
        let (evaluation, remaining) = (&mut self.evaluation, &mut self.remaining);
        let is_begun = self.at > self.request.head;
        if let Some(outcome) = evaluation.outcome(rules).filter(|_| !self.reads_to_end || !is_begun) {
            return Some(Ok(outcome));
        }
        let mut body = BodyEvaluation { rules, state: evaluation, reads_to_end: self.reads_to_end };
        let reach = self.framer.feed(&stream[self.at..], &mut |data| {
            let used = data.len().min(*remaining);
            reader.push(&data[..used], &mut body)?;
            *remaining -= used;
            if used < data.len() { ControlFlow::Break(body.give_up()) } else { Flow::Continue(()) }
        });
        let empty = *remaining == rules.limits.body.0;
        match reach {
            Err(fault) => return Some(Err(fault)),
            Ok(ControlFlow::Break(answer)) => return Some(answer),
            Ok(ControlFlow::Continue(reach)) => {
                self.at += reach.used;
                if !reach.done {
                    return None;
                }
            }
        }
        if !empty && let ControlFlow::Break(answer) = reader.end(&mut body) {
            return Some(answer);
        }
        body.state.close_all(rules);
        body.state.outcome(rules).map(Ok)
    }
}

/// Decides about a request whose body is not parsed, although rules have conditions on bodies. If `hidden`
/// is true, the body may contain a value that a rule refuses. Otherwise it contains no value that rules compare.
fn unread(rules: &RuleSet, evaluation: &mut Evaluation, hidden: bool) -> BodyOutcome {
    if hidden {
        return evaluation.give_up(rules).ok_or(HIDDEN);
    }
    evaluation.close_all(rules);
    evaluation.outcome(rules).ok_or(HIDDEN)
}
