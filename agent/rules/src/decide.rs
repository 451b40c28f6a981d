//! Decides to which group a connection, or a request of a connection, is assigned.

use std::sync::Arc;

use crate::config::Protocol;
use crate::decision::Decision;
use crate::facts::ConnectionFacts;
use crate::mail::Dialogue;
use crate::request::HttpRequest;
use crate::ruleset::RuleSet;
use crate::tls::Hello;

/// Decides about a connection, or about a request of a connection.
///
/// The caller passes *all* bytes of the request received so far to each call of [`feed`](Decider::feed). The caller
/// buffers the bytes, and the decider copies none. [`RequestFramer`](crate::RequestFramer) finds the end of this
/// request. The next request of a keep-alive connection begins there, and needs a new decider.
#[derive(Debug)]
pub struct Decider {
    rules: Arc<RuleSet>,
    facts: ConnectionFacts,
    parser: RequestParser,
}

/// The parser of the request, selected by the protocol.
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

    /// Parses `stream`, all bytes of the request received so far, and decides. After a decision, the caller must not
    /// call this method again.
    ///
    /// In mail protocols, the server sends the first bytes. So the caller calls this method without bytes as soon as
    /// the connection is open, and sends the returned greeting to the client. If rules on addresses alone decide, this
    /// first call returns the route, and the client receives the server's own greeting.
    pub fn feed(&mut self, stream: &[u8]) -> Decision {
        match &mut self.parser {
            RequestParser::Http(request) => request.feed(&self.rules, &self.facts, stream),
            RequestParser::Tls(hello) => hello.feed(&self.rules, &self.facts, stream),
            RequestParser::Mail(dialogue) => dialogue.feed(&self.rules, stream),
        }
    }
}
