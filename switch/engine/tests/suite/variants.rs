//! Compares the optimized instructions with the instructions of the traced variant, which are not optimized.

use crate::common::{MS, Switch};
use proptest::prelude::*;
use proptest::test_runner::TestRng;

#[test]
fn a_trace_changes_nothing() {
    let mut rng = TestRng::deterministic_rng(proptest::test_runner::RngAlgorithm::ChaCha);
    for name in ["tables", "selector", "arrays", "paths", "keys", "deparser", "parser", "unions", "statements", "wide"]
    {
        let (mut plain, mut traced) = (Switch::new(name), Switch::new(name));
        traced.engine.set_trace(true);
        let mut emitted = 0;
        for i in 0..3_000u64 {
            let mut frame: Vec<u8> = (0..rng.random_range(0..140)).map(|_| rng.random()).collect();
            // Bytes with small numbers make the program run more of its branches.
            frame.iter_mut().for_each(|b| {
                if rng.random_range(0..3) > 0 {
                    *b &= 3;
                }
            });
            let port = rng.random_range(0..4);
            let (a, b) = (plain.send(i * MS, port, &frame), traced.send(i * MS, port, &frame));
            assert_eq!(a, b, "{name}: {frame:02x?}\n{:?}", traced.engine.take_trace());
            traced.engine.take_trace();
            emitted += a.len();
        }
        assert_eq!(plain.engine.drops(), traced.engine.drops(), "{name}");
        assert!(emitted > 0, "{name}: no packet came out");
    }
}
