//! Measures the CPU time of a decision in one thread, without sockets.
//!
//! `cargo run --release -p sluice-rules --example decide -- [--only NAME] [--rules N] [--seconds N] [--json]`
//!
//! All rules of a measurement are of the same kind. There are 1 to 10,000 rules (of expressions without a literal: up
//! to 100). The request matches the first rule, the last rule, or no rule. Then bodies of XML and JSON from 1 KB to 1
//! MB are measured, in which the matched element is at the start, at the end, or absent. Every decision is checked.
//! `--only` selects a single kind of rule, or `xml`, or `json`; `--rules` selects a single number of rules, for a
//! profile. `--seconds` sets the minimum measuring time per decision (0.1 s by default). `--json` prints an object per
//! line, for a report.

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};
use sluice_rules::{ConnectionFacts, Decider, Decision, RuleSet};

struct Settings {
    each: Duration,
    json: bool,
    only: Option<String>,
    rules: Option<usize>,
}

impl Settings {
    fn selects(&self, name: &str) -> bool {
        self.only.as_ref().is_none_or(|only| only == name)
    }
}

/// A kind of rule: the condition of the i-th rule, and a request that only this rule matches.
struct Kind {
    name: &'static str,
    max_rules: usize,
    condition: fn(usize) -> Value,
    request: fn(usize) -> String,
}

fn get(target: &str, host: &str) -> String {
    let agent = "User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0";
    let accept =
        "Accept: text/html,application/xhtml+xml;q=0.9,*/*;q=0.8\r\nAccept-Language: en\r\nAccept-Encoding: gzip";
    format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n{agent}\r\n{accept}\r\nConnection: keep-alive\r\n\r\n")
}

/// Encodes a 7-bit number as seven concatenated texts: `texts[0]` for each bit that is 0, `texts[1]` for each bit that
/// is 1. With two texts of the same length, the requests for all numbers have the same length.
fn spelled(number: usize, texts: [&str; 2]) -> String {
    (0..7).map(|bit| texts[number >> bit & 1]).collect()
}

const KINDS: &[Kind] = &[
    Kind {
        name: "exact",
        max_rules: 10_000,
        condition: |i| json!({"path": format!("/shop/{i}/item.html")}),
        request: |i| get(&format!("/shop/{i}/item.html"), "shop"),
    },
    Kind {
        name: "prefix",
        max_rules: 10_000,
        condition: |i| json!({"path": {"prefix": format!("/shop/{i}/")}}),
        request: |i| get(&format!("/shop/{i}/item.html"), "shop"),
    },
    Kind {
        name: "suffix",
        max_rules: 10_000,
        condition: |i| json!({"path": {"suffix": format!("-{i}.gif")}}),
        request: |i| get(&format!("/shop/images/item-{i}.gif"), "shop"),
    },
    Kind {
        name: "host",
        max_rules: 10_000,
        condition: |i| json!({"host": format!("*.shop{i}.example")}),
        request: |i| get("/", &format!("www.shop{i}.example")),
    },
    Kind {
        name: "number",
        max_rules: 10_000,
        condition: |i| json!({"query": {"total": format!("> {}", 1_000_000 - i)}}),
        request: |i| get(&format!("/buy?total={}.5", 1_000_000 - i), "shop"),
    },
    Kind {
        name: "contains",
        max_rules: 10_000,
        condition: |i| json!({"path": {"contains": format!("/{i}-x/")}}),
        request: |i| get(&format!("/shop/{i}-x/item.html"), "shop"),
    },
    Kind {
        name: "regex",
        max_rules: 10_000,
        condition: |i| json!({"path": {"regex": format!("^/[a-z]+/{i}x[a-z]*\\.html$")}}),
        request: |i| get(&format!("/shop/{i}xitem.html"), "shop"),
    },
    Kind {
        name: "regex without a literal",
        max_rules: 100,
        condition: |i| json!({"path": {"regex": format!("^\\W\\w+\\W{}\\W.+$", spelled(i, ["[a-m]", "[n-z]"]))}}),
        request: |i| get(&format!("/shop/{}/item.html", spelled(i, ["g", "s"])), "shop"),
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

/// A decision whose time is measured repeatedly.
struct Cell {
    rules: Arc<RuleSet>,
    request: Vec<u8>,
    /// The index of the rule that the decision must return; `None` if no rule may match.
    rule: Option<u32>,
    /// The number of decisions per round.
    count: u32,
    /// The shortest time of a decision so far, in nanoseconds: the mean of the fastest round.
    best: f64,
}

/// Returns the CPU time of this thread in nanoseconds.
fn cpu_ns() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

/// The minimum duration of a round in nanoseconds.
const ROUND_NS: f64 = 1e6;
const ROUNDS: usize = 5;

impl Cell {
    fn new(rules: &Arc<RuleSet>, request: String, rule: Option<u32>) -> Cell {
        let mut cell =
            Cell { rules: Arc::clone(rules), request: request.into_bytes(), rule, count: 1, best: f64::INFINITY };
        // The first decisions do not count, because they build lazy structures. Of the later rounds, the fastest
        // counts, because interruptions lengthen the others.
        (0..2).for_each(|_| cell.round());
        cell.best = f64::INFINITY;
        while cell.best * f64::from(cell.count) < ROUND_NS || cell.best.is_infinite() {
            cell.count *= 1 + u32::from(cell.best.is_finite());
            cell.round();
        }
        cell
    }

    fn round(&mut self) {
        let begin = cpu_ns();
        for _ in 0..self.count {
            let mut decider = Decider::new(&self.rules, facts());
            let Decision::Route(route) = decider.feed(black_box(&self.request)) else { panic!("no route") };
            assert_eq!(route.rule, self.rule);
        }
        self.best = self.best.min((cpu_ns() - begin) / f64::from(self.count));
    }
}

/// Returns the shortest time of a decision for each cell, in nanoseconds. The cells are measured in turn, so that a
/// temporary slowdown of the machine affects all of them.
fn measure(mut cells: Vec<Cell>, each: Duration) -> Vec<f64> {
    let (start, feed_all) = (Instant::now(), each * cells.len() as u32);
    for round in 0.. {
        if round >= ROUNDS && start.elapsed() >= feed_all {
            break;
        }
        for cell in &mut cells {
            cell.round();
        }
    }
    cells.into_iter().map(|cell| cell.best).collect()
}

fn report(settings: &Settings, line: &Value, text: &str) {
    if settings.json { println!("{line}") } else { println!("{text}") }
}

fn decisions(settings: &Settings) {
    for kind in KINDS.iter().filter(|kind| settings.selects(kind.name)) {
        let counts = [1, 10, 100, 1_000, 10_000].into_iter().filter(|&count| count <= kind.max_rules);
        let counts: Vec<usize> = counts.filter(|count| settings.rules.is_none_or(|only| only == *count)).collect();
        let (mut cells, mut built) = (Vec::new(), Vec::new());
        for &count in &counts {
            let list = (0..count).map(|i| {
                let mut rule = json!({"name": format!("r{i}"), "to": "x"});
                rule["match"] = (kind.condition)(i);
                rule
            });
            let list = list.collect();
            let build = Instant::now();
            let rules = rules(list);
            built.push(build.elapsed());
            let places = [(0, Some(0)), (count - 1, Some(count as u32 - 1)), (kind.max_rules + 5, None)];
            cells.extend(places.map(|(i, rule)| Cell::new(&rules, (kind.request)(i), rule)));
        }
        let times = measure(cells, settings.each);
        for ((count, built), times) in counts.into_iter().zip(built).zip(times.chunks(3)) {
            let [first, last, none] = times else { unreachable!("three places of each number of rules") };
            let name = kind.name;
            let line = json!({"kind": name, "rules": count, "first_ns": first, "last_ns": last, "none_ns": none});
            let text = format!(
                "{name:24} {count:6} rules: first {first:8.0} ns, last {last:8.0} ns, none {none:8.0} ns; built in {built:.1?}"
            );
            report(settings, &line, &text);
        }
    }
}

/// Builds a document of about `size` bytes; the element that the rule compares comes first or last, or is absent.
fn document(xml: bool, size: usize, place: &str) -> String {
    let item = |i: usize| match xml {
        true => format!("<item><productID>{i}</productID><name>A &amp; B</name><unitPrice>20.50</unitPrice></item>\n"),
        false => {
            format!("{{\"productID\": {i}, \"name\": \"A & B\", \"unitPrice\": 20.50, \"tags\": [\"x\", true]}},\n")
        }
    };
    let total = if xml { "<total>9000</total>" } else { "\"total\": 9000, " };
    let [early, late] = ["early", "late"].map(|target| if place == target { total } else { "" });
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
    for (name, xml, media) in all.into_iter().filter(|(name, ..)| settings.selects(name)) {
        let path = if xml { "purchase.total" } else { "total" };
        let rules = rules(vec![json!({"name": "r", "match": {name: {path: "> 5000"}}, "to": "x"})]);
        let (mut cells, mut bodies) = (Vec::new(), Vec::new());
        for size in [1_000, 10_000, 100_000, 1_000_000] {
            for (place, rule) in [("early", Some(0)), ("late", Some(0)), ("absent", None)] {
                let body = document(xml, size, place);
                let length = body.len();
                let head = format!("POST / HTTP/1.1\r\nHost: shop\r\nContent-Type: {media}\r\n");
                cells.push(Cell::new(&rules, format!("{head}Content-Length: {length}\r\n\r\n{body}"), rule));
                bodies.push((length, place));
            }
        }
        for ((length, place), ns) in bodies.into_iter().zip(measure(cells, settings.each)) {
            let rate = length as f64 / ns * 1e3;
            let line = json!({"body": name, "bytes": length, "place": place, "ns": ns, "mb_per_s": rate});
            let text = format!("{name:4} {length:8} bytes, {place:6}: {ns:10.0} ns, {rate:7.0} MB/s");
            report(settings, &line, &text);
        }
    }
}

fn main() {
    let mut settings = Settings { each: Duration::from_millis(100), json: false, only: None, rules: None };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--json" => settings.json = true,
            "--only" => settings.only = arguments.next(),
            "--rules" => settings.rules = arguments.next().and_then(|text| text.parse().ok()),
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
