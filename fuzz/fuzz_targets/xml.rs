//! Runs `sluice_fuzz::content::xml`: rules evaluate XML documents, and the results are compared with quick-xml.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| sluice_fuzz::content::xml::run(data));
