//! Runs `sluice_fuzz::guard`: a client sends arbitrary requests to a service whose rules refuse some requests.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| sluice_fuzz::guard::run(data));
