//! Runs `sluice_fuzz::orders`: splice orders, and headers of guessed connections.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| sluice_fuzz::orders::run(data));
