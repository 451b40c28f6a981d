//! Runs packet tests on the engine alone, without sockets. The tests are written in STF, the test format of the p4c
//! repository.
//!
//! `cargo run --release --example stf -- FOLDER [NAME...]`: runs every `NAME.stf` of the folder with its compiled
//! `NAME.json`. An expected packet without a final `$` also matches longer packets, and `*` matches any digit. On every
//! port that the test names, the number of packets must be equal to the expected number.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use sluice_engine::{
    ActionCall, CloneSession, Engine, Entry, EntryAction, KeyField, KeyInfo, MatchKind, Options, Program, Replica,
    TableId,
};

type Result<T> = std::result::Result<T, String>;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let Some((folder, only)) = args.split_first() else {
        eprintln!("usage: stf FOLDER [NAME...]");
        return ExitCode::FAILURE;
    };
    let mut names: Vec<String> = match std::fs::read_dir(folder) {
        Ok(dir) => {
            dir.flatten().filter_map(|e| Some(e.file_name().to_str()?.strip_suffix(".stf")?.to_string())).collect()
        }
        Err(e) => {
            eprintln!("{folder}: {e}");
            return ExitCode::FAILURE;
        }
    };
    names.retain(|n| only.is_empty() || only.contains(n));
    names.sort();
    let (mut passed, mut failed) = (0, 0);
    for name in names {
        match run(Path::new(folder), &name) {
            Ok(()) => passed += 1,
            Err(why) => {
                failed += 1;
                println!("FAIL {name}: {why}");
            }
        }
    }
    println!("{passed} passed, {failed} failed");
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn run(folder: &Path, name: &str) -> Result<()> {
    let read =
        |ext: &str| std::fs::read(folder.join(format!("{name}.{ext}"))).map_err(|e| format!("{name}.{ext}: {e}"));
    let json = read("json")?;
    let text = String::from_utf8(read("stf")?).map_err(|e| e.to_string())?;
    let program = Arc::new(Program::load(&json).map_err(|e| format!("refused: {e}"))?);
    let mut test = Test {
        engine: Engine::new(program.clone(), Options::default()),
        program,
        sent: Vec::new(),
        expected: BTreeMap::new(),
        ports: BTreeSet::new(),
        nodes: Vec::new(),
        groups: BTreeMap::new(),
        time: 0,
    };
    test.engine.set_trace(std::env::var_os("TRACE").is_some());
    for (number, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or("").trim();
        test.line(line).map_err(|e| format!("line {}: {e}", number + 1))?;
        for event in test.engine.take_trace() {
            println!("    {event:?}");
        }
    }
    test.check()
}

struct Test {
    engine: Engine,
    program: Arc<Program>,
    sent: Vec<(u32, Vec<u8>)>,
    /// Expected packets by port; `None` in place of a packet matches any packet.
    expected: BTreeMap<u32, Vec<Option<String>>>,
    ports: BTreeSet<u32>,
    nodes: Vec<(u16, Vec<u32>)>,
    groups: BTreeMap<u32, Vec<Replica>>,
    time: u64,
}

impl Test {
    #[expect(clippy::too_many_lines, reason = "one arm a command of the format")]
    fn line(&mut self, line: &str) -> Result<()> {
        let Some((command, rest)) = line.split_once(char::is_whitespace).or((!line.is_empty()).then_some((line, "")))
        else {
            return Ok(());
        };
        let rest = rest.trim();
        let numbers = || rest.split_whitespace().map(number).collect::<Result<Vec<u64>>>();
        match command.to_lowercase().as_str() {
            "packet" => {
                let (port, data) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
                let port = number(port)? as u32;
                self.ports.insert(port);
                self.time += 1_000_000;
                self.engine.receive(self.time, port, &unhex(data)?, &mut self.sent);
                Ok(())
            }
            "expect" => {
                let (port, data) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
                let port = number(port)? as u32;
                self.ports.insert(port);
                let data: String = data.split_whitespace().collect();
                self.expected.entry(port).or_default().push((!data.is_empty()).then(|| data.to_lowercase()));
                Ok(())
            }
            "add" => self.add(rest),
            "setdefault" => {
                let (table, call) = rest.split_once(char::is_whitespace).ok_or("an action is expected")?;
                let table = self.table(table)?;
                let action = self.action(table, call.trim())?;
                self.engine.table_set_default(table, Some(&action)).map_err(|e| e.to_string())
            }
            "mc_mgrp_create" => {
                self.groups.insert(numbers()?[0] as u32, Vec::new());
                Ok(())
            }
            "mc_node_create" => {
                let n = numbers()?;
                self.nodes.push((n[0] as u16, n[1..].iter().map(|&p| p as u32).collect()));
                Ok(())
            }
            "mc_node_associate" => {
                let n = numbers()?;
                let (rid, ports) = self.nodes.get(n[1] as usize).ok_or("no such node")?;
                let group = self.groups.entry(n[0] as u32).or_default();
                group.extend(ports.iter().map(|&port| Replica { port, instance: *rid }));
                self.engine.multicast_set(n[0] as u32, Some(group)).map_err(|e| e.to_string())
            }
            "mirroring_add" | "mirroring_add_mc" => {
                let n = numbers()?;
                let replicas = match command.ends_with("_mc") {
                    true => self.groups.get(&(n[1] as u32)).cloned().unwrap_or_default(),
                    false => vec![Replica { port: n[1] as u32, instance: 0 }],
                };
                let session = CloneSession { replicas, class_of_service: 0, packet_length_bytes: 0 };
                self.engine.clone_session_set(n[0] as u32, Some(&session)).map_err(|e| e.to_string())
            }
            "register_write" => {
                let words: Vec<&str> = rest.split_whitespace().collect();
                let [name, index, value] = words[..] else { return Err("three words are expected".into()) };
                let register = self.program.register(name).ok_or("no such register")?;
                self.engine
                    .register_write(register, number(index)?, &number(value)?.to_be_bytes())
                    .map_err(|e| e.to_string())
            }
            "wait" | "no_packet" | "mirroring_get" | "register_read" | "counter_read" | "check_counter" | "remove" => {
                Ok(())
            }
            other => Err(format!("the command '{other}' is not supported")),
        }
    }

    /// Returns the table with this name, or else the table whose name ends with this name.
    fn table(&self, name: &str) -> Result<TableId> {
        let full_name = self.program.table(name);
        let by_end = || self.program.tables().find(|t| t.1.name.ends_with(name)).map(|t| t.0);
        full_name.or_else(by_end).ok_or_else(|| format!("no table '{name}'"))
    }

    fn action(&self, table: TableId, call: &str) -> Result<EntryAction> {
        let (name, args) = call.split_once('(').ok_or("an action call is expected")?;
        let info = self.program.table_info(table);
        let named =
            |f: &dyn Fn(&str) -> bool| info.actions.iter().copied().find(|&a| f(&self.program.action_info(a).name));
        let action = named(&|n| n == name)
            .or_else(|| named(&|n| n.ends_with(name)))
            .ok_or_else(|| format!("no action '{name}'"))?;
        let mut values = BTreeMap::new();
        for arg in args.trim_end().trim_end_matches(')').split(',').map(str::trim).filter(|a| !a.is_empty()) {
            let (key, value) = arg.split_once(':').ok_or("name:value is expected")?;
            values.insert(key.trim(), wide(value.trim())?);
        }
        let params = self.program.action_info(action).params.iter();
        let params =
            params.map(|p| values.remove(p.name.as_str()).ok_or_else(|| format!("parameter '{}' is missing", p.name)));
        Ok(EntryAction::Call(ActionCall { action, params: params.collect::<Result<_>>()? }))
    }

    fn add(&mut self, rest: &str) -> Result<()> {
        let open = rest.find('(').ok_or("an action call is expected")?;
        let start = rest[..open].trim_end().rfind(char::is_whitespace).ok_or("an action call is expected")?;
        let (head, call) = (&rest[..start], rest[start..].trim());
        let mut words = head.split_whitespace();
        let table = self.table(words.next().ok_or("a table is expected")?)?;
        let info = self.program.table_info(table).clone();
        let mut priority = 0;
        let mut key: Vec<KeyField> = info.keys.iter().map(any).collect();
        for word in words {
            match word.split_once(':') {
                None => priority = number(word)? as i32,
                Some((name, value)) => {
                    let i = find_key(&info.keys, name).ok_or_else(|| format!("no key field '{name}'"))?;
                    key[i] = key_field(&info.keys[i], value)?;
                }
            }
        }
        let action = self.action(table, call)?;
        let entry = Entry { key, priority, action, metadata: Vec::new(), idle_timeout_ns: 0, cookie: 0 };
        self.engine.table_insert(0, table, &entry).map_err(|e| e.to_string())
    }

    fn check(&self) -> Result<()> {
        for port in &self.ports {
            let sent_frames: Vec<&Vec<u8>> = self.sent.iter().filter(|s| s.0 == *port).map(|s| &s.1).collect();
            let expected = self.expected.get(port).map_or(&[][..], Vec::as_slice);
            if expected == [None] {
                continue;
            }
            if sent_frames.len() != expected.len() {
                return Err(format!(
                    "port {port}: {} packets are expected, {} were sent",
                    expected.len(),
                    sent_frames.len()
                ));
            }
            for (i, (sent_frames, expected)) in sent_frames.iter().zip(expected).enumerate() {
                let Some(expected) = expected else { continue };
                let sent_frames: String = sent_frames.iter().map(|b| format!("{b:02x}")).collect();
                let (digits, strict) = expected.strip_suffix('$').map_or((expected.as_str(), false), |e| (e, true));
                let same = sent_frames.len() >= digits.len()
                    && digits.chars().zip(sent_frames.chars()).all(|(e, g)| e == '*' || e == g);
                if !same || strict && sent_frames.len() != digits.len() {
                    return Err(format!("port {port}, packet {i}:\n  expected {expected}\n  got      {sent_frames}"));
                }
            }
        }
        Ok(())
    }
}

fn find_key(keys: &[KeyInfo], name: &str) -> Option<usize> {
    let name = match name.split_once('$') {
        Some((before, after)) if after.starts_with(|c: char| c.is_ascii_digit()) => {
            let digits = after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len());
            format!("{before}[{}]{}", &after[..digits], &after[digits..])
        }
        _ => name.to_string(),
    };
    let matches = |f: &dyn Fn(&str) -> bool| keys.iter().position(|k| f(&k.name));
    matches(&|k| k == name)
        .or_else(|| matches(&|k| k == format!("{name}$")))
        .or_else(|| matches(&|k| k == format!("{name}.$valid$")))
        .or_else(|| matches(&|k| name.ends_with(".valid") && k == name.replace(".valid", ".$valid$")))
        .or_else(|| matches(&|k| k.ends_with(&format!(".{name}")) || k.ends_with(&format!(".{name}$"))))
        .or_else(|| matches(&|k| name == "valid" && k.ends_with("$valid$")))
}

fn any(k: &KeyInfo) -> KeyField {
    match k.kind {
        MatchKind::Exact => KeyField::Exact(vec![0]),
        _ => KeyField::Optional(None),
    }
}

fn key_field(k: &KeyInfo, text: &str) -> Result<KeyField> {
    Ok(match k.kind {
        MatchKind::Exact => KeyField::Exact(wide(text)?),
        MatchKind::Lpm => match text.split_once('/') {
            Some((v, prefix)) => KeyField::Lpm { value: wide(v)?, prefix_len: number(prefix)? as u32 },
            None => {
                let (digits, bits) = match text.as_bytes() {
                    [b'0', b'x', ..] => (&text[2..], 4),
                    [b'0', b'b', ..] => (&text[2..], 1),
                    _ => return Ok(KeyField::Lpm { value: wide(text)?, prefix_len: k.width }),
                };
                let given_digits = digits.len() - digits.matches('*').count();
                KeyField::Lpm { value: wide(&text.replace('*', "0"))?, prefix_len: (given_digits * bits) as u32 }
            }
        },
        MatchKind::Ternary | MatchKind::Optional => match text.split_once("&&&") {
            Some((v, m)) => KeyField::Ternary { value: wide(v)?, mask: wide(m)? },
            None => {
                let ones = if text.starts_with("0b") { '1' } else { 'f' };
                let (prefix, digits) = text.split_at(2);
                let mask: String = digits.chars().map(|c| if c == '*' { '0' } else { ones }).collect();
                let mut mask = wide(&format!("{prefix}{mask}"))?;
                // The written hexadecimal digits can have more bits than the field, so the bits above the field's width
                // are cleared.
                let bytes = k.width.div_ceil(8) as usize;
                if mask.len() >= bytes && !k.width.is_multiple_of(8) {
                    let at = mask.len() - bytes;
                    mask[at] &= (1 << (k.width % 8)) - 1;
                }
                KeyField::Ternary { value: wide(&text.replace('*', "0"))?, mask }
            }
        },
        MatchKind::Range => {
            let (low, high) = text.split_once("->").or_else(|| text.split_once("..")).unwrap_or((text, text));
            KeyField::Range { low: wide(low)?, high: wide(high)? }
        }
    })
}

fn number(text: &str) -> Result<u64> {
    let bytes = wide(text)?;
    Ok(bytes.iter().fold(0, |v, &b| v << 8 | u64::from(b)))
}

/// Parses a number into big-endian bytes. A hexadecimal number (`0x`) may have any size; a binary (`0b`) or decimal
/// number must be below 2^128.
fn wide(text: &str) -> Result<Vec<u8>> {
    let bad = |_| format!("'{text}' is not a number");
    if let Some(digits) = text.strip_prefix("0x") {
        return unhex(&format!("{}{digits}", if digits.len() % 2 == 1 { "0" } else { "" }));
    }
    let n = match text.strip_prefix("0b") {
        Some(digits) => u128::from_str_radix(digits, 2).map_err(bad)?,
        None => text.parse::<u128>().map_err(bad)?,
    };
    Ok(n.to_be_bytes().to_vec())
}

fn unhex(text: &str) -> Result<Vec<u8>> {
    let digits: String = text.split_whitespace().collect();
    let pair = |i: usize| {
        u8::from_str_radix(digits.get(i..i + 2).unwrap_or("?"), 16)
            .map_err(|_| format!("'{digits}' is not hexadecimal"))
    };
    (0..digits.len()).step_by(2).map(pair).collect()
}
