//! Runs `sluice_fuzz::content::xml`: XML documents, compared with quick-xml.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| sluice_fuzz::content::xml::run(data));
