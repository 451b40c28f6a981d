//! The value forms of a `match`: the conditions that can be written for a field.

use std::net::IpAddr;

use ipnet::IpNet;
use regex::bytes::{Regex, RegexBuilder};
use serde_json::Value;

use crate::config::Mapping;
use crate::field::Kind;
use crate::number::{Compare, number};
use crate::test::{Branch, Matcher, Net, Test};

/// A mistake in a value form: its place relative to the field, what is wrong, and what to write instead.
pub(crate) struct Mistake {
    pub place: String,
    pub message: String,
    pub remedy: String,
}

fn mistake<T>(message: impl Into<String>, remedy: impl Into<String>) -> Result<T, Mistake> {
    Err(Mistake { place: String::new(), message: message.into(), remedy: remedy.into() })
}

fn at<T>(place: &str, result: Result<T, Mistake>) -> Result<T, Mistake> {
    result.map_err(|m| Mistake { place: format!("{place}{}", m.place), ..m })
}

const FORMS: &str = "write a text, a number, a list, or a mapping with exact, prefix, suffix, contains, regex, present, not, \
                     >, >=, <, <=, = or !=";

/// Parses a value form into conditions. All conditions must hold; a condition holds if one of its branches holds.
pub(crate) fn conditions(kind: Kind, value: &Value) -> Result<Vec<Vec<Branch>>, Mistake> {
    match kind {
        Kind::Address => addresses(value),
        _ => Ok(vec![branches(kind, value)?]),
    }
}

/// Parses addresses and networks. One of those without `!` must contain the connection's address, and none of those
/// with `!`.
fn addresses(value: &Value) -> Result<Vec<Vec<Branch>>, Mistake> {
    let (mut any, mut conditions) = (Vec::new(), Vec::new());
    for (place, item) in items(value) {
        let Some(text) = item.as_str() else {
            return at(&place, mistake("an address is expected", "write 10.0.0.0/8, or \"!10.0.0.0/8\" for any other"));
        };
        let (negated, text) = text.strip_prefix('!').map_or((false, text), |rest| (true, rest.trim()));
        let test = Test::Is(Matcher::Net(at(&place, net(text))?));
        match negated {
            true => conditions.push(vec![Branch { negated, test }]),
            false => any.push(Branch { negated, test }),
        }
    }
    if !any.is_empty() {
        conditions.insert(0, any);
    }
    if conditions.is_empty() {
        mistake("the list is empty", "write at least one network, such as 10.0.0.0/8")
    } else {
        Ok(conditions)
    }
}

fn net(text: &str) -> Result<Net, Mistake> {
    let parsed = text.parse::<IpNet>().or_else(|_| text.parse::<IpAddr>().map(IpNet::from));
    let Ok(parsed) = parsed else {
        return mistake(format!("'{text}' is no address"), "write an address or a network, such as 10.0.0.0/8");
    };
    Net::new(parsed).map_or_else(
        || mistake(format!("'{text}' has bits beyond its prefix"), format!("write {}", parsed.trunc())),
        Ok,
    )
}

/// Returns the entries of a list with their places in the list, or the value itself if it is not a list.
fn items(value: &Value) -> Vec<(String, &Value)> {
    match value {
        Value::Array(list) => list.iter().enumerate().map(|(i, item)| (format!("[{i}]"), item)).collect(),
        _ => vec![(String::new(), value)],
    }
}

/// Parses a list of value forms, of which one must hold.
fn branches(kind: Kind, value: &Value) -> Result<Vec<Branch>, Mistake> {
    let mut branches = Vec::new();
    for (place, item) in items(value) {
        branches.push(at(&place, branch(kind, item))?);
    }
    if branches.is_empty() { mistake("the list is empty, so that nothing matches", FORMS) } else { Ok(branches) }
}

fn branch(kind: Kind, value: &Value) -> Result<Branch, Mistake> {
    let Value::Object(mapping) = value else {
        return Ok(Branch { negated: false, test: scalar(kind, value)? });
    };
    if let Some(value) = mapping.get("present") {
        return at(".present", presence(mapping, value));
    }
    if mapping.len() == 1
        && let Some(inner) = mapping.get("not")
    {
        let test = at(".not", positive(kind, inner))?;
        return Ok(Branch { negated: true, test });
    }
    Ok(Branch { negated: false, test: all(kind, mapping)? })
}

fn presence(mapping: &Mapping, value: &Value) -> Result<Branch, Mistake> {
    match value {
        _ if mapping.len() > 1 => mistake("present stands with other forms", "write present alone, or leave it out"),
        Value::Bool(is_present) => Ok(Branch { negated: !is_present, test: Test::All(Vec::new()) }),
        _ => mistake("present is neither true nor false", "write {present: true} or {present: false}"),
    }
}

/// Parses the form below `not`. The test holds if any entry of the form holds; an entry must not contain another `not`.
fn positive(kind: Kind, value: &Value) -> Result<Test, Mistake> {
    let mut tests = Vec::new();
    for branch in branches(kind, value)? {
        if branch.negated {
            return mistake("a not, or present: false, stands within a not", "write it without both");
        }
        tests.push(branch.test);
    }
    Ok(any(tests))
}

fn any(mut tests: Vec<Test>) -> Test {
    if tests.len() == 1 { tests.remove(0) } else { Test::Any(tests) }
}

/// Parses a mapping. The test holds if the same value satisfies all keys of the mapping.
fn all(kind: Kind, mapping: &Mapping) -> Result<Test, Mistake> {
    let mut tests = Vec::new();
    for (key, value) in mapping {
        let place = format!(".{key}");
        if key == "not" {
            tests.push(Test::Not(Box::new(at(&place, positive(kind, value))?)));
            continue;
        }
        let mut entries = Vec::new();
        for (index, item) in items(value) {
            entries.push(Test::Is(at(&format!("{place}{index}"), keyed(kind, key, item))?));
        }
        if entries.is_empty() {
            return at(&place, mistake("the list is empty, so that nothing matches", FORMS));
        }
        tests.push(any(entries));
    }
    if tests.is_empty() {
        return mistake("the mapping is empty", FORMS);
    }
    if tests.len() == 1 { Ok(tests.remove(0)) } else { Ok(Test::All(tests)) }
}

fn keyed(kind: Kind, key: &str, value: &Value) -> Result<Matcher, Mistake> {
    if let Some((compare, "")) = Compare::split(key) {
        return bound(compare, &plain(value).unwrap_or_default());
    }
    let Some(text) = plain(value) else {
        return match key {
            "exact" | "prefix" | "suffix" | "contains" | "regex" => {
                mistake("a text is expected", format!("write {{{key}: TEXT}}"))
            }
            _ => mistake(format!("'{key}' is no value form"), FORMS),
        };
    };
    match key {
        "exact" => Ok(Matcher::Exact(literal(kind, TextPosition::Whole, text)?)),
        "prefix" => Ok(Matcher::Prefix(literal(kind, TextPosition::Head, text)?)),
        "suffix" => Ok(Matcher::Suffix(literal(kind, TextPosition::Tail, text)?)),
        "contains" => Ok(Matcher::Contains(literal(kind, TextPosition::Inner, text)?)),
        "regex" => Ok(Matcher::Regex(regex(kind, &text)?)),
        _ => mistake(format!("'{key}' is no value form"), FORMS),
    }
}

/// Returns the text of a string, number or boolean.
fn plain(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(bool) => Some(bool.to_string()),
        _ => None,
    }
}

/// Parses a form without a mapping: a number, a comparison, a host name that begins with `*.`, or the exact text.
fn scalar(kind: Kind, value: &Value) -> Result<Test, Mistake> {
    let Some(text) = plain(value) else { return mistake("a value is missing", FORMS) };
    if value.is_number() {
        return Ok(Test::Is(bound(Compare::Equal, &text)?));
    }
    if let Some((compare, rest)) = Compare::split(&text) {
        return Ok(Test::Is(bound(compare, rest)?));
    }
    if let (Kind::HostName, Some(domain)) = (kind, text.strip_prefix('*')) {
        if !domain.starts_with('.') {
            return mistake(format!("'{text}' is no host name"), "write *.example.com for all names below example.com");
        }
        return Ok(Test::Is(Matcher::Suffix(literal(kind, TextPosition::Tail, domain.to_owned())?)));
    }
    Ok(Test::Is(Matcher::Exact(literal(kind, TextPosition::Whole, text)?)))
}

fn bound(compare: Compare, text: &str) -> Result<Matcher, Mistake> {
    match number(text.as_bytes()) {
        Some(bound) => Ok(Matcher::Number(compare, bound)),
        None => mistake(format!("'{}' is no number", text.trim()), "write \"> 5000\", or {exact: TEXT} for a text"),
    }
}

/// The part of a value with which a text is compared.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TextPosition {
    Whole,
    Head,
    Tail,
    Inner,
}

/// Converts a text of a rule to the case of the field's values. A text that can match no value, or that matches every
/// value, is a mistake.
fn literal(kind: Kind, text_position: TextPosition, text: String) -> Result<Box<[u8]>, Mistake> {
    let bytes = match kind {
        Kind::Caseless | Kind::HostName => text.to_ascii_lowercase(),
        _ => text,
    };
    let never = |remedy: String| mistake(format!("'{bytes}' can never match"), remedy);
    let from_start = matches!(text_position, TextPosition::Whole | TextPosition::Head);
    match kind {
        _ if bytes.is_empty() && text_position != TextPosition::Whole => {
            return mistake("an empty text matches every value", "write {present: true}");
        }
        Kind::Path if from_start && !bytes.starts_with('/') && bytes != "*" => return never(format!("write /{bytes}")),
        Kind::Path if bytes.contains("//") => {
            return never("write one slash: paths are matched in their normal form".into());
        }
        Kind::Path if bytes.contains("/./") || bytes.contains("/../") => {
            return never("write the path without dot segments: paths are matched in their normal form".into());
        }
        Kind::Path if bytes.contains('?') => {
            return never("match the part behind ? by query, or all of it by url".into());
        }
        Kind::Method if text_position == TextPosition::Whole && bytes.bytes().any(|b| b.is_ascii_lowercase()) => {
            return never(format!("write {}: methods have a case", bytes.to_ascii_uppercase()));
        }
        Kind::HostName
            if text_position == TextPosition::Whole && bytes.contains([':', '/']) && !bytes.starts_with('[') =>
        {
            return never("write the name alone, without scheme and port".into());
        }
        _ => {}
    }
    Ok(bytes.into_bytes().into_boxed_slice())
}

/// The size limit of a compiled regular expression, in bytes.
const REGEX_SIZE: usize = 1 << 20;

fn regex(kind: Kind, text: &str) -> Result<Regex, Mistake> {
    let caseless = matches!(kind, Kind::Caseless | Kind::HostName);
    let expression = if caseless { format!("(?i){text}") } else { text.to_owned() };
    let built = RegexBuilder::new(&expression).size_limit(REGEX_SIZE).build();
    built.or_else(|error| {
        let text = error.to_string();
        let reason = text.rsplit("error: ").next().unwrap_or(&text).trim().to_owned();
        mistake(reason, "write an expression of the regex crate's syntax: no look-around, no back-references")
    })
}
