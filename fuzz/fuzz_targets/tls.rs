//! Runs `sluice_fuzz::content::tls`: the fuzzer's bytes are parsed as a ClientHello.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| sluice_fuzz::content::tls::run(data));
