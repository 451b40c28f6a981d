//! The rules of a content switch (Chow, Wang & Prakash: LCS): they map the bytes of a request to a group of servers.
//!
//! The crate uses no socket, clock or thread. An agent accepts the connections and calls the crate:
//!
//! ```
//! use std::sync::Arc;
//! use sluice_rules::{ConnectionFacts, Decider, Decision, RuleSet};
//!
//! let content = br#"{
//!     "protocol": "http",
//!     "default": {"to": "all"},
//!     "rules": [
//!         {"name": "images", "match": {"path": {"suffix": ".gif"}}, "to": "images", "sticky": "none"},
//!         {"name": "big", "match": {"xml": {"purchase:1.item:2.subTotal": "> 5000"}}, "to": "fast"}
//!     ]
//! }"#;
//! let rules = Arc::new(RuleSet::from_json(content).expect("valid rules"));
//! let facts = ConnectionFacts {
//!     source: "10.0.1.7".parse().unwrap(),
//!     destination: "10.0.0.100".parse().unwrap(),
//!     port: 80,
//! };
//! let mut decider = Decider::new(&rules, facts);
//! let request = b"GET /logo.gif HTTP/1.1\r\nHost: shop.example\r\n\r\n";
//! assert_eq!(decider.feed(&request[..20]), Decision::NeedMore { reply: vec![] });
//! let Decision::Route(route) = decider.feed(request) else { panic!("the request is complete") };
//! assert_eq!((route.rule, rules.group(route.group)), (Some(0), "images"));
//! ```
//!
//! # Use by an agent
//! 1. [`RuleSet::from_json`] reads the `content:` block, or returns its mistakes, each as a [`Problem`] with place and
//!    remedy. A connection uses its `Arc<RuleSet>` until it ends; a reload creates a new rule set.
//! 2. [`Decider::new`] creates a decider for each connection. For mail protocols, the agent passes an empty slice to it
//!    immediately; the decision contains the greeting for the client.
//! 3. [`Decider::feed`] receives *all* bytes of the request so far, whenever new bytes arrive. It copies no byte and
//!    parses no byte twice.
//!    - [`Decision::NeedMore`]: the agent sends `reply` (often empty) to the client, and waits.
//!    - [`Decision::Route`]: the agent connects to the group, and forwards the bytes as [`Forwarding`] specifies, for
//!      the requests that [`Route::sticky`] specifies.
//!    - [`Decision::Refuse`]: the agent sends [`Refusal::reply`], and closes the connection.
//! 4. With `sticky: none` or [`Route::guarded`], [`RequestFramer`] finds the end of the request, and
//!    [`ResponseFramer`] the end of its response. Then a new [`Decider`] reads the next request.
//! 5. The caller measures timeouts; [`RuleSet::refusal`] with status 408 returns the bytes to send after a timeout.
//!
//! # How rules are evaluated
//! The `match` of a rule is one alternative or a list of alternatives. In the order of the rules, the first alternative
//! that holds decides. It is found by indexes of values, not by a scan: hashes for exact texts, nested intervals for
//! prefixes, suffixes and networks, sorted thresholds for numbers, and an automaton of the literals that regular
//! expressions require. Expressions without such a literal are matched together, by an automaton of bounded memory. A
//! request's body is parsed only while a rule that can still decide has a condition on the body.
//!
//! # What is matched
//! Rules match a normal form, and the server receives the original bytes. A request that two parsers might read
//! differently is refused with 400. Host names and mail addresses are case-insensitive. A missing value satisfies only
//! `not` and `present: false`. Numbers are decimal, compared as 64-bit floating point; a text that is not a number
//! satisfies no comparison.
//!
//! | field | value |
//! |---|---|
//! | `path` | decoded, without `;parameters`, dot segments and double slashes; `url` is the unchanged request target |
//! | `host`, `sni` | lower case, without port and trailing dot; `*.example.com` matches any name below it |
//! | `query`, `form`, `cookie`, `header` | each value of the name; one of them must satisfy the form |
//! | `xml` | `purchase:1.item:2.subTotal`: names as written, with their prefix; indices from 1; without an index, any element; `\\.` is a dot |
//! | `json` | `order.items.0.price`: indices from 0; `*`, or no step, for any element |
//! | `source`, `destination` | networks: those with `!` must not contain the address, and one of the others must |
//! | `helo`, `mail_from`, `rcpt_to` | lower case; the first recipient decides |
//!
//! The `Content-Type` selects how a body is parsed: as XML, JSON or a form (`application/x-www-form-urlencoded`), in
//! which a value may be an XML document. JSON must be UTF-8, and an object must not repeat a name that rules compare.
//! Parsing ends at the value that decides; JSON is parsed to its end if a rule may refuse the request. A document in a
//! character set that the parsers do not understand is refused if a rule may refuse it. Multipart forms, XML attributes
//! and the content of mails are not parsed.
#![forbid(unsafe_code)]

mod blocks;
mod body;
mod charset;
mod chunked;
mod compile;
mod config;
mod decide;
mod decision;
mod evaluation;
mod expressions;
mod facts;
mod field;
mod forms;
mod framing;
mod guards;
mod http;
mod index;
mod literals;
mod mail;
#[cfg(test)]
mod naive;
mod number;
mod paths;
mod problem;
#[cfg(test)]
mod random;
mod reach;
mod refusal;
mod request;
mod response;
mod ruleset;
mod test;
mod tls;
mod values;

pub use config::{Content, Else, EncodedSlash, Limits, Protocol, Refuse, Rule, Size, Sticky, Target};
pub use decide::Decider;
pub use decision::{Decision, Forwarding, Route};
pub use facts::ConnectionFacts;
pub use framing::{Body, Broken, Method, Reach, Request, RequestFramer};
pub use mail::{DialogueGuard, GuardVerdict, Replay, ReplayStatus};
pub use problem::Problem;
pub use reach::Unreachable;
pub use refusal::Refusal;
pub use response::{Response, ResponseFramer};
pub use ruleset::{GroupId, RuleSet};
