//! Types that the control plane sees otherwise than the program does (`@p4runtime_translation`).
//!
//! A type translated to numbers of another width has the same numbers, as far as they fit the program's width. A type translated
//! to strings has names: a string of decimal digits is that number; any other is given a number of its own when an update brings it,
//! the highest first, so that small ones are left to ports. Types with the same URI share their names. P4Runtime leaves it to the
//! switch where the numbers come from ("PSA Metadata Translation").
//!
//! Names are given in an order, and what a refused update has brought are the last ones: they are forgotten.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::binding::BindError;
use crate::bits;
use crate::fault::{Fault, Outcome};
use crate::proto::p4::config::v1 as p4info;
use p4info::p4_new_type_spec::Representation;
use p4info::p4_new_type_translation::SdnType;

/// Names that a type may have at a time.
const MOST_NAMES: usize = 1 << 18;
/// Bytes of a name at most.
const LONGEST_NAME: usize = 256;

/// What the control plane sees of a type.
#[derive(Debug, Clone)]
pub enum Sdn {
    /// A number of so many bits.
    Number(u32),
    /// A name.
    Name(Arc<Names>),
}

impl PartialEq for Sdn {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Number(width), Self::Number(other)) => width == other,
            (Self::Name(names), Self::Name(other)) => names.uri == other.uri,
            _ => false,
        }
    }
}

impl Eq for Sdn {}

impl Sdn {
    /// Says how wide the program's values are.
    pub fn fit(&self, width: u32) {
        if let Self::Name(names) = self {
            let known = &mut names.known.lock().width;
            *known = (*known).min(width);
        }
    }

    /// Width of a number that only matches as a whole, because the program's `width` is another one.
    pub fn whole_number(&self, width: u32) -> Option<u32> {
        match self {
            Self::Number(sdn) if *sdn != width => Some(*sdn),
            Self::Number(_) | Self::Name(_) => None,
        }
    }
}

/// What becomes of a name that has no number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NewName {
    /// It is given one: an update brings it.
    Given,
    /// It is refused: nothing can have it.
    Refused,
}

/// A value from the wire, in exactly `ceil(width / 8)` bytes.
///
/// # Errors
/// `OUT_OF_RANGE` for a number that does not fit, `INVALID_ARGUMENT` for what cannot be a name, `NOT_FOUND` for a new name where
/// these are refused, `RESOURCE_EXHAUSTED` when there are too many names.
pub fn decode(sdn: Option<&Sdn>, value: &[u8], width: u32, new: NewName) -> Outcome<Vec<u8>> {
    match sdn {
        None | Some(Sdn::Number(_)) => bits::unsigned(value, width),
        Some(Sdn::Name(names)) => bits::unsigned(&names.number(value, new)?.to_be_bytes(), width),
    }
}

/// A value for the wire.
pub fn encode(sdn: Option<&Sdn>, value: &[u8]) -> Vec<u8> {
    match sdn {
        None | Some(Sdn::Number(_)) => bits::canonical(value),
        Some(Sdn::Name(names)) => names.name(value),
    }
}

/// The names of the values of a type.
#[derive(Debug)]
pub struct Names {
    uri: String,
    known: Mutex<Known>,
}

#[derive(Debug, Clone)]
struct Known {
    /// The least that values have.
    width: u32,
    numbers: HashMap<Vec<u8>, u64>,
    names: HashMap<u64, Vec<u8>>,
    /// Numbers that have a name, in the order in which they were given one.
    given: Vec<u64>,
    /// No number above this one is free.
    next: u64,
}

impl Names {
    fn new(uri: &str) -> Self {
        let (numbers, names) = (HashMap::new(), HashMap::new());
        let known = Known { width: 64, numbers, names, given: Vec::new(), next: u64::MAX };
        Self { uri: uri.to_owned(), known: Mutex::new(known) }
    }

    fn number(&self, name: &[u8], new: NewName) -> Outcome<u64> {
        let mut known = self.known.lock();
        if let Some(number) = known.numbers.get(name) {
            return Ok(*number);
        }
        let text = std::str::from_utf8(name).ok().filter(|text| !text.is_empty() && text.len() <= LONGEST_NAME);
        let text = text.ok_or_else(|| {
            Fault::invalid(format!("the value is no name; give text of 1 to {LONGEST_NAME} bytes (UTF-8)"))
        })?;
        if new == NewName::Given && known.numbers.len() >= MOST_NAMES {
            return Err(Fault::exhausted(format!("{} has {MOST_NAMES} names already; use one of them", self.uri)));
        }
        let most = u64::MAX >> (64 - known.width.clamp(1, 64));
        let number = match decimal(text) {
            Some(number) => match (number, known.names.get(&number)) {
                (number, _) if number > most => {
                    return Err(Fault::out_of_range(format!(
                        "the number {number} is above {most}; give one that fits"
                    )));
                }
                (number, Some(other)) => {
                    let other = String::from_utf8_lossy(other);
                    return Err(Fault::invalid(format!(
                        "the number {number} is that of the name '{other}'; give the name"
                    )));
                }
                (number, None) => number,
            },
            None if new == NewName::Refused => {
                return Err(Fault::not_found(format!("nothing has the name '{text}'; give one that was written")));
            }
            None => {
                let mut number = known.next.min(most);
                while known.names.contains_key(&number) {
                    let full = || {
                        Fault::exhausted(format!("{} has no number left for another name; use one it has", self.uri))
                    };
                    number = number.checked_sub(1).ok_or_else(full)?;
                }
                known.next = number;
                number
            }
        };
        if new == NewName::Given {
            known.numbers.insert(name.to_vec(), number);
            known.names.insert(number, name.to_vec());
            known.given.push(number);
        }
        Ok(number)
    }

    /// Forgets all names but the first `count`.
    fn forget_after(&self, count: usize) {
        let known = &mut *self.known.lock();
        for number in known.given.drain(count.min(known.given.len())..) {
            if let Some(name) = known.names.remove(&number) {
                known.numbers.remove(&name);
            }
            known.next = known.next.max(number);
        }
    }

    fn name(&self, value: &[u8]) -> Vec<u8> {
        let number = value.iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
        let known = self.known.lock();
        known.names.get(&number).cloned().unwrap_or_else(|| number.to_string().into_bytes())
    }
}

/// The number that a text of decimal digits, without zeros in front, is.
fn decimal(text: &str) -> Option<u64> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    text.parse().ok().filter(|_| digits)
}

/// The types of P4Info, and the names of those that are translated to strings, by URI.
#[derive(Debug, Default)]
pub struct Types {
    /// As P4Info has them.
    pub info: p4info::P4TypeInfo,
    names: Mutex<BTreeMap<String, Arc<Names>>>,
}

/// The names that there are at one moment: how many each type has.
#[derive(Debug, Default)]
pub struct Moment(Vec<usize>);

/// A name and the number that it was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Given {
    /// Of the types that share it.
    pub uri: String,
    /// The name.
    pub name: Vec<u8>,
    /// Its number.
    pub number: u64,
}

impl Types {
    /// Those of a P4Info.
    pub fn new(info: &p4info::P4Info) -> Self {
        Self { info: info.type_info.clone().unwrap_or_default(), names: Mutex::default() }
    }

    /// What the control plane sees of the type of this name; `None` for types that are not translated.
    ///
    /// # Errors
    /// When the type is translated to nothing.
    pub fn sdn(&self, name: Option<&p4info::P4NamedType>, place: &str) -> Result<Option<Sdn>, BindError> {
        match name.and_then(|name| self.info.new_types.get(&name.name)).map(|found| &found.representation) {
            Some(Some(Representation::TranslatedType(translation))) => self.translated(translation, place).map(Some),
            _ => Ok(None),
        }
    }

    /// What the control plane sees.
    ///
    /// # Errors
    /// When that is nothing.
    pub fn translated(&self, translation: &p4info::P4NewTypeTranslation, place: &str) -> Result<Sdn, BindError> {
        match &translation.sdn_type {
            Some(SdnType::SdnBitwidth(width)) => {
                let width = u32::try_from(*width).ok().filter(|width| *width > 0);
                let malformed = || BindError::Malformed(format!("{place} is translated to numbers of no width"));
                Ok(Sdn::Number(width.ok_or_else(malformed)?))
            }
            Some(SdnType::SdnString(_)) => {
                let uri = &translation.uri;
                let mut names = self.names.lock();
                Ok(Sdn::Name(Arc::clone(names.entry(uri.clone()).or_insert_with(|| Arc::new(Names::new(uri))))))
            }
            None => Err(BindError::Malformed(format!("{place} is translated to nothing"))),
        }
    }

    /// The names that there are now.
    pub fn now(&self) -> Moment {
        Moment(self.names.lock().values().map(|names| names.known.lock().given.len()).collect())
    }

    /// Forgets the names that were given after this moment.
    pub fn forget_since(&self, moment: &Moment) {
        for (names, count) in self.names.lock().values().zip(&moment.0) {
            names.forget_after(*count);
        }
    }

    /// The names that were given after this moment, in their order.
    pub fn given_since(&self, moment: &Moment) -> Vec<Given> {
        let mut since = Vec::new();
        for (place, (uri, names)) in self.names.lock().iter().enumerate() {
            let known = names.known.lock();
            let earlier = moment.0.get(place).copied().unwrap_or(0);
            let name = |number: &u64| known.names.get(number).cloned().unwrap_or_default();
            let given = known.given.iter().skip(earlier);
            since.extend(given.map(|number| Given { uri: uri.clone(), name: name(number), number: *number }));
        }
        since
    }

    /// Has a name be the one of a number, as it was before a restart.
    pub fn give(&self, given: Given) {
        if let Some(names) = self.names.lock().get(&given.uri) {
            let known = &mut *names.known.lock();
            known.numbers.insert(given.name.clone(), given.number);
            known.names.insert(given.number, given.name);
            known.given.push(given.number);
        }
    }

    /// Goes on with the names of another program's types, for values that came from it.
    pub fn take_over(&self, old: &Types) {
        let (names, old) = (self.names.lock(), old.names.lock());
        for (uri, names) in names.iter() {
            if let Some(old) = old.get(uri) {
                let (mut known, old) = (names.known.lock(), old.known.lock());
                *known = Known { width: known.width, ..old.clone() };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(width: u32) -> Sdn {
        let sdn = Sdn::Name(Arc::new(Names::new("example")));
        sdn.fit(width);
        sdn
    }

    /// A name that an update brings.
    fn decode(sdn: Option<&Sdn>, value: &[u8], width: u32) -> Outcome<Vec<u8>> {
        super::decode(sdn, value, width, NewName::Given)
    }

    #[test]
    fn names_get_the_highest_numbers_and_digits_are_numbers() {
        let sdn = Some(&names(9)).cloned();
        let (decode, encode) =
            (|name: &str| decode(sdn.as_ref(), name.as_bytes(), 9), |value: &[u8]| encode(sdn.as_ref(), value));
        assert_eq!(decode("uplink").unwrap(), [1, 0xff]);
        assert_eq!(decode("5").unwrap(), [0, 5]);
        assert_eq!(decode("510").unwrap(), [1, 0xfe]);
        assert_eq!(decode("007").unwrap(), [1, 0xfd]);
        assert_eq!(decode("uplink").unwrap(), [1, 0xff]);
        assert_eq!([encode(&[1, 0xff]), encode(&[5]), encode(&[1, 0xfd])], [&b"uplink"[..], b"5", b"007"]);
        assert_eq!(encode(&[0, 9]), b"9", "a number that nobody named");
        for (name, text) in [
            ("511", "the number 511 is that of the name 'uplink'"),
            ("512", "the number 512 is above 511"),
            ("", "the value is no name; give text of 1 to 256 bytes"),
        ] {
            let message = decode(name).unwrap_err().message;
            assert!(message.contains(text), "{message}");
        }
    }

    #[test]
    fn names_are_the_same_after_a_restart() {
        let types = || {
            let types = Types::default();
            let sdn_type = Some(SdnType::SdnString(p4info::p4_new_type_translation::SdnString {}));
            let spec = p4info::P4NewTypeTranslation { uri: "example".to_owned(), sdn_type };
            let sdn = types.translated(&spec, "a type").unwrap();
            sdn.fit(9);
            (types, sdn)
        };
        let (old, sdn) = types();
        for name in [&b"uplink"[..], b"510", b"5"] {
            decode(Some(&sdn), name, 9).unwrap();
        }
        let moment = old.now();
        decode(Some(&sdn), b"later", 9).unwrap();
        let later = Given { uri: "example".to_owned(), name: b"later".to_vec(), number: 509 };
        assert_eq!(old.given_since(&moment), [later]);
        let (new, sdn) = types();
        old.given_since(&Moment::default()).into_iter().for_each(|given| new.give(given));
        assert_eq!(encode(Some(&sdn), &[1, 0xff]), b"uplink");
        assert_eq!(decode(Some(&sdn), b"next", 9).unwrap(), [1, 0xfc]);
        assert_eq!(new.given_since(&moment).len(), 2);
    }

    #[test]
    fn there_are_as_many_names_as_numbers() {
        let sdn = Some(&names(2)).cloned();
        for name in ["a", "1", "b", "c"] {
            decode(sdn.as_ref(), name.as_bytes(), 2).unwrap();
        }
        assert_eq!(decode(sdn.as_ref(), b"d", 2).unwrap_err().code, tonic::Code::ResourceExhausted);
        assert_eq!(decode(sdn.as_ref(), b"c", 2).unwrap(), [0]);
    }

    #[test]
    fn what_is_forgotten_and_what_is_only_looked_up_leaves_its_number() {
        let sdn = Some(&names(9)).cloned();
        let give = |name: &[u8]| decode(sdn.as_ref(), name, 9);
        let look_up = |name: &[u8]| super::decode(sdn.as_ref(), name, 9, NewName::Refused);
        give(b"uplink").unwrap();
        for name in [&b"510"[..], b"a", b"b"] {
            give(name).unwrap();
        }
        let Some(Sdn::Name(known)) = &sdn else { panic!() };
        known.forget_after(1);
        assert_eq!(look_up(b"a").unwrap_err().code, tonic::Code::NotFound);
        assert_eq!([look_up(b"uplink").unwrap(), look_up(b"510").unwrap()], [[1, 0xff], [1, 0xfe]]);
        assert!(look_up(b"511").unwrap_err().message.contains("is that of the name 'uplink'"));
        assert_eq!(give(b"b").unwrap(), [1, 0xfe]);
    }
}
