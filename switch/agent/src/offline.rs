//! `check` and `match`: rules looked at without an agent.

use std::fmt::Write as _;
use std::net::IpAddr;
use std::sync::Arc;

use sluice_rules::{ConnectionFacts, Decider, Decision, RuleSet, Sticky};

/// What is wrong with rules, a line each; nothing when all is well.
///
/// # Errors
/// The same.
pub fn check(content: &[u8]) -> Result<String, String> {
    let rules = load(content)?;
    let (protocol, count) = (rules.protocol(), rules.rules().len());
    Ok(format!("{protocol}: {count} rules, groups {}\n", rules.groups().join(", ")))
}

fn load(content: &[u8]) -> Result<RuleSet, String> {
    RuleSet::from_json(content).map_err(|problems| {
        problems.iter().fold(String::new(), |mut text, problem| {
            let _ = write!(text, "{}: {}", problem.path, problem.message);
            if !problem.remedy.is_empty() {
                let _ = write!(text, "; {}", problem.remedy);
            }
            text.push('\n');
            text
        })
    })
}

/// Which rule takes a request.
///
/// # Errors
/// When the rules are wrong, or the request is refused or incomplete.
pub fn decide(content: &[u8], source: IpAddr, request: &[u8]) -> Result<String, String> {
    let rules = Arc::new(load(content)?);
    let facts = ConnectionFacts { source, destination: [192, 0, 2, 100].into(), port: 80 };
    let mut decider = Decider::new(&rules, facts);
    let named = |rule: Option<u32>| match rule {
        Some(rule) => format!("rule {}", rules.rules()[rule as usize]),
        None => "default".to_owned(),
    };
    match decider.feed(request) {
        Decision::Route(route) => {
            let sticky = match route.sticky {
                Sticky::Connection => "connection",
                Sticky::Client => "client",
                Sticky::None => "none",
            };
            Ok(format!("{}: to {}, sticky {sticky}\n", named(route.rule), rules.group(route.group)))
        }
        Decision::Refuse(refusal) => {
            let who = refusal.rule.map_or_else(|| "the request".to_owned(), |rule| named(Some(rule)));
            Err(format!("{who}: refused, {} ({})\n", refusal.status, refusal.why))
        }
        Decision::NeedMore { .. } => Err("the request is incomplete\n".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: &[u8] = br#"{"protocol": "http", "default": {"to": "all"}, "rules": [
        {"name": "images", "match": {"path": {"suffix": ".gif"}}, "to": "images", "sticky": "none"},
        {"name": "admin", "match": {"path": {"prefix": "/admin"}, "source": "!10.0.0.0/8"}, "refuse": 403}]}"#;

    #[test]
    fn a_request_is_taken_by_a_rule() {
        let source = IpAddr::from([10, 0, 1, 1]);
        let asked =
            |path: &str, source| decide(RULES, source, format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n").as_bytes());
        assert_eq!(asked("/a.gif", source), Ok("rule images: to images, sticky none\n".to_owned()));
        assert_eq!(asked("/admin", source), Ok("default: to all, sticky connection\n".to_owned()));
        let refused = asked("/admin", IpAddr::from([192, 0, 2, 1])).unwrap_err();
        assert!(refused.starts_with("rule admin: refused, 403"), "{refused}");
        assert!(decide(RULES, source, b"GET / HTTP/1.1\r\n").unwrap_err().contains("incomplete"));
    }

    #[test]
    fn mistakes_are_named_with_their_place() {
        assert_eq!(check(RULES).unwrap(), "http: 2 rules, groups all, images\n");
        let wrong = br#"{"protocol": "http", "default": {"to": "all"}, "rules": [{"name": "a", "match": {"path": {"sufix": ".gif"}}, "to": "b"}]}"#;
        let text = check(wrong).unwrap_err();
        assert!(text.contains("rules[0]") && text.contains("sufix"), "{text}");
    }
}
