//! Decides which group gets a connection, or one request of it.

use std::sync::Arc;

use crate::config::Protocol;
use crate::decision::Decision;
use crate::facts::ConnectionFacts;
use crate::mail::Dialogue;
use crate::request::HttpRequest;
use crate::ruleset::RuleSet;
use crate::tls::Hello;

/// Decides about one connection, or about one request of it.
///
/// Each call of [`feed`](Decider::feed) is given *all* bytes of the request so far. The caller buffers them, and
/// nothing is copied. The next request of a keep-alive connection begins where
/// [`RequestFramer`](crate::RequestFramer) ends this one, with a new decider.
#[derive(Debug)]
pub struct Decider {
    rules: Arc<RuleSet>,
    facts: ConnectionFacts,
    parser: RequestParser,
}

/// The parser of the request, by the protocol.
#[derive(Debug)]
enum RequestParser {
    Http(Box<HttpRequest>),
    Tls(Hello),
    Mail(Box<Dialogue>),
}

impl Decider {
    /// Creates the decider of a connection, or of its next request.
    pub fn new(rules: &Arc<RuleSet>, facts: ConnectionFacts) -> Decider {
        let parser = match rules.protocol() {
            Protocol::Http => RequestParser::Http(Box::default()),
            Protocol::Tls => RequestParser::Tls(Hello::default()),
            protocol @ (Protocol::Smtp | Protocol::Imap | Protocol::Pop3) => {
                RequestParser::Mail(Box::new(Dialogue::new(protocol, facts)))
            }
        };
        Decider { rules: Arc::clone(rules), facts, parser }
    }

    /// Returns the bytes of memory in use.
    pub fn memory(&self) -> usize {
        size_of::<Decider>()
            + match &self.parser {
                RequestParser::Http(request) => request.memory(),
                RequestParser::Tls(hello) => hello.memory(),
                RequestParser::Mail(dialogue) => dialogue.memory(),
            }
    }

    /// Parses all bytes of the request so far. Must not be called again once it has decided.
    ///
    /// Mail servers send first: call it with no bytes as soon as the connection is open, and send the returned
    /// greeting to the client. If rules on addresses alone decide, this first call returns the route, and the client
    /// gets the server's own greeting.
    pub fn feed(&mut self, stream: &[u8]) -> Decision {
        match &mut self.parser {
            RequestParser::Http(request) => request.feed(&self.rules, &self.facts, stream),
            RequestParser::Tls(hello) => hello.feed(&self.rules, &self.facts, stream),
            RequestParser::Mail(dialogue) => dialogue.feed(&self.rules, stream),
        }
    }
}
