//! See `sluice_fuzz::orders`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| sluice_fuzz::orders::run(data));
