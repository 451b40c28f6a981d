//! See `sluice_fuzz::content::rules`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| sluice_fuzz::content::rules::run(data));
