//! Decides where a connection, or one request of it, goes.

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
/// [`feed`](Decider::feed) is handed *all* bytes of the request so far each time, from its first one: whoever holds them
/// lends them, and nothing is copied. A request of a keep-alive connection begins where the one before ends
/// ([`RequestFramer`](crate::RequestFramer)), with a new decider.
#[derive(Debug)]
pub struct Decider {
    rules: Arc<RuleSet>,
    facts: ConnectionFacts,
    reading: Reading,
}

/// What is read, by the protocol.
#[derive(Debug)]
enum Reading {
    Http(Box<HttpRequest>),
    Tls(Hello),
    Mail(Box<Dialogue>),
}

impl Decider {
    /// Begins with a connection, or with its next request.
    pub fn new(rules: &Arc<RuleSet>, facts: ConnectionFacts) -> Decider {
        let reading = match rules.protocol() {
            Protocol::Http => Reading::Http(Box::default()),
            Protocol::Tls => Reading::Tls(Hello::default()),
            protocol @ (Protocol::Smtp | Protocol::Imap | Protocol::Pop3) => {
                Reading::Mail(Box::new(Dialogue::new(protocol, facts)))
            }
        };
        Decider { rules: Arc::clone(rules), facts, reading }
    }

    /// Memory taken.
    pub fn memory(&self) -> usize {
        size_of::<Decider>()
            + match &self.reading {
                Reading::Http(request) => request.memory(),
                Reading::Tls(hello) => hello.memory(),
                Reading::Mail(dialogue) => dialogue.memory(),
            }
    }

    /// Takes all bytes of the request so far. Not to be called again once it has decided.
    ///
    /// Mail servers speak first: feed an empty stream as soon as the connection is open, and say the greeting that comes
    /// back. Rules on addresses alone decide then; the server's own greeting goes to the client.
    pub fn feed(&mut self, stream: &[u8]) -> Decision {
        match &mut self.reading {
            Reading::Http(request) => request.feed(&self.rules, &self.facts, stream),
            Reading::Tls(hello) => hello.feed(&self.rules, &self.facts, stream),
            Reading::Mail(dialogue) => dialogue.feed(&self.rules, stream),
        }
    }
}
