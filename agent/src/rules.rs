//! Implements the engine's interface for rules ([`crate::policy`]) with the crate `sluice-rules`.

use std::net::SocketAddrV4;
use std::sync::Arc;
use std::time::Duration;

use sluice_rules::{
    ConnectionFacts, Decider, Decision, Forwarding, Protocol, Refusal, Request, RequestFramer, Response,
    ResponseFramer, Route, RuleSet, Sticky as RuleSticky,
};

use crate::mail;
use crate::policy::{
    Assignment, Disposition, Framing, Progress, Reason, Rejection, RequestReader, ServicePolicy, Sticky,
};

/// The maximum number of bytes that chunked framing (chunk sizes and a trailer) may add to a buffered body.
const FRAMING: usize = 16 << 10;

/// A compiled rule set that serves as the policy of a service.
#[derive(Debug)]
pub struct Rules(pub Arc<RuleSet>);

impl ServicePolicy for Rules {
    fn begin(&self, client: SocketAddrV4, service: SocketAddrV4) -> Box<dyn RequestReader> {
        let (source, destination) = ((*client.ip()).into(), (*service.ip()).into());
        let facts = ConnectionFacts { source, destination, port: service.port() };
        Box::new(RuleReader { rules: Arc::clone(&self.0), decider: Decider::new(&self.0, facts) })
    }

    fn greets(&self) -> bool {
        !matches!(self.0.protocol(), Protocol::Http | Protocol::Tls)
    }

    fn room(&self) -> usize {
        let limits = self.0.limits();
        limits.head.0 + FRAMING + if self.greets() { 0 } else { limits.body.0 }
    }

    fn wait(&self) -> Duration {
        Duration::try_from_secs_f64(self.0.limits().wait_s(self.0.protocol())).unwrap_or(Duration::MAX)
    }

    fn rules(&self) -> usize {
        self.0.rules().len()
    }

    fn error_reply(&self, reason: Reason, request: &[u8]) -> Vec<u8> {
        let status = match reason {
            Reason::Timeout | Reason::Crowded => 408,
            Reason::CutShort => 400,
            Reason::TooLarge => 413,
            Reason::NoServer | Reason::ServerRefused => 503,
        };
        match self.0.protocol() {
            Protocol::Http => self.0.refusal(status, reason.name()).to(request).reply,
            Protocol::Tls => Vec::new(),
            Protocol::Smtp | Protocol::Imap | Protocol::Pop3 => mail::error_reply(&self.0, reason),
        }
    }
}

/// Reads a request, and evaluates the rules on it with a `Decider`.
struct RuleReader {
    rules: Arc<RuleSet>,
    decider: Decider,
}

impl RequestReader for RuleReader {
    fn memory(&self) -> usize {
        self.decider.memory()
    }

    fn read(&mut self, bytes: &[u8]) -> Disposition {
        match self.decider.feed(bytes) {
            Decision::NeedMore { reply } => Disposition::NeedMore { reply },
            Decision::Refuse(refusal) => Disposition::Refuse(rejection(refusal)),
            Decision::Route(route) => self.assign(route),
        }
    }
}

impl RuleReader {
    fn assign(&self, route: Route) -> Disposition {
        let sticky = match route.sticky {
            RuleSticky::Connection => Sticky::Connection,
            RuleSticky::Client => Sticky::Client,
            RuleSticky::None => Sticky::None,
        };
        let (mut framing, mut dialogue_replay): (Option<Box<dyn Framing>>, _) = (None, None);
        match route.forwarding {
            Forwarding::Opaque => {}
            Forwarding::Http(request) if sticky == Sticky::None || route.guarded => {
                framing = Some(Box::new(HttpFraming::new(&self.rules, &request, route.guarded)));
            }
            Forwarding::Http(_) => {}
            Forwarding::Mail { replay, from, reply, guard } => {
                if route.guarded {
                    framing = Some(Box::new(mail::DialogueFraming::new(&self.rules, *guard)));
                }
                dialogue_replay = Some(mail::dialogue_replay(replay, from, reply));
            }
        }
        Disposition::Assignment(Assignment {
            rule: route.rule,
            group: usize::from(route.group.0),
            sticky,
            framing,
            dialogue_replay,
        })
    }
}

/// Converts a refusal of the crate `sluice-rules` to the engine's type.
pub(crate) fn rejection(refusal: Refusal) -> Rejection {
    Rejection { why: refusal.why, rule: refusal.rule, reply: refusal.reply }
}

/// The framing of an HTTP request and its response.
struct HttpFraming {
    rules: Arc<RuleSet>,
    request: RequestFramer,
    response: ResponseFramer,
    /// Whether the client may send another request on this connection.
    persists: bool,
    /// Whether rules may refuse a later request.
    guarded: bool,
    /// Whether the client waits for `100 Continue` before it sends the body. If the server sends another answer, the
    /// client may omit the body (RFC 9110, section 10.1.1). If rules may refuse requests, the body must not be mistaken
    /// for the next request. Then the agent forwards the body only after the server's 100.
    expects_continue: bool,
    /// The number of bytes of the head that are not forwarded yet.
    head: usize,
    request_complete: bool,
    /// Whether the server has sent a part of the response.
    is_answering: bool,
    /// Whether the response is complete although the client may still send the body of the request.
    is_void: bool,
}

impl HttpFraming {
    fn new(rules: &Arc<RuleSet>, request: &Request, guarded: bool) -> HttpFraming {
        HttpFraming {
            rules: Arc::clone(rules),
            request: RequestFramer::new(request),
            response: ResponseFramer::new(request.method),
            persists: request.persistent,
            guarded,
            expects_continue: request.expects_continue,
            head: request.head,
            request_complete: false,
            is_answering: false,
            is_void: false,
        }
    }

    /// Returns the refusal that closes the connection. It contains an error reply unless the client has received a part
    /// of the response.
    fn close(&self, status: u16, why: &'static str) -> Progress {
        let mut refusal = rejection(self.rules.refusal(status, why));
        if self.is_answering {
            refusal.reply.clear();
        }
        Progress::Refused(refusal)
    }
}

impl Framing for HttpFraming {
    fn request(&mut self, bytes: &[u8]) -> Progress {
        if self.is_void {
            return Progress::Partial(0);
        }
        let waits = self.guarded && self.expects_continue && !self.response.has_continued();
        let bytes = if waits { &bytes[..bytes.len().min(self.head)] } else { bytes };
        self.head -= bytes.len().min(self.head);
        match self.request.feed(bytes) {
            Ok(_) if waits => Progress::Partial(bytes.len()),
            Ok(reach) if reach.done => {
                self.request_complete = true;
                Progress::Ended { used: reach.used, persistent: self.persists }
            }
            Ok(_) => Progress::More,
            Err(broken) => self.close(400, broken.0),
        }
    }

    fn response(&mut self, bytes: &[u8]) -> Progress {
        let progress = match self.response.feed(bytes) {
            Response::More => Progress::More,
            Response::Done { used, persistent } => {
                self.is_void = self.expects_continue && !self.request_complete && !self.response.has_continued();
                Progress::Ended { used, persistent: persistent && self.persists && !self.is_void }
            }
            Response::Upgraded if self.guarded => {
                self.close(502, "the server changes to a protocol that rules cannot read")
            }
            Response::Tunnel | Response::Upgraded => Progress::Opaque,
            Response::Endless => Progress::Last,
        };
        self.is_answering = true;
        progress
    }
}
