//! Tests header unions and stacks of header unions.

use crate::common::{Switch, json};
use serde_json::{Value, json};

/// Returns the bytes of a union's short header in the packet.
fn short(value: u8) -> Vec<u8> {
    vec![1, value]
}

fn long(kind: u8, value: u8) -> Vec<u8> {
    vec![kind, 0, 0, value]
}

/// Builds a packet of `unions.p4`: the operation `what`, the number of items, the program's answer, the union `one`,
/// the items, and bytes that the program does not parse.
fn frame(what: u8, answer: u8, single: &[u8], items: &[Vec<u8>]) -> Vec<u8> {
    [&[what, items.len() as u8, answer], single, &items.concat(), b"rest"].concat()
}

/// Sends a packet with `before` (the union `one` and the items), and expects `after`. The packet's `count` field must
/// not change.
fn check(s: &mut Switch, what: u8, before: (&[u8], &[Vec<u8>]), after: (u8, &[u8], &[Vec<u8>])) {
    let mut expected = frame(what, after.0, after.1, after.2);
    expected[1] = before.1.len() as u8;
    assert_eq!(s.one(0, &frame(what, 0, before.0, before.1)), expected, "{what}: {before:?}");
}

#[test]
fn at_most_one_header_of_a_union_is_valid() {
    for mut s in Switch::both("unions") {
        let items = [long(3, 7), short(8)];
        check(&mut s, 0, (&short(5), &items), (0, &short(5), &items));
        check(&mut s, 0, (&long(2, 5), &items), (0, &long(2, 5), &items));
        check(&mut s, 0, (&[], &items), (0, &[], &items));
        let replaced = [2, 0xab, 0xcd, 0xef];
        check(&mut s, 1, (&short(5), &items), (0, &replaced, &items));
        check(&mut s, 1, (&long(2, 5), &items), (0, &replaced, &items));
        check(&mut s, 1, (&[], &[]), (0, &replaced, &[]));
        check(&mut s, 7, (&short(5), &items), (0, &[], &items));
        check(&mut s, 7, (&long(2, 5), &items), (0, &long(2, 5), &items));
    }
}

#[test]
fn assignment_copies_the_validity() {
    for mut s in Switch::both("unions") {
        let items = [short(6), long(3, 7)];
        check(&mut s, 2, (&short(5), &items), (0, &long(3, 7), &items));
        check(&mut s, 2, (&long(2, 5), &[short(6), short(7)]), (0, &short(7), &[short(6), short(7)]));
        check(&mut s, 2, (&short(5), &items[..1]), (0, &[], &items[..1]));
        check(&mut s, 8, (&short(5), &items), (0, &short(5), &[short(0x55), long(3, 7), short(6)]));
        let swapped = [long(3, 7), short(6)];
        check(&mut s, 8, (&short(5), &swapped), (0, &short(5), &[short(0x55), short(6), long(3, 7)]));
    }
}

#[test]
fn validity_and_equality() {
    for mut s in Switch::both("unions") {
        for (single, item, equal) in [
            (short(5), short(5), true),
            (short(5), short(6), false),
            (long(2, 5), long(2, 5), true),
            (long(2, 5), long(3, 5), false),
            (short(5), long(2, 5), false),
        ] {
            let (items, answer) = ([item], if equal { 1 } else { 2 });
            check(&mut s, 5, (&single, &items), (answer, &single, &items));
        }
        check(&mut s, 5, (&[], &[]), (1, &[], &[]));
        check(&mut s, 5, (&short(1), &[]), (2, &short(1), &[]));
        check(&mut s, 6, (&short(1), &[]), (1, &short(1), &[]));
        check(&mut s, 6, (&long(2, 1), &[]), (1, &long(2, 1), &[]));
        check(&mut s, 6, (&[], &[]), (2, &[], &[]));
    }
}

#[test]
fn push_and_pop_move_unions() {
    for mut s in Switch::both("unions") {
        let items = [long(3, 1), short(2), long(3, 3)];
        check(&mut s, 3, (&[], &items), (0, &[], &items[1..]));
        check(&mut s, 3, (&[], &items[..1]), (0, &[], &[]));
        check(&mut s, 4, (&[], &items), (0, &[], &items[..1]));
    }
}

/// An item that does not fit into the stack ends the parser. The remaining items are not parsed and are sent unchanged.
#[test]
fn a_full_stack_ends_the_parser() {
    for mut s in Switch::both("unions") {
        let items: Vec<_> = (0..4).map(|i| long(3, i)).collect();
        check(&mut s, 0, (&short(5), &items), (0, &short(5), &items));
    }
}

/// Assigns and compares unions by primitives. p4c's current version generates operations on single headers instead.
#[test]
fn unions_are_assigned_and_compared() {
    let mut program: Value = serde_json::from_slice(&json("unions")).unwrap();
    let pair = |kind: &str, names: [&str; 2]| names.map(|name| json!({"type": kind, "value": name}));
    let parameters = pair("header_union", ["one", "items[1]"]);
    let actions = program["actions"].as_array_mut().unwrap();
    let assigns = |a: &&mut Value| a["primitives"][0]["parameters"][0]["value"] == "one.short";
    let action = actions.iter_mut().filter(|a| a["primitives"][0]["op"] == "assign_header").find(assigns).unwrap();
    action["primitives"] = json!([{"op": "assign_union", "parameters": parameters}]);
    let [left, right] = pair("header_union", ["one", "items[0]"]);
    let conditions = program["pipelines"][0]["conditionals"].as_array_mut().unwrap();
    let compares = |c: &&mut Value| c["expression"]["value"]["op"] == "and";
    conditions.iter_mut().find(compares).unwrap()["expression"]["value"] =
        json!({"op": "==", "left": left, "right": right});
    for mut s in Switch::both_of(&program) {
        let items = [short(6), long(3, 7)];
        check(&mut s, 2, (&short(5), &items), (0, &long(3, 7), &items));
        check(&mut s, 2, (&short(5), &items[..1]), (0, &[], &items[..1]));
        check(&mut s, 5, (&short(6), &items), (1, &short(6), &items));
        check(&mut s, 5, (&short(5), &items), (2, &short(5), &items));
        // On BMv2, a union without a valid header is not equal to any union.
        check(&mut s, 5, (&[], &[]), (2, &[], &[]));
    }
}
