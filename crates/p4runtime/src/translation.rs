//! Types whose values have another form for controllers than in the program (P4's annotation `@p4runtime_translation`).
//!
//! A type is translated to numbers or to strings. A translated number has the same value in the program; a number that
//! does not fit into the program's width is refused. A translated string is a name for a number in the program. A
//! string of decimal digits is the name of the number that it represents. Any other string is assigned a number when an
//! update first uses it: the highest free number, because ports use the low numbers. Types with the same URI share
//! their names. P4Runtime lets the switch choose the numbers (section "PSA Metadata Translation").
//!
//! Names are recorded in the order of their assignment. So the names that a refused update introduced are the last ones
//! and can be removed.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::binding::BindError;
use crate::bits;
use crate::fault::{Fault, Outcome};
use crate::proto::p4::config::v1 as p4info;
use p4info::p4_new_type_spec::Representation;
use p4info::p4_new_type_translation::SdnType;

/// Limit on the number of names that the types with one URI have together. This limit and [`LONGEST_NAME`] bound the
/// memory that clients can occupy by new names.
const MOST_NAMES: usize = 1 << 18;
/// Limit on the length of a name, in bytes.
const LONGEST_NAME: usize = 256;

/// The form in which controllers read and write the values of a translated type.
#[derive(Debug, Clone)]
pub enum Sdn {
    /// A number, with its width in bits in controllers' messages.
    Number(u32),
    /// A name. All types with one URI share the table of names.
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
    /// Sets the width in bits of the numbers that represent names in the program. If several types share the names, the
    /// smallest of their widths applies. Has no effect on a type that is translated to numbers.
    pub fn fit(&self, width: u32) {
        if let Self::Name(names) = self {
            let shared_width = &mut names.table.lock().width;
            *shared_width = (*shared_width).min(width);
        }
    }

    /// Returns the width in bits that a translated number has in controllers' messages, if this width differs from
    /// `width`, the number's width in the program. Entries can match such a number only completely, because prefixes
    /// and masks of the two widths do not correspond.
    pub fn exact_only_width(&self, width: u32) -> Option<u32> {
        match self {
            Self::Number(sdn) if *sdn != width => Some(*sdn),
            Self::Number(_) | Self::Name(_) => None,
        }
    }
}

/// The treatment of a name that has no number yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NewName {
    /// The name is assigned a number, because an update may introduce it.
    Assign,
    /// The name is refused, because no entity can have it.
    Refuse,
}

/// Decodes a value from P4Runtime's form into exactly `ceil(width / 8)` bytes.
///
/// # Errors
/// `OUT_OF_RANGE` for a number that does not fit, `INVALID_ARGUMENT` for a string that cannot be a name. `NOT_FOUND`
/// for a new name if `new` refuses new names, `RESOURCE_EXHAUSTED` when there are too many names.
pub fn decode(sdn: Option<&Sdn>, value: &[u8], width: u32, new: NewName) -> Outcome<Vec<u8>> {
    match sdn {
        None | Some(Sdn::Number(_)) => bits::unsigned(value, width),
        Some(Sdn::Name(names)) => bits::unsigned(&names.number(value, new)?.to_be_bytes(), width),
    }
}

/// Encodes a value in P4Runtime's form.
pub fn encode(sdn: Option<&Sdn>, value: &[u8]) -> Vec<u8> {
    match sdn {
        None | Some(Sdn::Number(_)) => bits::canonical(value),
        Some(Sdn::Name(names)) => names.name(value),
    }
}

/// The names of values and their numbers, which all types with one URI share.
#[derive(Debug)]
pub struct Names {
    uri: String,
    table: Mutex<NameTable>,
}

#[derive(Debug, Clone)]
struct NameTable {
    /// The smallest width in bits among the types that share the names.
    width: u32,
    numbers: HashMap<Vec<u8>, u64>,
    names: HashMap<u64, Vec<u8>>,
    /// All numbers that have a name, in the order of their assignment.
    assigned: Vec<u64>,
    /// An upper bound of the free numbers; the search for the highest free number begins here.
    next: u64,
}

impl Names {
    fn new(uri: &str) -> Self {
        let (numbers, names) = (HashMap::new(), HashMap::new());
        let table = NameTable { width: 64, numbers, names, assigned: Vec::new(), next: u64::MAX };
        Self { uri: uri.to_owned(), table: Mutex::new(table) }
    }

    fn number(&self, name: &[u8], new: NewName) -> Outcome<u64> {
        let mut table = self.table.lock();
        if let Some(number) = table.numbers.get(name) {
            return Ok(*number);
        }
        let text = std::str::from_utf8(name).ok().filter(|text| !text.is_empty() && text.len() <= LONGEST_NAME);
        let text = text.ok_or_else(|| {
            Fault::invalid(format!("the value is not a valid name; give text of 1 to {LONGEST_NAME} bytes (UTF-8)"))
        })?;
        if new == NewName::Assign && table.numbers.len() >= MOST_NAMES {
            return Err(Fault::exhausted(format!("{} has {MOST_NAMES} names already; use one of them", self.uri)));
        }
        let most = u64::MAX >> (64 - table.width.clamp(1, 64));
        let number = match decimal(text) {
            Some(number) => match (number, table.names.get(&number)) {
                (number, _) if number > most => {
                    return Err(Fault::out_of_range(format!(
                        "the number {number} is above {most}; give one that fits"
                    )));
                }
                (number, Some(owner)) => {
                    let owner = String::from_utf8_lossy(owner);
                    return Err(Fault::invalid(format!(
                        "the number {number} is that of the name '{owner}'; give the name"
                    )));
                }
                (number, None) => number,
            },
            None if new == NewName::Refuse => {
                return Err(Fault::not_found(format!(
                    "the name '{text}' is unknown; give one that a write has introduced"
                )));
            }
            None => {
                let mut number = table.next.min(most);
                while table.names.contains_key(&number) {
                    let full =
                        || Fault::exhausted(format!("all numbers of {} have names; use an existing name", self.uri));
                    number = number.checked_sub(1).ok_or_else(full)?;
                }
                table.next = number;
                number
            }
        };
        if new == NewName::Assign {
            table.numbers.insert(name.to_vec(), number);
            table.names.insert(number, name.to_vec());
            table.assigned.push(number);
        }
        Ok(number)
    }

    /// Removes all names except the first `count` in the order of assignment.
    fn remove_after(&self, count: usize) {
        let table = &mut *self.table.lock();
        for number in table.assigned.drain(count.min(table.assigned.len())..) {
            if let Some(name) = table.names.remove(&number) {
                table.numbers.remove(&name);
            }
            table.next = table.next.max(number);
        }
    }

    fn name(&self, value: &[u8]) -> Vec<u8> {
        let number = value.iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
        let table = self.table.lock();
        table.names.get(&number).cloned().unwrap_or_else(|| number.to_string().into_bytes())
    }
}

/// Returns the number that a text of decimal digits without leading zeros represents; `None` for any other text, and
/// for a number of more than 64 bits.
fn decimal(text: &str) -> Option<u64> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    text.parse().ok().filter(|_| digits)
}

/// The types of P4Info, and the names of the values of those types that are translated to strings.
#[derive(Debug, Default)]
pub struct Types {
    /// The types in the form in which P4Info declares them.
    pub info: p4info::P4TypeInfo,
    names: Mutex<BTreeMap<String, Arc<Names>>>,
}

/// A state of the names that can be restored: the number of names per URI, in the order of the URIs.
#[derive(Debug, Default)]
pub struct Checkpoint(Vec<usize>);

/// A name with the number that the switch assigned to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AssignedName {
    /// The URI of the types that share the name.
    pub uri: String,
    /// The name.
    pub name: Vec<u8>,
    /// The number that represents the name in the program.
    pub number: u64,
}

impl Types {
    /// Returns the types of `info`. No value has a name yet.
    pub fn new(info: &p4info::P4Info) -> Self {
        Self { info: info.type_info.clone().unwrap_or_default(), names: Mutex::default() }
    }

    /// Returns the form that values of the type `name` have for controllers; `None` for types that are not translated.
    ///
    /// # Errors
    /// Fails when the translation declares neither a width nor strings.
    pub fn sdn(&self, name: Option<&p4info::P4NamedType>, place: &str) -> Result<Option<Sdn>, BindError> {
        match name.and_then(|name| self.info.new_types.get(&name.name)).map(|definition| &definition.representation) {
            Some(Some(Representation::TranslatedType(translation))) => self.translated(translation, place).map(Some),
            _ => Ok(None),
        }
    }

    /// Returns the form that controllers use for a type, from the type's translation.
    ///
    /// # Errors
    /// Fails when the translation declares neither a width nor strings.
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

    /// Returns the current state of the names, for a later [`Types::remove_since`].
    pub fn checkpoint(&self) -> Checkpoint {
        Checkpoint(self.names.lock().values().map(|names| names.table.lock().assigned.len()).collect())
    }

    /// Removes the names that were assigned after the checkpoint.
    pub fn remove_since(&self, checkpoint: &Checkpoint) {
        for (names, count) in self.names.lock().values().zip(&checkpoint.0) {
            names.remove_after(*count);
        }
    }

    /// Returns the names that were assigned after the checkpoint, grouped by URI; the names of a URI are in the order
    /// of their assignment.
    pub fn assigned_since(&self, checkpoint: &Checkpoint) -> Vec<AssignedName> {
        let mut since = Vec::new();
        for (place, (uri, names)) in self.names.lock().iter().enumerate() {
            let table = names.table.lock();
            let earlier = checkpoint.0.get(place).copied().unwrap_or(0);
            let name = |number: &u64| table.names.get(number).cloned().unwrap_or_default();
            let numbers = table.assigned.iter().skip(earlier);
            since.extend(numbers.map(|number| AssignedName { uri: uri.clone(), name: name(number), number: *number }));
        }
        since
    }

    /// Restores a name and its number, which were saved before a restart.
    pub fn restore(&self, assigned: AssignedName) {
        if let Some(names) = self.names.lock().get(&assigned.uri) {
            let table = &mut *names.table.lock();
            table.numbers.insert(assigned.name.clone(), assigned.number);
            table.names.insert(assigned.number, assigned.name);
            table.assigned.push(assigned.number);
        }
    }

    /// Copies the names from another program's types, because this program receives entities that contain the
    /// names' numbers.
    pub fn take_over(&self, old: &Types) {
        let (names, old) = (self.names.lock(), old.names.lock());
        for (uri, names) in names.iter() {
            if let Some(old) = old.get(uri) {
                let (mut table, old) = (names.table.lock(), old.table.lock());
                *table = NameTable { width: table.width, ..old.clone() };
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

    /// Decodes a name that an update introduces, so that the name is assigned a number.
    fn decode(sdn: Option<&Sdn>, value: &[u8], width: u32) -> Outcome<Vec<u8>> {
        super::decode(sdn, value, width, NewName::Assign)
    }

    #[test]
    fn names_get_the_highest_numbers_and_digits_stand_for_themselves() {
        let sdn = Some(&names(9)).cloned();
        let (decode, encode) =
            (|name: &str| decode(sdn.as_ref(), name.as_bytes(), 9), |value: &[u8]| encode(sdn.as_ref(), value));
        assert_eq!(decode("uplink").unwrap(), [1, 0xff]);
        assert_eq!(decode("5").unwrap(), [0, 5]);
        assert_eq!(decode("510").unwrap(), [1, 0xfe]);
        assert_eq!(decode("007").unwrap(), [1, 0xfd]);
        assert_eq!(decode("uplink").unwrap(), [1, 0xff]);
        assert_eq!([encode(&[1, 0xff]), encode(&[5]), encode(&[1, 0xfd])], [&b"uplink"[..], b"5", b"007"]);
        assert_eq!(encode(&[0, 9]), b"9", "a number without a name");
        for (name, text) in [
            ("511", "the number 511 is that of the name 'uplink'"),
            ("512", "the number 512 is above 511"),
            ("", "the value is not a valid name; give text of 1 to 256 bytes"),
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
        let checkpoint = old.checkpoint();
        decode(Some(&sdn), b"later", 9).unwrap();
        let later = AssignedName { uri: "example".to_owned(), name: b"later".to_vec(), number: 509 };
        assert_eq!(old.assigned_since(&checkpoint), [later]);
        let (new, sdn) = types();
        old.assigned_since(&Checkpoint::default()).into_iter().for_each(|assigned| new.restore(assigned));
        assert_eq!(encode(Some(&sdn), &[1, 0xff]), b"uplink");
        assert_eq!(decode(Some(&sdn), b"next", 9).unwrap(), [1, 0xfc]);
        assert_eq!(new.assigned_since(&checkpoint).len(), 2);
    }

    #[test]
    fn names_run_out_with_the_numbers() {
        let sdn = Some(&names(2)).cloned();
        for name in ["a", "1", "b", "c"] {
            decode(sdn.as_ref(), name.as_bytes(), 2).unwrap();
        }
        assert_eq!(decode(sdn.as_ref(), b"d", 2).unwrap_err().code, tonic::Code::ResourceExhausted);
        assert_eq!(decode(sdn.as_ref(), b"c", 2).unwrap(), [0]);
    }

    #[test]
    fn removed_names_and_names_only_looked_up_leave_their_numbers_free() {
        let sdn = Some(&names(9)).cloned();
        let assign = |name: &[u8]| decode(sdn.as_ref(), name, 9);
        let look_up = |name: &[u8]| super::decode(sdn.as_ref(), name, 9, NewName::Refuse);
        assign(b"uplink").unwrap();
        for name in [&b"510"[..], b"a", b"b"] {
            assign(name).unwrap();
        }
        let Some(Sdn::Name(names)) = &sdn else { panic!() };
        names.remove_after(1);
        assert_eq!(look_up(b"a").unwrap_err().code, tonic::Code::NotFound);
        assert_eq!([look_up(b"uplink").unwrap(), look_up(b"510").unwrap()], [[1, 0xff], [1, 0xfe]]);
        assert!(look_up(b"511").unwrap_err().message.contains("is that of the name 'uplink'"));
        assert_eq!(assign(b"b").unwrap(), [1, 0xfe]);
    }
}
