//! Guarding rule sets, in which a rule may refuse a request by its content. Then no request may reach a server before
//! the rules have read it.

use crate::Problem;
use crate::config::{Content, Protocol, Sticky};
use crate::facts::{ConnectionFacts, enter_facts};
use crate::field::{Field, FieldId};
use crate::mail::sasl;
use crate::ruleset::{Action, Alternative, RuleSet};
use crate::values::Values;

/// The maximum number of refusing rules for which the agent checks whether they can apply to a client's address. If
/// there are more such rules, the check is omitted, and one of them is assumed to apply.
const MAX_CHECKED_RULES: usize = 64;

impl RuleSet {
    /// Returns whether the content of a request may lead to its refusal. Leading rules with conditions on addresses
    /// alone do not count, because they decide about a connection before its first request.
    pub fn guards(&self) -> bool {
        let has_content_condition = |alt: &Alternative| alt.conds.iter().any(|cond| !self.is_fact(cond.field));
        let first = self.alternatives.iter().find(|alt| has_content_condition(alt)).map(|alt| alt.rule);
        self.refusing.last().zip(first).is_some_and(|(&refusing, first)| refusing >= first)
    }

    /// Returns whether the content of a request may lead to its refusal, on a connection with these addresses.
    pub(crate) fn guards_against(&self, facts: &ConnectionFacts) -> bool {
        if !self.guards() {
            return false;
        }
        let mut values = Values::default();
        enter_facts(self, facts, &mut values);
        self.refusing.len() > MAX_CHECKED_RULES || self.refusing.iter().any(|&rule| self.may_refuse(rule, &values))
    }

    fn is_fact(&self, field: FieldId) -> bool {
        matches!(self.fields[field.0 as usize], Field::Source | Field::Destination | Field::Port)
    }

    /// Returns whether a rule can refuse a request of a connection with these addresses.
    fn may_refuse(&self, rule: u32, values: &Values) -> bool {
        let first = self.alternatives.partition_point(|alt| alt.rule < rule);
        let alternatives = || self.alternatives[first..].iter().take_while(|alt| alt.rule == rule);
        let facts_hold = |alt: &Alternative| {
            let mut facts = alt.conds.iter().filter(|cond| self.is_fact(cond.field));
            facts.all(|cond| cond.holds(values.of(cond.field, values.len())))
        };
        let must_match = |alt: &Alternative| facts_hold(alt) && alt.conds.iter().all(|cond| self.is_fact(cond.field));
        let (action, miss) = (self.actions[rule as usize], self.misses[rule as usize]);
        matches!(action, Action::Refuse(_)) && alternatives().any(facts_hold)
            || matches!(miss, Some(Action::Refuse(_))) && !alternatives().any(must_match)
    }
}

/// Returns a problem for each configured option that would let requests bypass refusing rules.
pub(crate) fn problems(content: &Content, rules: &RuleSet) -> Vec<Problem> {
    if !rules.guards() {
        return Vec::new();
    }
    let refusing = rules.refusing.first().map_or("", |&rule| &rules.names[rule as usize]);
    let mut problems = Vec::new();
    for (path, rule) in remembering(content) {
        let message = format!("{rule}a remembered client bypasses the rules, and rule '{refusing}' refuses");
        problems.push(Problem { path, message, remedy: "write sticky: connection".to_owned() });
    }
    for (index, offer) in content.offer.iter().enumerate() {
        if let Some((hiding, remedy)) = hides(content.protocol, offer) {
            let message = format!("behind {hiding} nothing can be read, and rule '{refusing}' refuses");
            problems.push(Problem { path: format!("offer[{index}]"), message, remedy: remedy.to_owned() });
        }
    }
    problems
}

/// Returns the configuration path of each `sticky: client`, by which a decision applies to a client's later
/// connections, with a prefix for the message about this path.
fn remembering(content: &Content) -> Vec<(String, String)> {
    let default = (content.default.sticky == Sticky::Client).then(|| ("default.sticky".to_owned(), String::new()));
    let rules = content.rules.iter().enumerate().flat_map(|(index, rule)| {
        let otherwise = rule.otherwise.as_ref().and_then(|otherwise| otherwise.sticky);
        [("sticky", rule.sticky), ("else.sticky", otherwise)]
            .into_iter()
            .filter(|(_, sticky)| *sticky == Some(Sticky::Client))
            .map(move |(key, _)| (format!("rules[{index}].{key}"), format!("rule {index} ({}): ", rule.name)))
    });
    default.into_iter().chain(rules).collect()
}

/// Returns the word of an offered extension (its name or an authentication mechanism) that hides the rest of a dialogue
/// from the rules, and what to write instead. None if the offer hides nothing.
fn hides(protocol: Protocol, offer: &str) -> Option<(&str, &'static str)> {
    let mut words = offer.split([' ', '=']);
    let extension = words.next().unwrap_or_default();
    let is = |name: &str| extension.eq_ignore_ascii_case(name);
    let mut hidden = |readable: fn(&str) -> bool| words.find(|mechanism| !readable(mechanism));
    let is_plain = |mechanism: &str| mechanism.eq_ignore_ascii_case("PLAIN");
    match protocol {
        _ if ["STARTTLS", "STLS", "COMPRESS", "UNAUTHENTICATE"].into_iter().any(is) => {
            Some((extension, "leave it out, or leave the refusing rules to a service of their own"))
        }
        Protocol::Smtp if is("AUTH") => hidden(|mechanism| sasl::is_readable(mechanism.as_bytes()))
            .map(|mechanism| (mechanism, "offer mechanisms without a security layer, such as AUTH PLAIN LOGIN")),
        Protocol::Imap if is("AUTH") => hidden(is_plain).map(|mechanism| (mechanism, "offer AUTH=PLAIN alone")),
        Protocol::Pop3 if is("SASL") => hidden(is_plain).map(|mechanism| (mechanism, "offer SASL PLAIN alone")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::facts::ConnectionFacts;
    use crate::ruleset::RuleSet;

    /// Returns whether the rules may refuse any client's request by its content, and whether they may refuse a request
    /// of the client 10.0.1.7 by its content.
    fn guards(rules: &Value) -> (bool, bool) {
        let content = json!({"protocol": "http", "default": {"to": "d"}, "rules": rules}).to_string();
        let rules = RuleSet::from_json(content.as_bytes()).unwrap_or_else(|e| panic!("{content}: {e:?}"));
        let [source, destination] = ["10.0.1.7", "10.0.0.100"].map(|text| text.parse().expect("an address"));
        (rules.guards(), rules.guards_against(&ConnectionFacts { source, destination, port: 80 }))
    }

    #[test]
    fn rules_that_refuse_by_request_content() {
        let (path, net) = (json!({"path": "/a"}), json!({"source": "10.0.0.0/8"}));
        let others = json!({"source": "!10.0.0.0/8"});
        let inside = json!({"path": "/a", "source": "10.0.0.0/8"});
        let outside = json!({"path": "/a", "source": "!10.0.0.0/8"});
        for (rules, expected) in [
            (json!([]), (false, false)),
            (json!([{"name": "a", "match": path, "to": "x"}]), (false, false)),
            (json!([{"name": "a", "match": path, "refuse": 403}]), (true, true)),
            (json!([{"name": "a", "match": path, "to": "x", "else": {"refuse": 403}}]), (true, true)),
            (json!([{"name": "a", "match": path, "to": "x"}, {"name": "b", "refuse": 403}]), (true, true)),
            (json!([{"name": "a", "match": inside, "refuse": 403}]), (true, true)),
            (json!([{"name": "a", "match": outside, "refuse": 403}]), (true, false)),
            // The addresses decide about the complete connection, because no earlier rule depends on the content.
            (
                json!([{"name": "a", "match": others, "refuse": 403}, {"name": "b", "match": path, "to": "x"}]),
                (false, false),
            ),
            (json!([{"name": "a", "match": net, "to": "x", "else": {"refuse": 403}}]), (false, false)),
            // The addresses decide about single requests only, because an earlier rule depends on the path.
            (
                json!([{"name": "b", "match": path, "to": "x"}, {"name": "a", "match": others, "refuse": 403}]),
                (true, false),
            ),
            (
                json!([{"name": "b", "match": path, "to": "x"}, {"name": "a", "match": net, "refuse": 403}]),
                (true, true),
            ),
            (
                json!([{"name": "b", "match": path, "to": "x"}, {"name": "a", "match": net, "to": "x", "else": {"refuse": 403}}]),
                (true, false),
            ),
        ] {
            assert_eq!(guards(&rules), expected, "{rules}");
        }
    }
}
