//! Runs `sluice_fuzz::content::rules`: any bytes as a `content:` block.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| sluice_fuzz::content::rules::run(data));
