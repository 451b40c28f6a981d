//! Bodies: XML, JSON and forms, in one piece or chunks.

use serde_json::json;
use sluice_rules::{Body, Decider, Decision, HandOn};

use crate::common::{decide, facts, http, pieces, post, short, try_rules, whole};

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

/// Each level of arrays may or may not be a step of the path: 10^7 ways to each element here, which are one place.
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
    // Of half a surrogate pair servers make different things.
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

/// What servers may read in two ways is refused where it is asked for; elsewhere it is passed over.
#[test]
fn json_that_is_no_utf_8() {
    let rules = http(json!([{"name": "r", "match": {"json": {"a": "x"}}, "to": "yes"}]));
    let request = |body: &[u8]| {
        let head = "POST / HTTP/1.1\r\nHost: shop\r\nContent-Type: application/json\r\nContent-Length";
        [format!("{head}: {}\r\n\r\n", body.len()).as_bytes(), body].concat()
    };
    assert_eq!(decide(&rules, request(b"{\"a\": \"\xff\"}")), "400");
    assert_eq!(decide(&rules, request(b"{\"\xff\": 1}")), "400");
    assert_eq!(decide(&rules, request(b"{\"b\": \"\xff\", \"a\": \"x\"}")), "yes");
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
    let Decision::Route(route) = whole(&rules, request("f\r\n<a><b>7</b></a>\r\n").as_bytes()) else {
        panic!("no route")
    };
    let HandOn::Http(framing) = route.hand_on else { panic!("opaque") };
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
        short(&rules, &whole(&rules, format!("{head}{body}").as_bytes()))
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
    let Decision::Route(route) = whole(&rules, request("/h").as_bytes()) else { panic!("no route") };
    let HandOn::Http(framing) = route.hand_on else { panic!("opaque") };
    assert!(framing.expects_continue, "the server says 100");

    let mut decider = Decider::new(&rules, facts());
    let mut stream = request("/b").into_bytes();
    let say = b"HTTP/1.1 100 Continue\r\n\r\n".to_vec();
    assert_eq!(decider.feed(&stream), Decision::NeedMore { say }, "the agent says 100");
    assert_eq!(decider.feed(&stream), Decision::NeedMore { say: vec![] }, "once");
    stream.extend_from_slice(b"{\"a\": 1}");
    assert_eq!(short(&rules, &decider.feed(&stream)), "body");
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
        std::sync::Arc::new(sluice_rules::RuleSet::from_json(content.to_string().as_bytes()).expect("valid rules"))
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

/// The number of the length arrives in two segments (Chow, Wang & Prakash, section 4.1), at every offset.
#[test]
fn digits_of_the_length_split() {
    let rules = http(json!([{"name": "r", "match": {"xml": {"a": "7"}}, "to": "yes"}]));
    let request = post(XML, "<a>7</a>    ");
    let digits = request.find("Content-Length").expect("a length");
    for offset in digits..digits + 20 {
        assert_eq!(short(&rules, &pieces(&rules, request.as_bytes(), [offset].into_iter())), "yes");
    }
}
