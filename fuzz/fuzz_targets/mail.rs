//! Runs `sluice_fuzz::content::mail`: SMTP, IMAP and POP3 sessions between a client and a server.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| sluice_fuzz::content::mail::run(data));
