//! Runs `sluice_fuzz::content::http`: requests, bodies and responses of HTTP.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| sluice_fuzz::content::http::run(data));
