//! The commands `check` and `match`, which evaluate rules without a running agent.

use std::fmt::Write as _;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use sluice_rules::{ConnectionFacts, Decider, Decision, RuleSet, Sticky};

/// Checks rules. Returns a summary, and a line for each rule that no request can reach.
///
/// # Errors
/// Returns the mistakes in the rules, one per line.
pub fn check(content: &[u8]) -> Result<String, String> {
    let rules = load(content)?;
    let (protocol, count) = (rules.protocol(), rules.rules().len());
    let mut text = format!("{protocol}: {count} rules, groups {}\n", rules.groups().join(", "));
    for unreachable in rules.unreachable() {
        let rule_name = |rule: &u32| rules.rules()[*rule as usize].as_str();
        let shadowed_by: Vec<_> = unreachable.shadowed_by.iter().map(rule_name).collect();
        let (rule, name) = (unreachable.rule, rule_name(&unreachable.rule));
        let _ = writeln!(
            text,
            "rules[{rule}]: rule {rule} ({name}): no request reaches it: all of its requests are matched by {}",
            shadowed_by.join(", ")
        );
    }
    Ok(text)
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

/// Returns a text that names the rule that matches a request, and the group.
///
/// # Errors
/// Fails if the rules are wrong, or if the request is refused or incomplete.
pub fn decide(content: &[u8], source: IpAddr, service: SocketAddr, request: &[u8]) -> Result<String, String> {
    let rules = Arc::new(load(content)?);
    let facts = ConnectionFacts { source, destination: service.ip(), port: service.port() };
    let mut decider = Decider::new(&rules, facts);
    let rule_name = |rule: Option<u32>| match rule {
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
            Ok(format!("{}: to {}, sticky {sticky}\n", rule_name(route.rule), rules.group(route.group)))
        }
        Decision::Refuse(refusal) => {
            let subject = refusal.rule.map_or_else(|| "the request".to_owned(), |rule| rule_name(Some(rule)));
            Err(format!("{subject}: refused, {} ({})\n", refusal.status, refusal.why))
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

    const SHOP: SocketAddr = SocketAddr::new(IpAddr::V4(std::net::Ipv4Addr::new(203, 0, 113, 80)), 8080);

    #[test]
    fn rules_may_ask_for_the_services_own_address() {
        let rules = br#"{"protocol": "http", "default": {"to": "all"}, "rules": [
            {"name": "own", "match": {"destination": "203.0.113.80", "port": 8080}, "to": "b"}]}"#;
        let source = IpAddr::from([10, 0, 1, 1]);
        let decided = decide(rules, source, SHOP, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_eq!(decided, Ok("rule own: to b, sticky connection\n".to_owned()));
    }

    #[test]
    fn rules_that_no_request_reaches_are_named() {
        let rules = br#"{"protocol": "http", "default": {"to": "all"}, "rules": [
            {"name": "a", "match": {"path": {"prefix": "/a"}}, "to": "b"},
            {"name": "b", "match": {"path": {"prefix": "/a/b"}}, "to": "b"}]}"#;
        let text = check(rules).unwrap();
        let line = "rules[1]: rule 1 (b): no request reaches it: all of its requests are matched by a";
        assert!(text.lines().any(|text_line| text_line == line), "{text}");
    }

    #[test]
    fn a_request_is_taken_by_a_rule() {
        let source = IpAddr::from([10, 0, 1, 1]);
        let decide_path = |path: &str, source| {
            decide(RULES, source, SHOP, format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n").as_bytes())
        };
        assert_eq!(decide_path("/a.gif", source), Ok("rule images: to images, sticky none\n".to_owned()));
        assert_eq!(decide_path("/admin", source), Ok("default: to all, sticky connection\n".to_owned()));
        let refused = decide_path("/admin", IpAddr::from([192, 0, 2, 1])).unwrap_err();
        assert!(refused.starts_with("rule admin: refused, 403"), "{refused}");
        assert!(decide(RULES, source, SHOP, b"GET / HTTP/1.1\r\n").unwrap_err().contains("incomplete"));
    }

    #[test]
    fn mistakes_are_named_with_their_place() {
        assert_eq!(check(RULES).unwrap(), "http: 2 rules, groups all, images\n");
        let wrong = br#"{"protocol": "http", "default": {"to": "all"}, "rules": [{"name": "a", "match": {"path": {"sufix": ".gif"}}, "to": "b"}]}"#;
        let text = check(wrong).unwrap_err();
        assert!(text.contains("rules[0]") && text.contains("sufix"), "{text}");
    }
}
