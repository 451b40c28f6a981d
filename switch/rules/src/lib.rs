//! The rules of a content switch (Chow, Wang & Prakash: LCS): bytes of a request in, the group of servers out.
//!
//! The crate knows no socket, no clock and no thread. An agent takes connections and asks:
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
//! assert_eq!(decider.feed(&request[..20]), Decision::NeedMore { say: vec![] });
//! let Decision::Route(route) = decider.feed(request) else { panic!("the request is complete") };
//! assert_eq!((route.rule, rules.group(route.group)), (Some(0), "images"));
//! ```
//!
//! # For an agent
//! 1. [`RuleSet::from_json`] reads the `content:` block, or returns every [`Problem`] with its place and remedy. A connection
//!    keeps its `Arc<RuleSet>`; a reload makes a new one.
//! 2. [`Decider::new`] for each connection. Mail protocols: feed an empty stream at once, for the server speaks first.
//! 3. [`Decider::feed`] with *all* bytes of the request so far, whenever some are new. It copies none and reads none twice.
//!    - [`Decision::NeedMore`]: say `say` (often empty), wait.
//!    - [`Decision::Route`]: open the group, hand on the bytes as [`HandOn`] says. [`Route::sticky`] says for how long.
//!    - [`Decision::Refuse`]: say [`Refusal::say`], close.
//! 4. `sticky: none`, or [`Route::guarded`]: [`RequestFramer`] says where the request ends, [`ResponseFramer`] where its
//!    response does. Then a new [`Decider`] takes the next request.
//! 5. A timeout is the caller's: [`RuleSet::refusal`] with 408 has the words.
//!
//! # How rules are asked
//! The first alternative that holds decides. Its number is found by indexes over values, not by a scan: hashes for whole
//! texts, nested intervals for prefixes, suffixes and networks, sorted thresholds for numbers, and an automaton of the
//! literals that expressions need. Expressions without a literal are tried together, by an automaton of bounded memory. A request's body is read only while a rule that can still win asks about it.
//!
//! # What is matched
//! Matching looks at a normal form, and the bytes go on as they came. What two readers might read differently is refused
//! with 400: it is never guessed. Names of hosts and mail addresses have no case. A missing value satisfies nothing but
//! `not` and `present: false`. Numbers are decimal, compared as 64-bit floating point; a text that is none satisfies no
//! comparison.
//!
//! | field | value |
//! |---|---|
//! | `path` | decoded, without `;parameters`, dot segments and double slashes; `url` is the target as it came |
//! | `host`, `sni` | lower case, without port and last dot; `*.example.com` is any name below it |
//! | `query`, `form`, `cookie`, `header` | every value of the name; one must satisfy the form |
//! | `xml` | `purchase:1.item:2.subTotal`: names as written, with their prefix; indices from 1, none for any; `\\.` is a dot |
//! | `json` | `order.items.0.price`: indices from 0; `*`, or nothing, for any element |
//! | `source`, `destination` | networks; all with `!` must not hold, and one of the others must |
//! | `helo`, `mail_from`, `rcpt_to` | lower case; the first recipient decides |
//!
//! A body is read as its `Content-Type` says: XML, JSON or a form (`application/x-www-form-urlencoded`), in which a value may be
//! an XML document. JSON is UTF-8, and a name that rules ask for comes once in an object. What comes behind the value that decides is
//! not read, but for JSON where a rule refuses. A document in a character set that is not understood is refused where a rule may
//! refuse it. Forms in several parts, XML attributes and the content of mails are not read.
#![forbid(unsafe_code)]

mod blocks;
mod body;
mod charset;
mod chunked;
mod compile;
mod config;
mod decide;
mod decision;
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
mod run;
mod test;
mod tls;
mod values;

pub use config::{Content, Else, EncodedSlash, Limits, Protocol, Refuse, Rule, Size, Sticky, Target};
pub use decide::Decider;
pub use decision::{Decision, HandOn, Route};
pub use facts::ConnectionFacts;
pub use framing::{Body, Broken, Method, Reach, Request, RequestFramer};
pub use mail::{Followed, Follower, Replay, Replayed};
pub use problem::Problem;
pub use reach::Unreachable;
pub use refusal::Refusal;
pub use response::{Response, ResponseFramer};
pub use ruleset::{GroupId, RuleSet};
