//! See `sluice_fuzz::guard`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| sluice_fuzz::guard::run(data));
