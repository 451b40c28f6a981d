//! Tests of decisions by bodies: XML, JSON and forms, sent with a length and in chunks.

use std::sync::Arc;

use serde_json::{Value, json};
use sluice_rules::{Body, Decider, Decision, Forwarding, RuleSet};

use crate::common::{decide, facts, feed_all, feed_pieces, http, post, summary, try_rules};

const XML: &str = "application/soap+xml; charset=utf-8";
const JSON: &str = "application/json";
const FORM: &str = "application/x-www-form-urlencoded";

fn xml(path: &str, value: &str, body: &str) -> String {
    let rules = http(json!([{"name": "r", "match": {"xml": {path: {"exact": value}}}, "to": "yes"}]));
    decide(&rules, post(XML, body))
}

#[test]
fn values_of_xml() {
    for (value, body) in [
        ("CCL", "<?xml version=\"1.0\"?><!-- > --><a><b>CCL</b></a>"),
        ("CCL", "<a><b><![CDATA[C]]>C<!-- x -->L</b></a>"),
        ("a]]b]", "<a><b><![CDATA[a]]b]]]></b></a>"),
        ("<&>\u{fc}", "<a><b>&lt;&amp;&gt;&#xfc;</b></a>"),
        ("&lt;", "<a><b><![CDATA[&lt;]]></b></a>"),
        ("x y", "<a c='>' d=\"/>\"><b e='1'>\n x y </b></a>"),
        ("", "<a><b/></a>"),
        ("12", "<a><b>1<c>9</c>2</b></a>"),
        ("z", "\u{feff}<a><b>x</b><b>z</b></a>"),
        ("CCL", "<a><?p >?><b>CCL</b ></a >"),
    ] {
        assert_eq!(xml("a.b", value, body), "yes", "{body}");
        assert_eq!(xml("a:1.c", value, body), "all", "{body}");
    }
    assert_eq!(xml("a", "x", "<a>\u{c}x</a>"), "all", "a form feed is no white space (XML 1.0, production 3)");
}

#[test]
fn other_encodings_of_ascii_keep_their_bytes() {
    let rules = http(json!([{"name": "r", "match": {"xml": {"a": {"regex": "(?-u)^<\\xfc>$"}}}, "to": "yes"}]));
    let head = "POST / HTTP/1.1\r\nHost: shop\r\nContent-Type: text/xml\r\nContent-Length: 16\r\n\r\n";
    assert_eq!(decide(&rules, [head.as_bytes(), b"<a>&lt;\xfc&gt;</a>"].concat()), "yes");
}

/// A comment ends only at `-->`, regardless of how the body is divided into pieces.
#[test]
fn comments_of_xml_end_where_they_end() {
    for comment in [
        "<!---x->y-->",
        "<!-- - -> -->",
        "<!-->-->",
        "<!--->-->",
        "<!---->",
        "<!-- -- > --->",
        "<!---x-->",
        "<!----x->-->",
    ] {
        let hidden = format!("<a>{comment}<b>1</b></a>");
        assert_eq!(xml("a.b", "1", &hidden), "yes", "{hidden}");
        let text = comment.strip_suffix("-->").expect("a comment");
        let hidden = format!("<a>{text}<b>1</b>--></a>");
        assert_eq!(xml("a.b", "1", &hidden), "all", "{hidden}");
    }
}

#[test]
fn names_of_xml() {
    assert_eq!(xml("s:Envelope.s:Body:1.x", "1", "<s:Envelope><s:Body><x>1</x></s:Body></s:Envelope>"), "yes");
    assert_eq!(xml("Envelope.Body.x", "1", "<s:Envelope><s:Body><x>1</x></s:Body></s:Envelope>"), "all");
    assert_eq!(xml("a\\.b", "1", "<a.b>1</a.b>"), "yes");
    assert_eq!(xml("a.b", "1", "<c><a><b>1</b></a></c>"), "all");
}

#[test]
fn xml_that_is_refused() {
    let deep = "<a>".repeat(33);
    for body in [
        "<!DOCTYPE a [<!ENTITY x \"1\">]><a><b>&x;</b></a>",
        "<!DOCTYPE a><a/>",
        "<!doctype a><a/>",
        "<a><b>&x;</b></a>",
        "<a><b>&#0;</b></a>",
        "<a><b>&amp</b></a>",
        "<a></b>",
        "<a><b></a></b>",
        "</a>",
        "<a><b>",
        "<a",
        "< a/>",
        "<>",
        "<a <b/>",
        "\u{c}<a/>",
        "<a\u{c}/>",
        "<a></a\u{c}>",
        "text",
        "<![CDATA[x]]>",
        &deep,
    ] {
        assert_eq!(xml("a.b", "9", body), "400", "{body}");
    }
    assert_eq!(xml("a.b", "9", &format!("{}{}", "<a>".repeat(32), "</a>".repeat(32))), "all");
}

#[test]
fn values_of_json() {
    let order =
        r#"{"order": {"items": [{"price": 10, "id": "x\u00fc\n"}, {"price": 20.5}], "paid": true, "note": null}}"#;
    for (path, value, group) in [
        ("order.items.0.price", json!("= 10"), "yes"),
        ("order.items.1.price", json!("= 10"), "all"),
        ("order.items.price", json!("> 20"), "yes"),
        ("order.items.*.price", json!("> 20"), "yes"),
        ("order.items.price", json!("> 21"), "all"),
        ("order.items.id", json!("x\u{fc}\n"), "yes"),
        ("order.paid", json!(true), "yes"),
        ("order.note", json!("null"), "yes"),
        ("order", json!({"present": true}), "all"),
        ("order.missing", json!({"present": false}), "yes"),
        ("items.0.price", json!("= 10"), "all"),
    ] {
        let rules = http(json!([{"name": "r", "match": {"json": {path: value}}, "to": "yes"}]));
        assert_eq!(decide(&rules, post(JSON, order)), group, "{path} {value}");
    }
    let rules = http(json!([{"name": "r", "match": {"json": {"a": 1}}, "to": "yes"}]));
    assert_eq!(decide(&rules, post(JSON, r#"[{"b": 1}, [{"a": 1}]]"#)), "yes");
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert_eq!(decide(&rules, post(JSON, &nested(32))), "all");
    assert_eq!(decide(&rules, post(JSON, &nested(33))), "400");
    for body in ["{", "{\"a\": 2,}", "{'a': 2}", "{\"a\" 2}", "{\"a\": nul}", &"[".repeat(33), "{\"a\": 01}", "1 2"] {
        assert_eq!(decide(&rules, post(JSON, body)), "400", "{body}");
    }
}

/// The path has 9 steps for the 31 levels of nested arrays; a path may omit the step for a level. So there are more
/// than 10^7 ways to assign the steps to levels. The decision must not need memory or time for each of them.
#[test]
fn arrays_in_each_other_do_not_multiply_the_places_of_a_path() {
    let path = format!("a{}", ".*".repeat(9));
    let rules = http(json!([{"name": "r", "match": {"json": {path: "= 2"}}, "to": "yes"}]));
    let ones = vec!["1"; 200].join(",");
    let body = |last: &str| format!("{{\"a\": {}{ones}, {last}{}}}", "[".repeat(31), "]".repeat(31));
    assert_eq!(decide(&rules, post(JSON, &body("1"))), "all");
    assert_eq!(decide(&rules, post(JSON, &body("2"))), "yes");
}

#[test]
fn texts_of_json() {
    let rules = http(json!([{"name": "r", "match": {"json": {"a": {"exact": "\u{e9}/\u{1f600}\t\\"}}}, "to": "yes"}]));
    let member = |text: &str| post(JSON, &format!("{{\"b\": {text}, \"a\": {text}}}"));
    for text in
        [r#""\u00e9\/\ud83d\uDE00\t\\""#, r#""\u00E9\u002f\ud83d\ude00\u0009\u005c""#, "\"\u{e9}/\u{1f600}\\t\\\\\""]
    {
        assert_eq!(decide(&rules, member(text)), "yes", "{text}");
    }
    // Half of a surrogate pair is refused, because servers differ in how they decode it.
    for text in [
        r#""\ud83d""#,
        r#""\ud83d\n""#,
        r#""\ud83dx""#,
        r#""\ude00""#,
        r#""\ud83d\ud83d\ude00""#,
        r#""\x""#,
        r#""\u00g0""#,
    ] {
        assert_eq!(decide(&rules, member(text)), "400", "{text}");
    }
    assert_eq!(decide(&rules, member("\"a\tb\"")), "400");
    assert_eq!(decide(&rules, member("\"a\u{7f}b\"")), "all");
}

/// A byte that is not UTF-8 is refused anywhere except behind the value that decides.
#[test]
fn json_that_is_no_utf_8() {
    let rules = http(json!([{"name": "r", "match": {"json": {"a": "x"}}, "to": "yes"}]));
    let request = |body: &[u8]| {
        let head = "POST / HTTP/1.1\r\nHost: shop\r\nContent-Type: application/json\r\nContent-Length";
        [format!("{head}: {}\r\n\r\n", body.len()).as_bytes(), body].concat()
    };
    for body in [
        &b"{\"a\": \"\xff\"}"[..],
        b"{\"\xff\": 1}",
        b"{\"b\": \"\xff\", \"a\": \"x\"}",
        b"{\"b\": \"\xe2\x82\", \"a\": \"x\"}",
        b"{\"b\": \"\xed\xa0\x80\", \"a\": \"x\"}",
        b"{\"b\": \"\xc0\xaf\", \"a\": \"x\"}",
        b"[\xe2A]",
        b"[\"\xe2\x82",
    ] {
        assert_eq!(decide(&rules, request(body)), "400", "{body:?}");
    }
    assert_eq!(decide(&rules, request(b"{\"a\": \"x\", \"b\": \"\xff\"}")), "yes");
    assert_eq!(decide(&rules, request("{\"b\": \"\u{20ac}\u{1f600}\", \"a\": \"x\"}".as_bytes())), "yes");
}

/// JSON in UTF-16 and JSON with a byte order mark are refused (RFC 8259, section 8.1).
#[test]
fn json_in_other_encodings() {
    let rules = http(json!([{"name": "r", "match": {"json": {"a": "x"}}, "to": "yes"}]));
    let body = r#"{"a": "x"}"#;
    let encoded = |units: Vec<[u8; 2]>| {
        let head = format!(
            "POST / HTTP/1.1\r\nHost: shop\r\nContent-Type: {JSON}\r\nContent-Length: {}\r\n\r\n",
            units.len() * 2
        );
        [head.as_bytes(), &units.concat()].concat()
    };
    assert_eq!(decide(&rules, encoded(body.encode_utf16().map(u16::to_le_bytes).collect())), "400");
    assert_eq!(decide(&rules, encoded(body.encode_utf16().map(u16::to_be_bytes).collect())), "400");
    assert_eq!(decide(&rules, encoded("\u{feff}{}".encode_utf16().map(u16::to_le_bytes).collect())), "400");
    assert_eq!(decide(&rules, post(JSON, &format!("\u{feff}{body}"))), "400");
}

#[test]
fn json_whose_type_names_a_character_set() {
    let rule = json!({"name": "r", "match": {"json": {"a": "x"}}, "to": "yes"});
    let refusing = json!({"name": "n", "match": {"json": {"a": "y"}}, "refuse": 403});
    let (routing, refusing) = (http(json!([rule])), http(json!([rule, refusing])));
    let elsewhere = http(json!([{"name": "n", "match": {"xml": {"a": "y"}}, "refuse": 403}]));
    let request = |parameters: &str| post(&format!("{JSON}{parameters}"), r#"{"a": "x"}"#);
    for parameters in ["; charset=utf-8", ";charset=\"UTF-8\"", "; a=b ; Charset = utf8", "; charset=US-ASCII", "; v=1"]
    {
        assert_eq!(decide(&refusing, request(parameters)), "yes", "{parameters}");
    }
    for parameters in ["; charset=utf-16", ";charset=\"ISO-8859-1\"", "; charset=", "; charset=utf-8; charset=utf-7"] {
        assert_eq!(decide(&routing, request(parameters)), "all", "{parameters}");
        assert_eq!(decide(&refusing, request(parameters)), "415", "{parameters}");
        assert_eq!(decide(&elsewhere, request(parameters)), "all", "{parameters}");
    }
    let empty = post(&format!("{JSON}; charset=utf-16"), "");
    assert_eq!(decide(&refusing, empty), "all");
}

/// A duplicate name is refused, because some servers use its first value, others the last, and others none. Bytes
/// behind the value that decides are not parsed, so a duplicate there is not found.
#[test]
fn a_name_of_json_that_comes_twice() {
    let rules = http(json!([{"name": "r", "match": {"json": {"a.b": "x", "c": {"present": true}}}, "to": "yes"}]));
    for (body, group) in [
        (r#"{"a": {"b": "y", "b": "x"}, "c": 1}"#, "400"),
        (r#"{"a": {"b": "x", "b": "x"}, "c": 1}"#, "400"),
        (r#"{"a": {"b": "x", "\u0062": "y"}, "c": 1}"#, "400"),
        (r#"{"a": {"b": [], "b": {}}, "c": 1}"#, "400"),
        // A duplicate name on the path to the value: a server may merge the two objects, or use only the last.
        (r#"{"a": {"b": "x"}, "a": {}, "c": 1}"#, "400"),
        (r#"{"a": 1, "a": {"b": "x"}, "c": 1}"#, "400"),
        (r#"[{"a": {}, "z": {"z": []}, "a": {}}]"#, "400"),
        // Duplicates are allowed if no rule compares the name, and equal names are allowed in different objects.
        (r#"{"z": 1, "a": {"z": 1, "b": "x", "z": 2}, "z": 2, "b": 1, "b": 2, "c": 1}"#, "yes"),
        (r#"[{"a": {"b": "y"}}, {"a": {"b": "x"}, "c": 1}]"#, "yes"),
        (r#"{"a": [{"b": "y"}, {"b": "x"}], "c": 1}"#, "yes"),
        (r#"{"a": {"b": "x", "c": 1, "a": 2}, "c": 1}"#, "yes"),
        (r#"{"a": {"b": "x"}, "c": 1, "c": 2, "a": {"#, "yes"),
    ] {
        assert_eq!(decide(&rules, post(JSON, body)), group, "{body}");
    }
    let Decision::Refuse(refusal) = feed_all(&rules, post(JSON, r#"{"c": 1, "c": 1}"#).as_bytes()) else {
        panic!("taken")
    };
    assert_eq!(refusal.why, "a JSON name that a rule asks for comes twice");
    // The path with an index (`0.a`) and the path for any element (`a`) select members of the same object. A duplicate
    // `a` in this object is refused; an `a` in another object is no duplicate.
    let rules = http(json!([{"name": "r", "match": {"json": {"0.a": "x", "a": "z"}}, "to": "yes"}]));
    assert_eq!(decide(&rules, post(JSON, r#"[{"a": "x", "0": {"a": "y"}, "a": "x"}]"#)), "400");
    assert_eq!(decide(&rules, post(JSON, r#"[{"a": "x", "0": {"a": "y"}}, {"a": "z"}]"#)), "yes");
}

#[test]
fn values_of_forms() {
    let rules = http(json!([
        {"name": "r", "match": {"form": {"a b": "c&d"}}, "to": "yes"},
        {"name": "s", "match": {"form": {"n": "> 5"}}, "to": "more"},
        {"name": "x", "match": {"xml": {"p.q": "1"}}, "to": "xml"},
    ]));
    for (body, group) in [
        ("a+b=c%26d", "yes"),
        ("x=1&a%20b=c%26d&y", "yes"),
        ("n=6", "more"),
        ("n=5&&=&n", "all"),
        ("", "all"),
        ("doc=%3Cp%3e<q>1</q></p>", "xml"),
        ("doc=+%3Cp><q>2</q></p>&doc=<p><q>1</q></p>", "xml"),
        ("doc=<3+you&n=7", "more"),
        ("doc=x<p><q>1</q></p>", "all"),
    ] {
        assert_eq!(decide(&rules, post(FORM, body)), group, "{body}");
    }
}

#[test]
fn chunked_bodies_are_decoded_to_match() {
    let rules = http(json!([{"name": "r", "match": {"xml": {"a.b": "> 5"}}, "to": "yes"}]));
    let head = "POST / HTTP/1.1\r\nHost: shop\r\nContent-Type: text/xml\r\nTransfer-Encoding: chunked\r\n\r\n";
    let request = |chunks: &str| format!("{head}{chunks}");
    assert_eq!(decide(&rules, request("5\r\n<a><b\r\n2;x=y\r\n>1\r\n9\r\n6</b></a>\r\n0\r\nT: x\r\n\r\n")), "yes");
    assert_eq!(decide(&rules, request("6\r\n<a><b>\r\nz\r\n")), "400");
    assert_eq!(decide(&rules, request("0\r\n\r\n")), "all");
    let Decision::Route(route) = feed_all(&rules, request("f\r\n<a><b>7</b></a>\r\n").as_bytes()) else {
        panic!("no route")
    };
    let Forwarding::Http(framing) = route.forwarding else { panic!("opaque") };
    assert_eq!((framing.head, framing.body), (head.len(), Body::Chunked));
}

#[test]
fn body_is_read_only_while_a_rule_may_win() {
    let rules = http(json!([
        {"name": "a", "match": {"path": "/a", "xml": {"x": "1"}}, "to": "a"},
        {"name": "b", "match": {"path": {"prefix": "/b"}}, "to": "b"},
        {"name": "c", "match": {"xml": {"y:1": "1"}}, "to": "c"},
        {"name": "d", "match": {"path": "/d"}, "to": "d"},
        {"name": "e", "match": {"xml": {"z": "1"}}, "to": "e"},
    ]));
    let decided = |path: &str, body: &str| {
        let head =
            format!("POST {path} HTTP/1.1\r\nHost: shop\r\nContent-Type: text/xml\r\nContent-Length: 1000\r\n\r\n");
        summary(&rules, &feed_all(&rules, format!("{head}{body}").as_bytes()))
    };
    assert_eq!(decided("/b", ""), "b");
    assert_eq!(decided("/a", "<y>1</y><x>"), "more");
    assert_eq!(decided("/a", "<y>1</y><x>1</x>"), "a");
    assert_eq!(decided("/c", "<y>1</y>"), "c");
    assert_eq!(decided("/d", "<y>"), "more");
    assert_eq!(decided("/d", "<y>2</y>"), "d");
    assert_eq!(decided("/x", "<y>2</y>"), "more");
    assert_eq!(decided("/x", "<z>1</z>"), "more");
    assert_eq!(decided("/x", "<z>1</z><y>0</y>"), "e");
}

#[test]
fn absence_is_known_at_the_end() {
    let rules = http(json!([
        {"name": "a", "match": {"xml": {"x": {"not": "1"}, "y": "2"}}, "to": "a"},
        {"name": "b", "match": {"json": {"x": {"present": false}}}, "to": "b"},
    ]));
    assert_eq!(decide(&rules, post("text/xml", "<y>2</y><x>2</x>")), "a");
    assert_eq!(decide(&rules, post("text/xml", "<y>2</y><x>1</x>")), "b");
    assert_eq!(decide(&rules, post(JSON, "{\"x\": 1}")), "all");
}

#[test]
fn other_bodies_have_no_values() {
    let rules = http(json!([
        {"name": "r", "match": {"xml": {"a": {"present": true}}}, "to": "yes"},
        {"name": "n", "match": {"json": {"a": {"present": true}}}, "refuse": 403},
    ]));
    assert_eq!(decide(&rules, post("text/plain", "<a/>")), "all");
    let encoded = post("text/xml", "<a/>").replace("\r\n\r\n", "\r\nContent-Encoding: gzip\r\n\r\n");
    assert_eq!(decide(&rules, encoded), "415");
    assert_eq!(decide(&rules, "GET / HTTP/1.1\r\nHost: shop\r\n\r\n"), "all");
}

#[test]
fn expect_with_a_rule_on_headers_and_on_the_body() {
    let rules = http(json!([
        {"name": "h", "match": {"path": "/h"}, "to": "head"},
        {"name": "b", "match": {"json": {"a": 1}}, "to": "body"},
    ]));
    let request = |path: &str| {
        format!(
            "POST {path} HTTP/1.1\r\nHost: shop\r\nContent-Type: {JSON}\r\nExpect: 100-continue\r\nContent-Length: 8\r\n\r\n"
        )
    };
    let Decision::Route(route) = feed_all(&rules, request("/h").as_bytes()) else { panic!("no route") };
    let Forwarding::Http(framing) = route.forwarding else { panic!("opaque") };
    assert!(framing.expects_continue, "the server says 100");

    let mut decider = Decider::new(&rules, facts());
    let mut stream = request("/b").into_bytes();
    let reply = b"HTTP/1.1 100 Continue\r\n\r\n".to_vec();
    assert_eq!(decider.feed(&stream), Decision::NeedMore { reply }, "the agent says 100");
    assert_eq!(decider.feed(&stream), Decision::NeedMore { reply: vec![] }, "once");
    stream.extend_from_slice(b"{\"a\": 1}");
    assert_eq!(summary(&rules, &decider.feed(&stream)), "body");
}

#[test]
fn body_above_its_limit() {
    let content = |last: serde_json::Value| {
        let content = json!({
            "protocol": "http",
            "limits": {"body": 100},
            "default": {"to": "all"},
            "rules": [{"name": "x", "match": {"xml": {"a.b": "1"}}, "to": "x"}, last],
        });
        Arc::new(RuleSet::from_json(content.to_string().as_bytes()).expect("valid rules"))
    };
    let body = |padding: usize| format!("<a>{}<b>1</b></a>", " ".repeat(padding));
    let rules = content(json!({"name": "y", "match": {"path": "/buy"}, "to": "y"}));
    assert_eq!(decide(&rules, post(XML, &body(80))), "x");
    assert_eq!(decide(&rules, post(XML, &body(100))), "y");
    let rules = content(json!({"name": "y", "match": {"xml": {"a.c": "1"}}, "refuse": 403}));
    assert_eq!(decide(&rules, post(XML, &body(80))), "x");
    assert_eq!(decide(&rules, post(XML, &body(100))), "413");
    assert!(try_rules("http", json!([])).is_ok());
}

/// Returns the largest memory of a decider while it reads a request in segments, as a multiple of `limits.body`. Also
/// returns the decision.
fn memory(rules: Value, media: &str, body: &str) -> (f64, String) {
    const LIMIT: usize = 64 << 10;
    let rules = http(rules);
    let request = post(media, body);
    let mut decider = Decider::new(&rules, facts());
    let mut most = 0;
    for end in (0..request.len()).step_by(1400).chain([request.len()]) {
        match decider.feed(&request.as_bytes()[..end]) {
            Decision::NeedMore { .. } => most = most.max(decider.memory()),
            decision => return (most as f64 / LIMIT as f64, summary(&rules, &decision)),
        }
    }
    (most as f64 / LIMIT as f64, "more".to_owned())
}

/// The memory of a decider stays below 12 times `limits.body`: values may take 4 times the limit, lists reserve up to
/// twice their length, and parsers store incomplete texts. Each body is an extreme case: a name, tag or text as long as
/// the body, as many values as possible, values that several paths select, or the deepest nesting.
#[test]
fn memory_for_a_body_is_bounded() {
    let on = |field: &str, paths: &[&str]| {
        let rule =
            |(n, path): (usize, &&str)| json!({"name": n.to_string(), "match": {field: {*path: "no"}}, "to": "yes"});
        Value::Array(paths.iter().enumerate().map(rule).collect())
    };
    let long = "a".repeat(65_000);
    let deep = |open: &str| open.repeat(32) + &long;
    let wild = ["a", "a.*", "a.*.*", "a.*.*.*"];
    for (rules, media, body) in [
        (on("json", &["a"]), JSON, format!("{{\"{long}\"")),
        (on("json", &["a"]), JSON, format!("{{\"a\": \"{long}")),
        (on("json", &wild), JSON, format!("{{\"a\": [[[{}", "1,".repeat(32_000))),
        (on("json", &wild), JSON, format!("{{\"a\": [[[{}", "\"\",".repeat(21_000))),
        (on("json", &["*.*.*.*.*.*.*.*.a"]), JSON, deep("[")),
        (on("xml", &["a"]), XML, format!("<{long}><b><c")),
        (on("xml", &["a"]), XML, format!("<a>{long}")),
        (on("xml", &["a"]), XML, format!("<a>{}", long.replace("aaaaa", "&lt;b"))),
        (on("xml", &["a.b", "a.b:1", "a.b:2"]), XML, format!("<a>{}", "<b/>".repeat(16_000))),
        (on("xml", &["a.a.a.a"]), XML, deep("<a>")),
        (on("xml", &["a"]), XML, format!("{}<{}", "<aaaaaaa>".repeat(31), "a".repeat(60_000))),
        (on("form", &["a"]), FORM, long.clone()),
        (on("form", &["a"]), FORM, format!("a={long}")),
        (on("form", &["a"]), FORM, "a&".repeat(32_000)),
    ] {
        let (most, decided) = memory(rules, media, &body);
        assert!(most < 12.0, "{most} of the limit for {}", &body[..40]);
        assert!(["more", "all", "400"].contains(&&decided[..]), "{decided} of {}", &body[..40]);
    }
}

/// A body whose values need too much memory is treated like a body above its limit: rules that need later values do not
/// match, and no refusing rule is bypassed.
#[test]
fn values_that_take_too_much() {
    let list = |count: usize| post(JSON, &format!("{{\"a\": [{}1], \"b\": 1}}", "1,".repeat(count)));
    let decided = |rules: &Arc<RuleSet>, count| summary(rules, &feed_all(rules, list(count).as_bytes()));
    let rule = json!({"name": "r", "match": {"json": {"a": "2", "b": 1}}, "to": "yes"});
    let next = json!({"name": "s", "match": {"json": {"b": 1}}, "to": "b"});
    let rules = http(json!([rule, next]));
    assert_eq!(decided(&rules, 20_000), "b");
    assert_eq!(decided(&rules, 20_300), "all");
    let rules = http(json!([rule, next, {"name": "n", "match": {"json": {"b": 2}}, "refuse": 403}]));
    assert_eq!(decided(&rules, 20_000), "b");
    assert_eq!(decided(&rules, 20_300), "413");
}

/// The digits of Content-Length may arrive in two segments (Chow, Wang & Prakash, section 4.1): the decision is the
/// same for every offset of the split.
#[test]
fn digits_of_the_length_split() {
    let rules = http(json!([{"name": "r", "match": {"xml": {"a": "7"}}, "to": "yes"}]));
    let request = post(XML, "<a>7</a>    ");
    let digits = request.find("Content-Length").expect("a length");
    for offset in digits..digits + 20 {
        assert_eq!(summary(&rules, &feed_pieces(&rules, request.as_bytes(), [offset].into_iter())), "yes");
    }
}

/// A server may use the second of two equal names. If a rule may refuse, the document is therefore parsed to its end
/// before it is forwarded.
#[test]
fn json_names_repeated_behind_the_deciding_value() {
    let list = |last: Value| http(json!([{"name": "a", "match": {"json": {"type": "a"}}, "to": "a"}, last]));
    let (guarding, other) = (list(json!({"name": "b", "refuse": 403})), list(json!({"name": "b", "to": "b"})));
    let twice = r#"{"type": "a", "x": [1], "type": "evil"}"#;
    assert_eq!(decide(&guarding, post("application/json", twice)), "400");
    assert_eq!(decide(&other, post("application/json", twice)), "a");
    assert_eq!(decide(&guarding, post("application/json", r#"{"type": "a", "x": [1]}"#)), "a");
    assert_eq!(decide(&guarding, post("application/json", r#"{"type": "b"}"#)), "403");
    let long = format!(r#"{{"type": "a", "x": "{}"}}"#, "x".repeat(70 << 10));
    let of = |rules: &Arc<RuleSet>| summary(rules, &feed_all(rules, post("application/json", &long).as_bytes()));
    assert_eq!((&*of(&guarding), &*of(&other)), ("413", "a"));
}

/// A body that may contain a refused value in a form that is not parsed is answered by 415, but only if an applicable
/// rule refuses by the body.
#[test]
fn bodies_that_hide_what_a_rule_refuses() {
    for (field, media) in [
        ("form", "multipart/form-data; boundary=x"),
        ("xml", "text/xml; charset=utf-16"),
        ("xml", "application/soap+xml; charset=\"UTF-7\""),
        ("json", "application/json; charset=utf-16"),
    ] {
        let on = json!({field: {"role": "admin"}});
        let rules = http(json!([{"name": "a", "match": on, "refuse": 403}]));
        assert_eq!(decide(&rules, post(media, "xx")), "415", "{media}");
        let rules =
            http(json!([{"name": "a", "match": on, "to": "a"}, {"name": "b", "match": {"path": "/x"}, "refuse": 403}]));
        assert_eq!(decide(&rules, post(media, "xx")), "all", "{media}");
    }
    let rules = http(json!([{"name": "a", "match": {"xml": {"role": "admin"}}, "refuse": 403}]));
    for charset in ["utf-8", "UTF8", "iso-8859-1", "Windows-1252"] {
        assert_eq!(
            decide(&rules, post(&format!("text/xml;charset={charset}"), "<role>admin</role>")),
            "403",
            "{charset}"
        );
    }
}
