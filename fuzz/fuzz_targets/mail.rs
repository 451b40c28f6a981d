//! Runs `sluice_fuzz::content::mail`: dialogues of SMTP, IMAP and POP3.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| sluice_fuzz::content::mail::run(data));
