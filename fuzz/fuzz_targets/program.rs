//! The program loader: the fuzzer's bytes are loaded as a program. A program that the loader accepts must run, and its
//! compiled form must behave like its interpreted form.
#![no_main]

use std::sync::Arc;

use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};
use sluice_engine::{Engine, Options, Program};
use sluice_fuzz::mutant;

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    // Seven of eight mutations replace parts of the program's JSON. The eighth is libFuzzer's own byte mutation, whose
    // results are seldom valid JSON.
    match mutant(&data[..size], seed / 8) {
        Some(program) if !seed.is_multiple_of(8) && program.len() <= max_size => {
            data[..program.len()].copy_from_slice(&program);
            program.len()
        }
        _ => fuzzer_mutate(data, size, max_size),
    }
});

fuzz_target!(|data: &[u8]| {
    let Ok(program) = Program::load(data) else { return };
    let program = Arc::new(program);
    let [compiled, interpreted, traced] = [(false, false), (true, false), (true, true)].map(|(interpret, trace)| {
        let mut engine = Engine::new(Arc::clone(&program), Options { interpret, ..Options::default() });
        engine.set_trace(trace);
        let mut out = Vec::new();
        for (port, frame) in
            [&[][..], &[0; 64], &[0xff; 64], &[7; 300], &data[..data.len().min(200)]].iter().enumerate()
        {
            engine.receive(port as u64 * 1_000_000, port as u32, frame, &mut out);
        }
        (out, engine.drops(), engine.take_digests())
    });
    assert_eq!(compiled, interpreted, "compiled, interpreted");
    assert_eq!(interpreted, traced, "plain, traced");
});
