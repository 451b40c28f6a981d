//! Conditions on the values of a field.

use std::net::IpAddr;

use ipnet::IpNet;
use regex::bytes::Regex;

use crate::field::FieldId;
use crate::number::{Compare, number};

/// A comparison with a value of a field.
#[derive(Clone, Debug)]
pub(crate) enum Matcher {
    Exact(Box<[u8]>),
    Prefix(Box<[u8]>),
    Suffix(Box<[u8]>),
    Contains(Box<[u8]>),
    Regex(Regex),
    Number(Compare, f64),
    Net(Net),
}

impl Matcher {
    pub(crate) fn holds(&self, value: &[u8]) -> bool {
        match self {
            Matcher::Exact(text) => value == &text[..],
            Matcher::Prefix(text) => value.starts_with(text),
            Matcher::Suffix(text) => value.ends_with(text),
            Matcher::Contains(text) => memchr::memmem::find(value, text).is_some(),
            Matcher::Regex(regex) => regex.is_match(value),
            Matcher::Number(compare, bound) => number(value).is_some_and(|value| compare.holds(value, *bound)),
            Matcher::Net(net) => address_of(value).is_some_and(|address| net.contains(address)),
        }
    }
}

/// A network: the leading `length` bits of an address; IPv4 addresses are mapped into IPv6.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Net {
    pub first: u128,
    pub length: u8,
}

impl Net {
    /// Converts a network; returns none if bits are set beyond its prefix.
    pub(crate) fn new(net: IpNet) -> Option<Net> {
        let bits = if net.addr().is_ipv4() { 96 } else { 0 };
        let exact = net.trunc() == net;
        exact.then(|| Net { first: bits_of(net.addr()), length: net.prefix_len() + bits })
    }

    pub(crate) fn contains(&self, address: u128) -> bool {
        self.length == 0 || (address ^ self.first) >> (128 - self.length) == 0
    }

    pub(crate) fn encloses(&self, other: &Net) -> bool {
        self.length <= other.length && self.contains(other.first)
    }
}

/// Returns an address as 128 bits; IPv4 addresses are mapped into IPv6.
pub(crate) fn bits_of(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(v4) => u128::from(v4.to_ipv6_mapped()),
        IpAddr::V6(v6) => u128::from(v6),
    }
}

/// Reads an address from the 16 bytes of a value.
pub(crate) fn address_of(value: &[u8]) -> Option<u128> {
    Some(u128::from_be_bytes(value.try_into().ok()?))
}

/// A test of a single value of a field.
#[derive(Clone, Debug)]
pub(crate) enum Test {
    Is(Matcher),
    Any(Vec<Test>),
    All(Vec<Test>),
    Not(Box<Test>),
}

impl Test {
    pub(crate) fn holds(&self, value: &[u8]) -> bool {
        match self {
            Test::Is(matcher) => matcher.holds(value),
            Test::Any(tests) => tests.iter().any(|test| test.holds(value)),
            Test::All(tests) => tests.iter().all(|test| test.holds(value)),
            Test::Not(test) => !test.holds(value),
        }
    }
}

/// A branch of a condition. It holds if at least one value passes the test; if negated, it holds if no value passes.
#[derive(Clone, Debug)]
pub(crate) struct Branch {
    pub negated: bool,
    pub test: Test,
}

/// A condition on a field: at least one of the branches must hold.
#[derive(Clone, Debug)]
pub(crate) struct Cond {
    pub field: FieldId,
    pub branches: Vec<Branch>,
}

impl Cond {
    /// Returns whether the condition holds if `values` are all values of its field.
    pub(crate) fn holds<'v>(&self, values: impl Iterator<Item = &'v [u8]> + Clone) -> bool {
        self.branches.iter().any(|branch| values.clone().any(|value| branch.test.holds(value)) != branch.negated)
    }

    /// Returns whether this value satisfies the condition, regardless of the field's other values.
    pub(crate) fn settled_by(&self, value: &[u8]) -> bool {
        self.branches.iter().any(|branch| !branch.negated && branch.test.holds(value))
    }
}
