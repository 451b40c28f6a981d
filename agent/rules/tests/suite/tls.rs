//! Tests of decisions by the ClientHello of TLS.

use std::sync::Arc;

use serde_json::json;
use sluice_rules::{Decision, Forwarding, RuleSet, Sticky};

use crate::common::{decide, feed_all, summary, try_rules};

fn rules() -> Arc<RuleSet> {
    let rules = json!([
        {"name": "none", "match": {"sni": {"present": false}, "alpn": "h2"}, "to": "nameless"},
        {"name": "shop", "match": {"sni": "shop.example"}, "to": "shop", "sticky": "client"},
        {"name": "sub", "match": {"sni": "*.example", "alpn": ["h2", "h3"]}, "to": "h2"},
    ]);
    try_rules("tls", rules).expect("valid rules")
}

fn vector(width: usize, content: &[u8]) -> Vec<u8> {
    [&content.len().to_be_bytes()[8 - width..], content].concat()
}

fn extension(kind: u16, content: &[u8]) -> Vec<u8> {
    [&kind.to_be_bytes()[..], &vector(2, content)].concat()
}

fn sni(name: &str) -> Vec<u8> {
    extension(0, &vector(2, &[&[0][..], &vector(2, name.as_bytes())].concat()))
}

fn alpn(protocols: &[&str]) -> Vec<u8> {
    let list: Vec<u8> = protocols.iter().flat_map(|protocol| vector(1, protocol.as_bytes())).collect();
    extension(16, &vector(2, &list))
}

/// Builds a ClientHello with the version number of TLS 1.2, as in TLS 1.3: it has no session, two cipher suites, no
/// compression, a key share extension of `share` bytes, and then `extensions`.
fn message(share: usize, extensions: &[Vec<u8>]) -> Vec<u8> {
    let key_share = extension(51, &vec![7; share]);
    let all = [&key_share[..], &extensions.concat()].concat();
    let body = [&[3, 3][..], &[9; 32], &[0], &[0, 4, 0x13, 1, 0x13, 2], &[1, 0], &vector(2, &all)].concat();
    [&[1][..], &vector(3, &body)].concat()
}

/// Divides the message into TLS records of `size` bytes.
fn records(message: &[u8], size: usize) -> Vec<u8> {
    message.chunks(size).flat_map(|fragment| [&[22, 3, 1][..], &vector(2, fragment)].concat()).collect()
}

#[test]
fn hello_of_1800_bytes_split_at_every_byte() {
    let hello = message(1740, &[sni("Shop.Example"), alpn(&["h2", "http/1.1"])]);
    assert!(hello.len() > 1800);
    assert_eq!(decide(&rules(), records(&hello, 1 << 14)), "shop");
}

#[test]
fn hello_over_several_records() {
    let hello = message(60, &[alpn(&["http/1.1", "h2"]), sni("a.example.")]);
    for size in 1..60 {
        assert_eq!(summary(&rules(), &feed_all(&rules(), &records(&hello, size))), "h2", "{size}");
    }
    assert_eq!(decide(&rules(), records(&hello, 7)), "h2");
}

#[test]
fn hello_without_a_name() {
    assert_eq!(decide(&rules(), records(&message(0, &[]), 1000)), "all");
    assert_eq!(decide(&rules(), records(&message(0, &[alpn(&["h2"])]), 1000)), "nameless");
    let bare = [&[3, 3][..], &[9; 32], &[0], &[0, 2, 0, 5], &[1, 0]].concat();
    assert_eq!(decide(&rules(), records(&[&[1][..], &vector(3, &bare)].concat(), 1000)), "all");
}

/// With ECH (Encrypted Client Hello), the rules match the unencrypted name, which is that of the outer ClientHello.
#[test]
fn encrypted_hello_is_matched_by_its_outer_name() {
    let ech = extension(0xfe0d, &[0; 200]);
    assert_eq!(decide(&rules(), records(&message(0, &[ech, sni("shop.example")]), 1000)), "shop");
}

#[test]
fn hello_is_forwarded_unchanged() {
    let Decision::Route(route) = feed_all(&rules(), &records(&message(0, &[sni("shop.example")]), 1000)) else {
        panic!("no route")
    };
    assert_eq!((route.rule, route.sticky, route.forwarding), (Some(1), Sticky::Client, Forwarding::Opaque));
}

#[test]
fn what_is_no_hello_is_refused() {
    let rules = rules();
    let broken = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut hello = message(0, &[sni("shop.example")]);
        change(&mut hello);
        records(&hello, 1000)
    };
    let twice = message(0, &[sni("shop.example"), sni("other.example")]);
    for stream in [
        b"GET / HTTP/1.1\r\n".to_vec(),
        b"\x16\x02\x00\x00\x05".to_vec(),
        b"\x16\x03\x01\x00\x00".to_vec(),
        b"\x16\x03\x01\xff\xff".to_vec(),
        b"\x80\x2e\x01\x03\x01".to_vec(),
        broken(&|hello| hello[0] = 2),
        broken(&|hello| hello[3] += 1),
        broken(&|hello| {
            let at = hello.len() - 5;
            hello[at] = 0;
        }),
        records(&twice, 1000),
        records(&message(0, &[sni("")]), 1000),
    ] {
        let stream = if stream.len() > 60 { [stream, vec![22, 3, 1, 0, 1, 0]].concat() } else { stream };
        assert_eq!(decide(&rules, &stream), "400", "{stream:?}");
    }
}

#[test]
fn hello_above_its_limit() {
    let rules = rules();
    let hello = records(&message(16 << 10, &[sni("shop.example")]), 1 << 14);
    assert_eq!(summary(&rules, &feed_all(&rules, &hello)), "400");
    assert_eq!(summary(&rules, &feed_all(&rules, &hello[..16 << 10])), "400");
    assert_eq!(summary(&rules, &feed_all(&rules, &hello[..(16 << 10) - 1])), "more");
}
