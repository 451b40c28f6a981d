//! The `content:` block: the fuzzer's bytes are its JSON. Whether accepted rules decide about a request must not depend
//! on the size of the pieces in which the request arrives. Rules that are reported as unreachable must exist.

use std::sync::Arc;

use super::outcome;
use sluice_rules::RuleSet;

const REQUESTS: [&[u8]; 3] = [
    b"GET /a/b.gif?q=5 HTTP/1.1\r\nHost: www.shop.example\r\nCookie: a=b\r\n\r\n",
    b"POST /a HTTP/1.1\r\nHost: a\r\nContent-Type: text/xml\r\nContent-Length: 17\r\n\r\n<a><b>7</b>x</a> ",
    b"EHLO a\r\nMAIL FROM:<a@b>\r\nRCPT TO:<c@d>\r\n",
];

/// Loads one input of the fuzzer as rules.
pub fn run(data: &[u8]) {
    let Ok(rules) = RuleSet::from_json(data) else { return };
    let rules = Arc::new(rules);
    for unreachable in rules.unreachable() {
        assert!((unreachable.rule as usize) < rules.rules().len());
    }
    for request in REQUESTS {
        assert_eq!(outcome(&rules, request, request.len()).is_some(), outcome(&rules, request, 1).is_some());
    }
}
