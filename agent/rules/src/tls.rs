//! Parses the ClientHello of TLS.
//!
//! Nothing is decrypted: a ClientHello contains the host name (SNI) and the protocols (ALPN) unencrypted. With ECH
//! (Encrypted Client Hello), the visible name is that of the outer ClientHello.

use crate::decision::{Decision, Forwarding, decision};
use crate::evaluation::Evaluation;
use crate::facts::{ConnectionFacts, enter_facts};
use crate::http::{Fault, bad};
use crate::ruleset::RuleSet;
use crate::values::{Values, allocated};

/// The state of the parser for a ClientHello, with the concatenated contents of its records.
#[derive(Debug, Default)]
pub(crate) struct Hello {
    /// The number of bytes of the stream that were parsed.
    at: usize,
    message: Vec<u8>,
}

const HANDSHAKE: u8 = 22;
const CLIENT_HELLO: u8 = 1;
const SERVER_NAME: u16 = 0;
const ALPN: u16 = 16;

impl Hello {
    /// Returns the bytes of memory in use besides the structure itself.
    pub(crate) fn memory(&self) -> usize {
        allocated(&self.message)
    }

    pub(crate) fn feed(&mut self, rules: &RuleSet, facts: &ConnectionFacts, stream: &[u8]) -> Decision {
        match self.read(rules, facts, stream) {
            Ok(Some(mut evaluation)) => {
                let outcome = evaluation.outcome(rules).expect("nothing of TLS comes late");
                decision(rules, facts, outcome, Forwarding::Opaque)
            }
            Ok(None) => Decision::NeedMore { reply: Vec::new() },
            Err(fault) => Decision::Refuse(rules.fault(fault)),
        }
    }

    fn read(&mut self, rules: &RuleSet, facts: &ConnectionFacts, stream: &[u8]) -> Result<Option<Evaluation>, Fault> {
        let limit = rules.limits.head.0;
        while !self.is_complete() {
            let rest = &stream[self.at..];
            let Some((fragment, used)) = record(rest)? else {
                return if stream.len() >= limit { bad("the ClientHello is above its limit") } else { Ok(None) };
            };
            if self.at + used > limit {
                return bad("the ClientHello is above its limit");
            }
            self.message.extend_from_slice(fragment);
            self.at += used;
            if self.message[0] != CLIENT_HELLO {
                return bad("the first message is no ClientHello");
            }
        }
        let mut values = Values::default();
        let body = Bytes(&self.message[4..4 + length(&self.message[1..4])]);
        if enter(rules, body, &mut values).is_none() {
            return bad("the ClientHello is malformed");
        }
        enter_facts(rules, facts, &mut values);
        Ok(Some(Evaluation::new(rules, values)))
    }

    fn is_complete(&self) -> bool {
        self.message.len() >= 4 && self.message.len() >= 4 + length(&self.message[1..4])
    }
}

fn length(bytes: &[u8]) -> usize {
    bytes.iter().fold(0, |length, &byte| length << 8 | usize::from(byte))
}

/// Returns the content of a handshake record, and the record's length; none while the record is incomplete.
fn record(bytes: &[u8]) -> Result<Option<(&[u8], usize)>, Fault> {
    let known = |index: usize, right: fn(u8) -> bool| bytes.get(index).is_none_or(|&byte| right(byte));
    if !known(0, |kind| kind == HANDSHAKE) || !known(1, |major| major == 3) || !known(2, |minor| minor <= 4) {
        return bad("the first bytes are no TLS");
    }
    let Some(header) = bytes.get(..5) else { return Ok(None) };
    let size = length(&header[3..]);
    if size == 0 || size > 1 << 14 {
        return bad("a TLS record has no such size");
    }
    Ok(bytes.get(5..5 + size).map(|fragment| (fragment, 5 + size)))
}

/// The unparsed bytes of a ClientHello. A read returns none if too few bytes remain; then the ClientHello is malformed.
#[derive(Clone, Copy)]
struct Bytes<'h>(&'h [u8]);

impl<'h> Bytes<'h> {
    fn take(&mut self, size: usize) -> Option<&'h [u8]> {
        let (consumed, rest) = self.0.split_at_checked(size)?;
        self.0 = rest;
        Some(consumed)
    }

    /// Reads a vector of TLS: a field of `width` bytes, which contains a length, and then as many bytes as this length.
    /// Returns these bytes.
    fn vector(&mut self, width: usize) -> Option<Bytes<'h>> {
        let size = length(self.take(width)?);
        self.take(size).map(Bytes)
    }

    fn number(&mut self) -> Option<u16> {
        self.take(2).map(|bytes| u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    fn is_empty(self) -> bool {
        self.0.is_empty()
    }
}

/// Adds to `values` the values of the fields on which rules have conditions. Returns none if the ClientHello is
/// malformed.
fn enter(rules: &RuleSet, mut hello: Bytes, values: &mut Values) -> Option<()> {
    hello.take(2 + 32)?;
    hello.vector(1)?;
    hello.vector(2).filter(|suites| !suites.is_empty())?;
    hello.vector(1).filter(|compressions| !compressions.is_empty())?;
    if hello.is_empty() {
        return Some(());
    }
    let mut extensions = hello.vector(2)?;
    let mut is_parsed = [false; 2];
    while !extensions.is_empty() {
        let kind = extensions.number()?;
        let content = extensions.vector(2)?;
        let slot = match kind {
            SERVER_NAME => 0,
            ALPN => 1,
            _ => continue,
        };
        // Servers differ in which of two equal extensions they use, so a duplicate is refused.
        if std::mem::replace(&mut is_parsed[slot], true) {
            return None;
        }
        if kind == SERVER_NAME { server_name(rules, content, values)? } else { protocols(rules, content, values)? }
    }
    hello.is_empty().then_some(())
}

fn server_name(rules: &RuleSet, mut content: Bytes, values: &mut Values) -> Option<()> {
    let mut names = content.vector(2)?;
    let mut is_parsed = false;
    while !names.is_empty() {
        let kind = names.take(1)?[0];
        let name = names.vector(2)?;
        if kind != 0 {
            continue;
        }
        let valid = !name.is_empty() && name.0.iter().all(|&b| b.is_ascii_graphic());
        if !valid || std::mem::replace(&mut is_parsed, true) {
            return None;
        }
        if let Some(field) = rules.lookup.sni {
            values.push_lower(field, name.0.strip_suffix(b".").unwrap_or(name.0));
        }
    }
    content.is_empty().then_some(())
}

fn protocols(rules: &RuleSet, mut content: Bytes, values: &mut Values) -> Option<()> {
    let mut protocols = content.vector(2)?;
    while !protocols.is_empty() {
        let protocol = protocols.vector(1).filter(|protocol| !protocol.is_empty())?;
        if let Some(field) = rules.lookup.alpn {
            values.push(field, protocol.0);
        }
    }
    content.is_empty().then_some(())
}
