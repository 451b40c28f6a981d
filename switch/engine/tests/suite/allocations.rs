//! Checks that packets allocate no heap memory once the engine's buffers are large enough for them.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng};
use sluice_engine::{Engine, Sink, TraceEvent};

use crate::common::json;
use crate::native::{Both, frame, sluice};

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: all methods call the system's allocator, which implements the trait correctly.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller fulfils the contract of `alloc`, which is also the contract of the system's allocator.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller fulfils the contract of `dealloc`, which is also the contract of the system's allocator.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// A sink that counts frames and does not store them.
#[derive(Default)]
struct Tally(usize);

impl Sink for Tally {
    fn emit(&mut self, _: u32, _: &[u8], _: &[u8]) {
        self.0 += 1;
    }
}

/// Returns the number of allocations that the frames cause. Each frame has an ingress port. The first frame arrives at
/// `now` in nanoseconds, and each following frame 1 ms after the previous frame.
fn allocations(engine: &mut Engine, now: u64, frames: &[(u32, Vec<u8>)], out: &mut Tally) -> u64 {
    let before = ALLOCATIONS.get();
    for (time, (port, frame)) in (now..).step_by(1_000_000).zip(frames) {
        engine.receive(time, *port, frame, out);
    }
    ALLOCATIONS.get() - before
}

/// Runs the frames twice, and checks that the second run allocates nothing. Returns the `instance_type` of each pass,
/// which the trace of a third run contains.
fn check_second_run(name: &str, both: &mut Both, frames: &[(u32, Vec<u8>)]) -> Vec<u32> {
    const LATER: u64 = 1_000_000_000_000;
    let mut kinds = Vec::new();
    for engine in &mut both.engines {
        let mut out = Tally::default();
        // In the first run the buffers grow to the size that the frames need.
        allocations(engine, LATER, frames, &mut out);
        assert_eq!(allocations(engine, 2 * LATER, frames, &mut out), 0, "{name}");
        assert!(out.0 > 0, "{name}: no packet came out");
        engine.set_trace(true);
        allocations(engine, 3 * LATER, frames, &mut out);
        kinds.extend(engine.take_trace().into_iter().filter_map(|event| match event {
            TraceEvent::Ingress { instance_type, .. } => Some(instance_type),
            _ => None,
        }));
    }
    kinds
}

/// Configures the program `name` at random, and passes 1,000 random frames, whose first byte is in the range `first`,
/// to [`check_second_run`]. Returns its result.
fn check(name: &str, first: std::ops::Range<u8>) -> Vec<u32> {
    let mut rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut both = Both::new(&json(name)).unwrap();
    both.configure(&mut rng);
    for engine in &mut both.engines {
        if let Some(set) = engine.program().value_set("P.wanted") {
            engine.value_set_write(set, &[(vec![3], vec![]), (vec![8], vec![0xc])]).unwrap();
        }
    }
    let frames: Vec<_> = (0..1000)
        .map(|_| {
            let mut frame: Vec<u8> = (0..rng.random_range(1..140)).map(|_| rng.random_range(0..14)).collect();
            frame[0] = rng.random_range(first.clone());
            (1, frame)
        })
        .collect();
    check_second_run(name, &mut both, &frames)
}

const RECIRCULATED: u32 = 4;
const RESUBMITTED: u32 = 6;

#[test]
fn packets_allocate_nothing() {
    for name in ["tables", "selector", "arrays", "stacks", "keys", "deparser", "parser", "unions", "statements", "wide"]
    {
        check(name, 0..14);
    }
}

#[test]
fn copies_allocate_nothing() {
    // The frames cause multicast, ingress clones and egress clones, each with two replicas.
    let kinds = check("paths", 0..14);
    assert!(kinds.contains(&RESUBMITTED) && kinds.contains(&RECIRCULATED));
}

#[test]
fn sluice_allocates_nothing() {
    let mut rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut both = Both::new(&sluice()).unwrap();
    both.route();
    both.configure(&mut rng);
    let frames: Vec<_> = (0..4000).map(|_| (rng.random_range(0..14), frame(&mut rng))).collect();
    let kinds = check_second_run("sluice", &mut both, &frames);
    let second_looks = kinds.iter().filter(|&&kind| kind == RESUBMITTED).count();
    assert!(second_looks > 50, "too few SYNs take a second look for the test to be meaningful: {second_looks}");
}
