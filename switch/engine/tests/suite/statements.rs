//! Tests P4 statements and operators that a compiled program runs.

use crate::common::{Switch, json};
use serde_json::{Value, json};
use sluice_engine::TraceEvent;

/// A packet of the program `statements.p4`.
#[derive(Clone, Default, PartialEq, Debug)]
struct Packet {
    what: u8,
    left: Option<[u8; 3]>,
    right: Option<[u8; 3]>,
    items: Vec<u8>,
    /// The contents of the stack `others`. Only packets that the switch sends contain `others`, `copy` and `sum`.
    others: Vec<u8>,
    bytes: Vec<u8>,
    copy: Vec<u8>,
    numbers: Vec<u8>,
    sum: Vec<u8>,
}

impl Packet {
    fn bytes(&self) -> Vec<u8> {
        let validity = u8::from(self.left.is_some()) | u8::from(self.right.is_some()) << 1;
        let pair = |p: Option<[u8; 3]>| p.map_or(vec![], |p| p.to_vec());
        let head = vec![self.what, validity, self.items.len() as u8, self.bytes.len() as u8];
        let pairs = [pair(self.left), pair(self.right)].concat();
        let lists = [&self.items, &self.others, &self.bytes, &self.copy, &self.numbers, &self.sum];
        [head, pairs, lists.map(Vec::as_slice).concat(), b"the payload".to_vec()].concat()
    }
}

/// Sends `before` and expects `after`, except that the first four bytes must be those of `before`.
fn check(s: &mut Switch, before: &Packet, after: &Packet) {
    let (before, mut expected) = (before.bytes(), after.bytes());
    expected[..4].copy_from_slice(&before[..4]);
    assert_eq!(s.one(0, &before), expected, "{after:?}");
}

#[test]
fn headers_are_assigned_with_their_validity() {
    for mut s in Switch::both("statements") {
        let (a, b) = (Some([1, 2, 3]), Some([4, 5, 6]));
        for (left, right) in [(a, b), (a, None), (None, b), (None, None)] {
            let before = Packet { what: 1, left, right, ..Packet::default() };
            check(&mut s, &before, &Packet { left: right, ..before.clone() });
        }
    }
}

#[test]
fn stacks_are_assigned_pushed_and_popped() {
    let mut program: Value = serde_json::from_slice(&json("statements")).unwrap();
    // The primitive `assign_header_stack` assigns a complete stack. p4c's current version generates an assignment for
    // each header instead.
    let stacks = ["others", "items"].map(|name| json!({"type": "header_stack", "value": name}));
    let actions = program["actions"].as_array_mut().unwrap();
    let assigns = |a: &&mut Value| a["primitives"][0]["parameters"][0]["value"] == "others[0]";
    actions.iter_mut().find(assigns).unwrap()["primitives"] =
        json!([{"op": "assign_header_stack", "parameters": stacks}]);
    for mut s in Switch::both("statements").into_iter().chain(Switch::both_of(&program)) {
        for items in [vec![], vec![1], vec![1, 2], vec![1, 2, 3]] {
            let before = Packet { what: 2, items: items.clone(), ..Packet::default() };
            check(&mut s, &before, &Packet { others: items.clone(), ..before.clone() });
            let before = Packet { what: 3, ..before };
            let mut pushed = vec![0x77];
            pushed.extend(&items[..items.len().min(2)]);
            check(&mut s, &before, &Packet { items: pushed, ..before.clone() });
            let before = Packet { what: 4, ..before };
            check(&mut s, &before, &Packet { items: items.get(2..).unwrap_or(&[]).to_vec(), ..before.clone() });
        }
    }
}

#[test]
fn variable_length_fields_are_assigned() {
    for mut s in Switch::both("statements") {
        for length in [0, 1, 3, 8] {
            for what in [5, 10] {
                let before = Packet { what, bytes: (1..=length).collect(), ..Packet::default() };
                check(&mut s, &before, &Packet { copy: before.bytes.clone(), ..before.clone() });
            }
        }
    }
}

#[test]
fn checksums_cover_the_payload() {
    for mut s in Switch::both("statements") {
        // The sum of the packet's `what` and `count` (0x0600) and the words of "the payload". The last word is padded
        // with a zero byte.
        let words = [0x0600, 0x7468, 0x6520, 0x7061, 0x796c, 0x6f61, 0x6400u32];
        let sum: u32 = words.iter().sum();
        let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
        let before = Packet { what: 6, ..Packet::default() };
        check(&mut s, &before, &Packet { sum: sum.to_be_bytes().to_vec(), ..before.clone() });
    }
}

#[test]
fn messages_and_assumptions() {
    let [mut s, mut interpreted] = Switch::both("statements");
    s.engine.set_trace(true);
    let before = Packet { what: 7, items: vec![1, 2], bytes: vec![0; 8], ..Packet::default() };
    check(&mut s, &before, &before);
    let trace = s.engine.take_trace();
    let logged = |e: &TraceEvent| matches!(e, TraceEvent::Log(text) if text == "count 2 of 0, signed 8");
    assert!(trace.iter().any(logged), "{trace:?}");
    s.engine.set_trace(false);
    for s in [&mut s, &mut interpreted] {
        let valid_packet = Packet { what: 8, items: vec![1], ..Packet::default() };
        check(s, &valid_packet, &valid_packet);
        assert_eq!(s.send(0, 1, &Packet { items: vec![1, 2], ..valid_packet }.bytes()), []);
        assert_eq!(s.engine.drops().assertions, 1);
    }
}

#[test]
fn headers_are_compared() {
    for mut s in Switch::both("statements") {
        let equal = |left, right, s: &mut Switch| {
            s.one(0, &Packet { what: 9, left, right, ..Packet::default() }.bytes())[2] == 0xee
        };
        let (a, b) = (Some([1, 2, 3]), Some([1, 2, 4]));
        assert!(equal(a, a, &mut s) && equal(None, None, &mut s));
        assert!(!equal(a, b, &mut s) && !equal(a, None, &mut s) && !equal(None, a, &mut s));
    }
}

/// Returns the bytes of a packet's number fields: `a` and `b` are signed, `c` and `d` are unsigned, `e` is signed with
/// 32 bits, `f` and `g` have 72 bits.
fn numbers(a: i8, b: i8, c: u8, d: u8, e: i32, f: u128, g: u128) -> Vec<u8> {
    let wide = |v: u128| v.to_be_bytes()[7..].to_vec();
    [vec![a as u8, b as u8, c, d], e.to_be_bytes().to_vec(), wide(f), wide(g)].concat()
}

const MAX_72: u128 = (1 << 72) - 1;

#[test]
fn signed_and_saturating_arithmetic() {
    for mut s in Switch::both("statements") {
        for (what, before, after) in [
            (0x81, numbers(100, 27, 200, 55, 0, 1, MAX_72 - 1), numbers(127, 27, 255, 55, 0, MAX_72, MAX_72 - 1)),
            (0x81, numbers(100, 28, 200, 56, 0, 2, MAX_72 - 1), numbers(127, 28, 255, 56, 0, MAX_72, MAX_72 - 1)),
            (0x81, numbers(-100, -28, 1, 2, 0, 3, 4), numbers(-128, -28, 3, 2, 0, 7, 4)),
            (0x81, numbers(-100, -29, 1, 2, 0, 3, 4), numbers(-128, -29, 3, 2, 0, 7, 4)),
            (0x82, numbers(-100, 29, 5, 6, 0, 5, 6), numbers(-128, 29, 0, 6, 0, 0, 6)),
            (
                0x82,
                numbers(100, -28, 6, 5, 0, MAX_72, 1 << 64),
                numbers(127, -28, 1, 5, 0, MAX_72 - (1 << 64), 1 << 64),
            ),
            (0x82, numbers(-1, -1, 0, 0, 0, 0, 0), numbers(0, -1, 0, 0, 0, 0, 0)),
            (0x83, numbers(-128, 127, 0, 9, 0, 0, 0), numbers(-128, 127, 0xc0, 1, -16_256, 0, 0)),
            (0x83, numbers(-128, -128, 0, 9, 0, 0, 0), numbers(-128, -128, 0xc0, 0, 16_384, 0, 0)),
            (0x83, numbers(127, -3, 0, 9, 0, 0, 0), numbers(127, -3, 0x3f, 0, -381, 0, 0)),
            (0x84, numbers(0, 0, 0, 0, 0, 1 << 36, 1 << 35), numbers(0, 0, 0, 0, 0, 1 << 71, (1 << 71) + (1 << 35))),
            (0x84, numbers(0, 0, 0, 0, 0, MAX_72, MAX_72), numbers(0, 0, 0, 0, 0, 1, MAX_72 - 1)),
        ] {
            let before = Packet { what, numbers: before, ..Packet::default() };
            check(&mut s, &before, &Packet { numbers: after, ..before.clone() });
        }
    }
}
