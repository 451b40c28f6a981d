//! Time of a decision, one thread, no sockets.
//!
//! `cargo run --release -p sluice-rules --example decide -- [--only NAME] [--seconds N] [--json]`
//!
//! Rules of one kind, 1 to 10,000 of them (expressions without a literal: up to 100); the request matches the first one, the
//! last one, or none. Then bodies of XML and JSON from 1 KB to 1 MB: the rules' element comes early, late, or not at all.
//! Every decision is checked. `--only`: one kind of rule, or `xml`, or `json`. `--json`: one object a line, for a report.

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sluice_rules::{ConnectionFacts, Decider, Decision, RuleSet};

struct Settings {
    each: Duration,
    json: bool,
    only: Option<String>,
}

impl Settings {
    fn wants(&self, name: &str) -> bool {
        self.only.as_ref().is_none_or(|only| only == name)
    }
}

/// A kind of rule: the match of the i-th one, and a request that this one alone matches.
struct Kind {
    name: &'static str,
    most: usize,
    condition: fn(usize) -> Value,
    request: fn(usize) -> String,
}

fn get(target: &str, host: &str) -> String {
    let agent = "User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0";
    let accept =
        "Accept: text/html,application/xhtml+xml;q=0.9,*/*;q=0.8\r\nAccept-Language: en\r\nAccept-Encoding: gzip";
    format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n{agent}\r\n{accept}\r\nConnection: keep-alive\r\n\r\n")
}

const KINDS: &[Kind] = &[
    Kind {
        name: "exact",
        most: 10_000,
        condition: |i| json!({"path": format!("/shop/{i}/item.html")}),
        request: |i| get(&format!("/shop/{i}/item.html"), "shop"),
    },
    Kind {
        name: "prefix",
        most: 10_000,
        condition: |i| json!({"path": {"prefix": format!("/shop/{i}/")}}),
        request: |i| get(&format!("/shop/{i}/item.html"), "shop"),
    },
    Kind {
        name: "suffix",
        most: 10_000,
        condition: |i| json!({"path": {"suffix": format!("-{i}.gif")}}),
        request: |i| get(&format!("/shop/images/item-{i}.gif"), "shop"),
    },
    Kind {
        name: "host",
        most: 10_000,
        condition: |i| json!({"host": format!("*.shop{i}.example")}),
        request: |i| get("/", &format!("www.shop{i}.example")),
    },
    Kind {
        name: "number",
        most: 10_000,
        condition: |i| json!({"query": {"total": format!("> {}", 1_000_000 - i)}}),
        request: |i| get(&format!("/buy?total={}.5", 1_000_000 - i), "shop"),
    },
    Kind {
        name: "contains",
        most: 10_000,
        condition: |i| json!({"path": {"contains": format!("/{i}-x/")}}),
        request: |i| get(&format!("/shop/{i}-x/item.html"), "shop"),
    },
    Kind {
        name: "regex",
        most: 10_000,
        condition: |i| json!({"path": {"regex": format!("^/[a-z]+/{i}x[a-z]*\\.html$")}}),
        request: |i| get(&format!("/shop/{i}xitem.html"), "shop"),
    },
    Kind {
        name: "regex without a literal",
        most: 100,
        condition: |i| json!({"path": {"regex": format!("^\\D+\\d{{{}}}\\D+$", i + 1)}}),
        request: |i| get(&format!("/shop/{}/item.html", "7".repeat(i + 1)), "shop"),
    },
];

fn facts() -> ConnectionFacts {
    ConnectionFacts {
        source: "10.0.1.7".parse().expect("an address"),
        destination: "10.0.0.100".parse().expect("an address"),
        port: 80,
    }
}

fn rules(list: Vec<Value>) -> Arc<RuleSet> {
    let limits = json!({"body": "16MiB"});
    let content = json!({"protocol": "http", "limits": limits, "default": {"to": "all"}, "rules": list});
    Arc::new(RuleSet::from_json(content.to_string().as_bytes()).expect("valid rules"))
}

/// Nanoseconds of a decision, the least of five rounds. The decision must name the rule.
fn measure(rules: &Arc<RuleSet>, request: &[u8], rule: Option<u32>, each: Duration) -> f64 {
    let once = || {
        let Decision::Route(route) = Decider::new(rules, facts()).feed(black_box(request)) else { panic!("no route") };
        assert_eq!(route.rule, rule);
    };
    let (mut best, mut count) = (f64::INFINITY, 1_u32);
    let start = Instant::now();
    let mut rounds = 0;
    while rounds < 5 || start.elapsed() < each {
        let begin = Instant::now();
        (0..count).for_each(|_| once());
        let time = begin.elapsed();
        if time < Duration::from_millis(2) {
            count *= 2;
            continue;
        }
        rounds += 1;
        best = best.min(time.as_secs_f64() * 1e9 / f64::from(count));
    }
    best
}

fn report(settings: &Settings, line: &Value, text: &str) {
    if settings.json { println!("{line}") } else { println!("{text}") }
}

fn decisions(settings: &Settings) {
    for kind in KINDS.iter().filter(|kind| settings.wants(kind.name)) {
        for count in [1, 10, 100, 1_000, 10_000].into_iter().filter(|&count| count <= kind.most) {
            let build = Instant::now();
            let list = (0..count).map(|i| {
                let mut rule = json!({"name": format!("r{i}"), "to": "x"});
                rule["match"] = (kind.condition)(i);
                rule
            });
            let rules = rules(list.collect());
            let built = build.elapsed();
            let last = count as u32 - 1;
            let times = [(0, Some(0)), (count - 1, Some(last)), (kind.most + 5, None)]
                .map(|(i, rule)| measure(&rules, (kind.request)(i).as_bytes(), rule, settings.each));
            let [first, last, none] = times;
            let line = json!({"kind": kind.name, "rules": count, "first_ns": first, "last_ns": last, "none_ns": none});
            let name = kind.name;
            let text = format!(
                "{name:24} {count:6} rules: first {first:8.0} ns, last {last:8.0} ns, none {none:8.0} ns; built in {built:.1?}"
            );
            report(settings, &line, &text);
        }
    }
}

/// A document of about so many bytes; the element that the rule asks about comes first, last, or not at all.
fn document(xml: bool, size: usize, place: &str) -> String {
    let item = |i: usize| match xml {
        true => format!("<item><productID>{i}</productID><name>A &amp; B</name><unitPrice>20.50</unitPrice></item>\n"),
        false => {
            format!("{{\"productID\": {i}, \"name\": \"A & B\", \"unitPrice\": 20.50, \"tags\": [\"x\", true]}},\n")
        }
    };
    let total = if xml { "<total>9000</total>" } else { "\"total\": 9000, " };
    let [early, late] = ["early", "late"].map(|wanted| if place == wanted { total } else { "" });
    let mut items = String::new();
    let mut i = 0;
    while items.len() < size {
        items += &item(i);
        i += 1;
    }
    match xml {
        true => format!("<?xml version=\"1.0\"?><purchase>{early}<items>{items}</items>{late}</purchase>"),
        false => format!("{{{early}\"items\": [{}], {late}\"end\": null}}", items.trim_end_matches(",\n")),
    }
}

fn bodies(settings: &Settings) {
    let all = [("xml", true, "text/xml"), ("json", false, "application/json")];
    for (name, xml, media) in all.into_iter().filter(|(name, ..)| settings.wants(name)) {
        let path = if xml { "purchase.total" } else { "total" };
        let rules = rules(vec![json!({"name": "r", "match": {name: {path: "> 5000"}}, "to": "x"})]);
        for size in [1_000, 10_000, 100_000, 1_000_000] {
            for (place, rule) in [("early", Some(0)), ("late", Some(0)), ("absent", None)] {
                let body = document(xml, size, place);
                let length = body.len();
                let request = format!(
                    "POST / HTTP/1.1\r\nHost: shop\r\nContent-Type: {media}\r\nContent-Length: {length}\r\n\r\n{body}"
                );
                let ns = measure(&rules, request.as_bytes(), rule, settings.each);
                let rate = length as f64 / ns * 1e3;
                let line = json!({"body": name, "bytes": length, "place": place, "ns": ns, "mb_per_s": rate});
                report(
                    settings,
                    &line,
                    &format!("{name:4} {length:8} bytes, {place:6}: {ns:10.0} ns, {rate:7.0} MB/s"),
                );
            }
        }
    }
}

fn main() {
    let mut settings = Settings { each: Duration::from_millis(100), json: false, only: None };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--json" => settings.json = true,
            "--only" => settings.only = arguments.next(),
            "--seconds" => {
                let seconds = arguments.next().and_then(|text| text.parse().ok()).expect("--seconds needs a number");
                settings.each = Duration::from_secs_f64(seconds);
            }
            other => panic!("unknown argument '{other}'"),
        }
    }
    decisions(&settings);
    bodies(&settings);
}
