//! Runs `sluice_fuzz::orders`: splice orders of the agent, and headers that the data plane adds to frames of
//! connections whose server it has guessed.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| sluice_fuzz::orders::run(data));
