//! See `sluice_fuzz::content::mail`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| sluice_fuzz::content::mail::run(data));
