//! Runs `sluice_fuzz::content::json`: rules evaluate JSON documents, and the results are compared with `serde_json`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| sluice_fuzz::content::json::run(data));
