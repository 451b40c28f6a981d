//! Tests primitives that are called in the deparser.

use crate::common::{Switch, json};
use serde_json::{Value, json};
use sluice_engine::{Program, TraceEvent};

/// Builds a frame of 40 bytes for `deparser.p4` with `what`, `size` and a zero checksum.
fn frame(what: u8, size: u8) -> Vec<u8> {
    [&[what, size, 0, 0][..], &[7; 36]].concat()
}

#[test]
fn primitives_read_the_updated_checksums() {
    for mut s in Switch::both("deparser") {
        for size in [40, 45, 63, 64 + 50] {
            let sum = !u16::from(size);
            let length = usize::from(4 + sum % 64);
            let out = s.one(0, &frame(0, size));
            let [high, low] = sum.to_be_bytes();
            assert_eq!(out[..4], [0, size, high, low]);
            assert_eq!(out.len(), length, "cut to a hash of the checksum");
        }
    }
}

#[test]
fn a_failed_assertion_drops_the_packet() {
    for mut s in Switch::both("deparser") {
        assert_eq!(s.send(0, 1, &frame(1, 40)), []);
        assert_eq!(s.send(0, 1, &frame(2, 40)).len(), 1);
        let drops = s.engine.drops();
        assert_eq!((drops.assertions, drops.emitted), (1, 1));
    }
}

#[test]
fn messages_are_in_the_trace() {
    let mut s = Switch::new("deparser");
    s.engine.set_trace(true);
    s.one(0, &frame(0, 40));
    let trace = s.engine.take_trace();
    let logged = trace.iter().any(|e| matches!(e, TraceEvent::Log(text) if text == "keeps 27 of checksum 65495"));
    assert!(logged, "{trace:?}");
}

#[test]
fn a_primitive_that_changes_headers_is_refused() {
    let mut program: Value = serde_json::from_slice(&json("deparser")).unwrap();
    program["deparsers"][0]["primitives"][0] =
        json!({"op": "remove_header", "parameters": [{"type": "header", "value": "head"}]});
    let error = Program::load(&serde_json::to_vec(&program).unwrap()).unwrap_err();
    assert_eq!(error.path, "/deparsers/0/primitives/0/op");
    assert_eq!(error.reason, "'remove_header' is not supported in the deparser");
}
