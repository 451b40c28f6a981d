//! Tests of bodies that a server may decode by another character set than the rules: no such body bypasses a rule that
//! refuses.

use std::sync::Arc;

use serde_json::{Value, json};
use sluice_rules::RuleSet;

use crate::common::{decide, http, post};

const XML: &str = "text/xml";
const FORM: &str = "application/x-www-form-urlencoded";

fn sent(media: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head = format!("POST /buy HTTP/1.1\r\nHost: shop\r\nContent-Type: {media}\r\nContent-Length: {length}\r\n\r\n");
    [head.as_bytes(), body].concat()
}

/// Returns three rule sets. The first refuses the role `admin`. The second and the third route by this role; the third
/// also refuses a path, which the tests' requests do not have.
fn rules(field: &str) -> [Arc<RuleSet>; 3] {
    let role = json!({field: {"role": "admin"}});
    let elsewhere = json!({"name": "b", "match": {"path": "/x"}, "refuse": 403});
    [
        json!([{"name": "a", "match": role, "refuse": 403}]),
        json!([{"name": "a", "match": role, "to": "a"}]),
        json!([{"name": "a", "match": role, "to": "a"}, elsewhere]),
    ]
    .map(http)
}

fn utf16(text: &str, bytes: fn(u16) -> [u8; 2]) -> Vec<u8> {
    text.encode_utf16().flat_map(bytes).collect()
}

fn escaped(document: &[u8]) -> String {
    let escapes: String = document.iter().map(|byte| format!("%{byte:02X}")).collect();
    format!("order={escapes}")
}

const DECLARED_OTHERWISE: [&[u8]; 15] = [
    b"<?xml version=\"1.0\" encoding=\"UTF-16\"?><role>admin</role>",
    b"<?xml version=\"1.0\" encoding=\"UTF-7\"?>+ADw-role+AD4-admin+ADw-/role+AD4-",
    b"<?xml version='1.0' encoding='utf-7'?><a>+ADw-role+AD4-admin+ADw-/role+AD4-</a>",
    b"<?xml version=\"1.0\" encoding=\"IBM037\"?><role>x</role>",
    b"<?xml version=\"1.0\" encoding=\"ISO-2022-JP\"?><role>\x1b(Jadmin\x1b(B</role>",
    b"<?xml version=\"1.0\" encoding=\"HZ-GB-2312\"?><role>x</role>",
    b"<?xml version=\"1.0\" encoding=\"x-unknown\"?><role>x</role>",
    b"\xef\xbb\xbf<?xml version=\"1.0\" encoding=\"UTF-16LE\"?><role>x</role>",
    b"\n<?xml version=\"1.0\" encoding=\"UTF-16\"?><role>x</role>",
    b"<!-- --><?XML encoding=\"utf-16\"?><role>x</role>",
    b"<?xml version=\"1.0\" encoding = \t'utf-16' standalone='yes' ?><role>x</role>",
    b"<?xml version=\"1.0\" encoding=\"utf-8\" encoding=\"utf-16\"?><role>x</role>",
    b"<?xml version=\"1.0\" encoding=\"utf-16?><role>x</role>",
    // The character NEL is a line end and white space in XML 1.1, but not in XML 1.0.
    b"<?xml version=\"1.1\"?><role\xc2\x85>x</role\xc2\x85>",
    // The byte order mark of UTF-8 contradicts the declared character set.
    b"\xef\xbb\xbf<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?><role>x</role>",
];

#[test]
fn xml_that_declares_another_character_set() {
    let [refusing, routing, elsewhere] = rules("xml");
    for body in DECLARED_OTHERWISE {
        let text = String::from_utf8_lossy(body);
        let request = sent(XML, body);
        assert_eq!(decide(&refusing, &request), "415", "{text}");
        assert_eq!(decide(&routing, &request), decide(&elsewhere, &request), "{text}");
        assert_ne!(decide(&routing, &request), "415", "{text}");
    }
    // If no rule refuses, readable text is matched, because some programs label UTF-8 as UTF-16.
    assert_eq!(decide(&routing, sent(XML, DECLARED_OTHERWISE[0])), "a");
}

#[test]
fn xml_that_declares_what_rules_understand() {
    let [refusing, ..] = rules("xml");
    for declaration in [
        "",
        "\u{feff}",
        "<?xml version=\"1.0\"?>",
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>",
        "\u{feff}<?xml version='1.0' encoding='utf8' standalone='no'?>\n",
        "<?xml version=\"1.0\" encoding=\"us-ascii\"?>",
        "<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?>",
        "<?xml version=\"1.0\" encoding=\"windows-1252\"?>",
        "<?xml-stylesheet encoding=\"utf-16\"?>",
        "<?p encoding=\"utf-16\"?>",
    ] {
        let has = |role: &str| decide(&refusing, post(XML, &format!("{declaration}<role>{role}</role>")));
        assert_eq!((&*has("admin"), &*has("user")), ("403", "all"), "{declaration}");
    }
}

/// Rules compare UTF-8. Single-byte character sets encode ASCII characters in the same way as UTF-8, and other
/// characters differently. So if a rule may refuse a body with other characters, the body is refused unless it is UTF-8
/// and nothing declares another character set.
#[test]
fn characters_beyond_ascii_in_xml_of_one_byte_each() {
    let name = |action: Value| {
        let mut rule = json!({"name": "a", "match": {"xml": {"name": "M\u{fc}ller"}}});
        rule.as_object_mut().expect("a rule").extend(action.as_object().expect("an action").clone());
        http(json!([rule]))
    };
    let (refusing, routing) = (name(json!({"refuse": 403})), name(json!({"to": "a"})));
    let latin = b"<name>M\xfcller</name>";
    let declared = [&b"<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?>"[..], latin].concat();
    let utf8 = "<name>M\u{fc}ller</name>".as_bytes();
    let twice = [&b"<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?>"[..], utf8].concat();
    for (media, body) in [
        (XML, latin.to_vec()),
        (XML, declared),
        (XML, twice),
        ("text/xml; charset=iso-8859-1", latin.to_vec()),
        ("text/xml; charset=iso-8859-1", utf8.to_vec()),
        ("text/xml; charset=utf-8", latin.to_vec()),
    ] {
        assert_eq!(decide(&refusing, sent(media, &body)), "415", "{media}");
        assert!(["a", "all"].contains(&&*decide(&routing, sent(media, &body))), "{media}");
    }
    assert_eq!(decide(&refusing, sent(XML, utf8)), "403");
    // The declaration before the deciding value names a character set that is not registered, so servers may decode the
    // value in different ways.
    let refused = b"<a><?xml encoding='latin-1'?><name>x</name></a>";
    assert_eq!(decide(&refusing, sent(XML, refused)), "415");
}

#[test]
fn xml_in_utf_16() {
    let text = "<role>admin</role>";
    for field in ["xml", "form"] {
        let [refusing, ..] = rules("xml");
        for document in [
            utf16(&format!("\u{feff}{text}"), u16::to_le_bytes),
            utf16(&format!("\u{feff}{text}"), u16::to_be_bytes),
            utf16(text, u16::to_le_bytes),
            utf16(text, u16::to_be_bytes),
            utf16(&format!(" {text}"), u16::to_le_bytes),
            b"\x4c\x6f\xa7\x94\x93\x40".to_vec(),
        ] {
            let request =
                if field == "xml" { sent(XML, &document) } else { post(FORM, &escaped(&document)).into_bytes() };
            assert!(["400", "415"].contains(&&*decide(&refusing, &request)), "{field}: {document:?}");
        }
    }
}

#[test]
fn documents_in_forms_are_read_as_those_of_their_own() {
    let [refusing, routing, _] = rules("xml");
    for document in DECLARED_OTHERWISE {
        let request = post(FORM, &escaped(document));
        let text = String::from_utf8_lossy(document);
        assert_eq!(decide(&refusing, &request), "415", "{text}");
        assert_ne!(decide(&routing, &request), "415", "{text}");
    }
    for mark in ["", "\u{feff}", " \u{feff}", "\u{feff}\n"] {
        let request = post(FORM, &escaped(format!("{mark}<role>admin</role>").as_bytes()));
        assert_eq!(decide(&refusing, request), "403", "{mark:?}");
    }
    for text in ["", "\u{feff}", "x", "Lo", "L", "<x", "< 3", "\u{feff}x", "caf\u{e9}"] {
        assert_eq!(decide(&refusing, post(FORM, &escaped(text.as_bytes()))), "all", "{text:?}");
    }
}

#[test]
fn forms_in_another_character_set() {
    for field in ["form", "xml"] {
        let [refusing, routing, elsewhere] = rules(field);
        for charset in ["utf-16", "ibm037", "utf-7", "", "\"IBM500\"", "utf-8; charset=ibm037", "shift_jis"] {
            let request = post(&format!("{FORM}; charset={charset}"), "role=x");
            assert_eq!(decide(&refusing, &request), "415", "{charset}");
            assert_eq!(decide(&routing, &request), "all", "{charset}");
            assert_eq!(decide(&elsewhere, &request), "all", "{charset}");
        }
        let request = post(&format!("{FORM}; charset*=utf-8''ibm037"), "role=x");
        assert_eq!(decide(&refusing, request), "415", "RFC 2231");
    }
    let [refusing, ..] = rules("form");
    for charset in ["UTF-8", "\"utf-8\"", "ISO-8859-1", "windows-1252"] {
        let of = |body: &str| decide(&refusing, post(&format!("{FORM}; charset={charset}"), body));
        assert_eq!((&*of("role=admin"), &*of("role=user&x=%FC")), ("403", "all"), "{charset}");
    }
    let latin = |body: &str| decide(&refusing, post(&format!("{FORM}; charset=iso-8859-1"), body));
    assert_eq!((&*latin("role=%FC"), &*latin("r%FCle=x")), ("415", "415"));
}

#[test]
fn several_parts_may_hide_an_xml_document() {
    let [refusing, routing, elsewhere] = rules("xml");
    for media in [
        "multipart/related; type=\"application/xop+xml\"; boundary=x",
        "Multipart/Mixed; boundary=x",
        "multipart/form-data; boundary=x",
    ] {
        let request = post(media, "--x\r\nContent-Type: text/xml\r\n\r\n<role>admin</role>\r\n--x--\r\n");
        assert_eq!(decide(&refusing, &request), "415", "{media}");
        assert_eq!(decide(&routing, &request), "all", "{media}");
        assert_eq!(decide(&elsewhere, &request), "all", "{media}");
    }
}
