//! The rules of `sluice-rules`, as the engine asks them.

use std::net::SocketAddrV4;
use std::sync::Arc;
use std::time::Duration;

use sluice_rules::{
    ConnectionFacts, Decider as Deciding, Decision as Decided, HandOn, Protocol, Request, RequestFramer, Response,
    ResponseFramer, RuleSet, Sticky as Stays,
};

use crate::decider::{Decider, Decision, Framing, Progress, Reader, Reason, Refusal, Route, Sticky};
use crate::mail;

/// Bytes of a body that its framing may add: sizes of chunks, and a trailer.
const FRAMING: usize = 16 << 10;

/// A rule set in use.
#[derive(Debug)]
pub struct Rules(pub Arc<RuleSet>);

impl Decider for Rules {
    fn begin(&self, client: SocketAddrV4, service: SocketAddrV4) -> Box<dyn Reader> {
        let (source, destination) = ((*client.ip()).into(), (*service.ip()).into());
        let facts = ConnectionFacts { source, destination, port: service.port() };
        Box::new(Deciding::new(&self.0, facts))
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

    fn apology(&self, reason: Reason) -> Vec<u8> {
        let status = match reason {
            Reason::Timeout | Reason::Crowded => 408,
            Reason::CutShort => 400,
            Reason::TooLarge => 413,
            Reason::NoServer | Reason::ServerRefused => 503,
        };
        match self.0.protocol() {
            Protocol::Http => self.0.refusal(status, reason.name()).say,
            Protocol::Tls => Vec::new(),
            Protocol::Smtp | Protocol::Imap | Protocol::Pop3 => mail::apology(&self.0, reason),
        }
    }
}

impl Reader for Deciding {
    fn memory(&self) -> usize {
        Deciding::memory(self)
    }

    fn read(&mut self, bytes: &[u8]) -> Decision {
        match self.feed(bytes) {
            Decided::NeedMore { say } => Decision::NeedMore { say },
            Decided::Refuse(refusal) => {
                Decision::Refuse(Refusal { why: refusal.why, rule: refusal.rule, say: refusal.say })
            }
            Decided::Route(route) => {
                let sticky = match route.sticky {
                    Stays::Connection => Sticky::Connection,
                    Stays::Client => Sticky::Client,
                    Stays::None => Sticky::None,
                };
                let framing: Option<Box<dyn Framing>> = match &route.hand_on {
                    HandOn::Http(request) if sticky == Sticky::None => Some(Box::new(Exchange::new(request))),
                    _ => None,
                };
                let repetition = match route.hand_on {
                    HandOn::Mail { replay, from, say, .. } => Some(mail::repetition(replay, from, say)),
                    _ => None,
                };
                let group = usize::from(route.group.0);
                Decision::Route(Route { rule: route.rule, group, sticky, framing, repetition })
            }
        }
    }
}

/// A request and its response.
struct Exchange {
    request: RequestFramer,
    response: ResponseFramer,
    /// The client sends another request on this connection.
    persists: bool,
}

impl Exchange {
    fn new(request: &Request) -> Exchange {
        let response = ResponseFramer::new(request.method);
        Exchange { request: RequestFramer::new(request), response, persists: request.persistent }
    }
}

impl Framing for Exchange {
    fn request(&mut self, bytes: &[u8]) -> Progress {
        match self.request.feed(bytes) {
            Ok(reach) if reach.done => Progress::Ended { used: reach.used, goes_on: self.persists },
            Ok(_) => Progress::More,
            Err(_) => Progress::Broken,
        }
    }

    fn response(&mut self, bytes: &[u8]) -> Progress {
        match self.response.feed(bytes) {
            Response::More => Progress::More,
            Response::Done { used, persistent } => Progress::Ended { used, goes_on: persistent && self.persists },
            Response::Tunnel | Response::Upgraded | Response::Endless => Progress::Opaque,
        }
    }
}
