//! Runs `sluice_fuzz::content::http`: the fuzzer's bytes are parsed as HTTP requests, bodies and responses.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| sluice_fuzz::content::http::run(data));
