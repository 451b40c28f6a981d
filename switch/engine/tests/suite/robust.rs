//! Checks that no program and no packet causes a panic, and that every refusal states its place in the JSON.

use std::sync::Arc;

use crate::common::{Switch, json, mutate};
use proptest::prelude::*;
use proptest::test_runner::TestRng;
use serde_json::{Value, json};
use sluice_engine::{Engine, Options, Program};

const PROGRAMS: [&str; 5] = ["tables", "selector", "arrays", "paths", "stacks"];

#[test]
fn no_mutated_program_causes_a_panic() {
    let mut rng = TestRng::deterministic_rng(proptest::test_runner::RngAlgorithm::ChaCha);
    // The environment variable `MUTANTS` sets a larger number of changed programs, for a longer search.
    let mutants: usize = std::env::var("MUTANTS").ok().and_then(|n| n.parse().ok()).unwrap_or(200);
    let mut accepted = 0;
    for name in PROGRAMS {
        let original: Value = serde_json::from_slice(&json(name)).unwrap();
        for _ in 0..mutants {
            let mut program = original.clone();
            for _ in 0..rng.random_range(1..3) {
                mutate(&mut program, &mut rng);
            }
            let text = serde_json::to_vec(&program).unwrap();
            let Ok(program) = Program::load(&text) else { continue };
            accepted += 1;
            let mut engine = Engine::new(Arc::new(program), Options::default());
            for traced in [false, true] {
                engine.set_trace(traced);
                for _ in 0..20 {
                    let frame: Vec<u8> = (0..rng.random_range(0..64)).map(|_| rng.random_range(0..12)).collect();
                    engine.receive(0, rng.random_range(0..600), &frame, &mut Vec::new());
                }
            }
        }
    }
    assert!(accepted > 50, "too few mutants load for the test to be meaningful: {accepted}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    /// Runs frames with and without tracing. The traced variant of the code must give the results of the optimized
    /// variant.
    #[test]
    fn tracing_changes_nothing(name in prop::sample::select(&PROGRAMS[..]), frames in proptest::collection::vec(proptest::collection::vec(0u8..14, 0..64), 1..10)) {
        let (mut plain, mut traced) = (Switch::new(name), Switch::new(name));
        traced.engine.set_trace(true);
        for f in frames {
            prop_assert_eq!(plain.send(0, 1, &f), traced.send(0, 1, &f));
        }
        prop_assert_eq!(plain.engine.drops(), traced.engine.drops());
    }
}

/// Returns the error message for a program in which one value is replaced.
fn refusal(name: &str, at: &str, new: Value) -> String {
    let mut program: Value = serde_json::from_slice(&json(name)).unwrap();
    *program.pointer_mut(at).unwrap_or_else(|| panic!("no {at}")) = new;
    Program::load(&serde_json::to_vec(&program).unwrap()).unwrap_err().to_string()
}

#[test]
fn refusals_name_the_place_and_the_reason() {
    let tables: Value = serde_json::from_slice(&json("tables")).unwrap();
    let tables = tables["pipelines"][0]["tables"].as_array().unwrap();
    let exact = tables.iter().position(|t| t["name"] == "I.exact_t").unwrap();
    let match_type = format!("/pipelines/0/tables/{exact}/key/0/match_type");
    let fuzzy =
        format!("{match_type} (table 'I.exact_t'): the match kind 'fuzzy' is not supported; this is not of v1model: ");
    let cases = [
        (
            refusal("tables", "/__meta__/version", json!([3, 0])),
            "/__meta__/version: the format is 3.0; compile the program with a p4c that writes 2.0 to 2.24",
        ),
        (
            refusal("arrays", "/calculations/0/algo", json!("random")),
            "/calculations/0/algo (calculation 'calc'): the algorithm 'random' is not supported; use crc16, crc32, csum16, xor16, identity or a custom CRC",
        ),
        (refusal("tables", &match_type, json!("fuzzy")), fuzzy.as_str()),
        (
            refusal("tables", "/pipelines/0/init_table", json!("nowhere")),
            "/pipelines/0/init_table (pipeline 'ingress'): there is no table, condition or action call 'nowhere' in this pipeline; p4c-bm2-ss does not write this: compile the program again",
        ),
        (refusal("tables", "/parsers", json!([])), "/parsers: there is no parser 'parser'; p4c"),
        (
            refusal("tables", "/headers/0/header_type", json!("none")),
            "/headers/0/header_type (header 'scalars'): there is no header type 'none'",
        ),
        (
            refusal("tables", "/extern_instances", json!([{}])),
            "/extern_instances/0: extern instances are not supported; compile without --emit-externs",
        ),
    ];
    for (message, expected) in cases {
        assert!(message.starts_with(expected), "\n     got {message}\nexpected {expected}");
    }
    let not_json = Program::load(b"{").unwrap_err();
    assert!(not_json.to_string().starts_with("/: this is not JSON: "), "{not_json}");
}

/// Builds the expression `first op first op first` with this number of operations, nested to the left or to the right.
fn chain(op: &str, first: &Value, operations: usize, to_the_left: bool) -> Value {
    (0..operations).fold(first.clone(), |rest, _| {
        let (left, right) = if to_the_left { (&rest, first) } else { (first, &rest) };
        json!({"type": "expression", "value": {"op": op, "left": left, "right": right}})
    })
}

/// The loader accepts expressions of up to the maximum nesting of 1,000 levels. Each operation needs two levels.
#[test]
fn long_expressions_are_read() {
    let port = json!({"type": "field", "value": ["standard_metadata", "ingress_port"]});
    let wide = json!({"type": "hexstr", "value": "0x123456789abcdef0123456789"});
    let is =
        |left: Value, right: Value| json!({"type": "expression", "value": {"op": "==", "left": left, "right": right}});
    let condition = |what: &str, operations| match what {
        "left" => chain("or", &is(port.clone(), json!({"type": "hexstr", "value": "0x7"})), operations, true),
        "right" => chain("and", &is(port.clone(), json!({"type": "hexstr", "value": "0x7"})), operations, false),
        "sum" => is(chain("+", &port, operations, true), port.clone()),
        _ => is(chain("^", &wide, operations, false), port.clone()),
    };
    let mut program: Value = serde_json::from_slice(&json("tables")).unwrap();
    for what in ["left", "right", "sum", "wide"] {
        program["pipelines"][0]["conditionals"][0]["expression"] = condition(what, 300);
        for mut s in Switch::both_of(&program) {
            s.send(0, 7, &[0; 60]);
        }
        program["pipelines"][0]["conditionals"][0]["expression"] = condition(what, 500);
        let refused = Program::load(program.to_string().as_bytes()).unwrap_err().to_string();
        assert_eq!(
            refused,
            "/: arrays and objects are nested more than 1000 deep; assign parts of long expressions to variables first"
        );
    }
}

/// The loader refuses a header whose maximum length in bytes (`max_length`), converted to bits, does not fit into 32
/// bits.
#[test]
fn an_overlong_variable_length_field_is_refused() {
    let program: Value = serde_json::from_slice(&json("statements")).unwrap();
    let types = program["header_types"].as_array().unwrap();
    let varied = types.iter().position(|t| t["max_length"].is_u64()).unwrap();
    let length = types[varied]["max_length"].as_u64().unwrap();
    let message = refusal("statements", &format!("/header_types/{varied}/max_length"), json!((1 << 29) + length));
    assert!(message.contains("'max_length' leaves 4294967"), "{message}");
}

#[test]
fn an_unknown_primitive_is_refused_with_its_source() {
    let program: Value = serde_json::from_slice(&json("paths")).unwrap();
    let actions = program["actions"].as_array().unwrap();
    let action = actions.iter().position(|a| a["primitives"][0]["op"] == "truncate").unwrap();
    let message = refusal("paths", &format!("/actions/{action}/primitives/0/op"), json!("teleport"));
    let expected = format!("/actions/{action}/primitives/0/op (action 'paths");
    let (reason, source) = ("the primitive 'teleport' is not supported; this is not of v1model: ", " [paths.p4(");
    let is_complete = message.contains(reason) && message.contains(source) && message.contains("truncate(12)");
    assert!(message.starts_with(&expected) && is_complete, "{message}");
}

/// Engines can be sent to other threads, and several threads can share a program.
#[test]
fn engines_can_be_sent_and_programs_shared() {
    fn send<T: Send>() {}
    fn share<T: Send + Sync>() {}
    send::<Engine>();
    share::<Program>();
}
