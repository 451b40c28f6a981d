//! Runs `sluice_fuzz::agent`: sends frames and advances the time of the agent's engine.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| sluice_fuzz::agent::run(data));
