//! See `sluice_fuzz::content::http`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| sluice_fuzz::content::http::run(data));
