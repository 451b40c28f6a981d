//! Runs `sluice_fuzz::content::rules`: the fuzzer's bytes are parsed as a `content:` block.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| sluice_fuzz::content::rules::run(data));
