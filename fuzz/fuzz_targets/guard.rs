//! Runs `sluice_fuzz::guard`: a client that sends anything to a service whose rules refuse.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| sluice_fuzz::guard::run(data));
