//! Runs `sluice_fuzz::agent`: frames and time against the agent's engine.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| sluice_fuzz::agent::run(data));
