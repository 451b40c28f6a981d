//! The facts about a connection that are known before its first byte arrives.

use std::net::IpAddr;

use crate::ruleset::RuleSet;
use crate::test::bits_of;
use crate::values::Values;

/// The addresses of a connection, and the port of the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionFacts {
    /// The client's address.
    pub source: IpAddr,
    /// The address that the client connected to.
    pub destination: IpAddr,
    /// The port that the client connected to.
    pub port: u16,
}

/// Adds those facts about a connection to `values` on which rules have conditions.
pub(crate) fn enter_facts(rules: &RuleSet, facts: &ConnectionFacts, values: &mut Values) {
    let bytes = |address: IpAddr| bits_of(address).to_be_bytes();
    if let Some(field) = rules.lookup.source {
        values.push(field, &bytes(facts.source));
    }
    if let Some(field) = rules.lookup.destination {
        values.push(field, &bytes(facts.destination));
    }
    if let Some(field) = rules.lookup.port {
        values.push(field, facts.port.to_string().as_bytes());
    }
}
