//! Reading and changing state.
//!
//! Every method is atomic to packets, because it borrows the engine exclusively: the caller keeps the engine in one mutex and
//! locks it once per batch of packets and once per request. A method that returns an error has changed nothing.
//!
//! Byte strings are big-endian. Any length is accepted as long as the value fits the width; what is read back has exactly
//! `ceil(width / 8)` bytes. Priorities are P4Runtime's: the larger wins.

mod arrays;
mod defaults;
mod limits;
mod others;
mod ports;
mod profiles;
mod succession;
mod tables;
mod undo;

use std::fmt::Display;

use num_bigint::BigUint;

use crate::bits::limbs_to_bytes;
use crate::codegen::to_limbs;
use crate::error::ControlError;
use crate::layout::limbs;
use crate::profile::Call;
use crate::program::{ActionId, DigestId, Program};
use crate::table::store::EntryId;

pub use limits::{ProfileLimit, ProfileSize};
pub use succession::{Array, EntryPair};
pub use undo::{SavedDefault, SavedEntry, SavedGroup, SavedMember, SavedMeter};

type Result<T> = std::result::Result<T, ControlError>;

/// One field of an entry's key. `Optional(None)`, a zero mask, a zero prefix and a full range match anything.
///
/// The JSON has ternary fields where the program has optional ones: such fields take `Optional` and `Ternary` alike, and are read
/// as they were written. `Optional(None)` is taken for any field that is not exact.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum KeyField {
    Exact(Vec<u8>),
    Lpm { value: Vec<u8>, prefix_len: u32 },
    Ternary { value: Vec<u8>, mask: Vec<u8> },
    Range { low: Vec<u8>, high: Vec<u8> },
    Optional(Option<Vec<u8>>),
}

/// An action and its parameters, in the order of [`crate::ActionInfo::params`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActionCall {
    /// The table's own copy of the action.
    pub action: ActionId,
    /// One byte string per parameter.
    pub params: Vec<Vec<u8>>,
}

/// One member of a one-shot group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OneShotMember {
    /// What it does.
    pub call: ActionCall,
    /// Share; at least 1.
    pub weight: u32,
    /// While this port is down, the member is left out of the choice.
    pub watch_port: Option<u32>,
}

/// How a packet chooses a member of a one-shot group.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Selection {
    /// As the program's selector has it, which is by a hash in v1model.
    #[default]
    Default,
    /// By the hash of the program's selector.
    Hash,
    /// At random, for every packet anew.
    Random,
}

/// What the size of a one-shot group is counted in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CountedIn {
    /// As the program's selector has it.
    #[default]
    Default,
    /// The weights together.
    Weights,
    /// The members.
    Members,
}

/// A one-shot group: an entry's own.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OneShotGroup {
    /// At least one.
    pub members: Vec<OneShotMember>,
    /// How one of them is chosen.
    pub selection: Selection,
    /// Kept and returned; the limit is the caller's to know.
    pub counted_in: CountedIn,
}

impl From<Vec<OneShotMember>> for OneShotGroup {
    fn from(members: Vec<OneShotMember>) -> Self {
        Self { members, ..Self::default() }
    }
}

/// What an entry does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntryAction {
    /// Direct tables.
    Call(ActionCall),
    /// Tables with an action profile: a member by id.
    Member(u32),
    /// Tables with a selector: a group by id.
    Group(u32),
    /// Tables with a selector: an own group, replaced as a whole.
    OneShot(OneShotGroup),
}

/// A table entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// One per key field of the table, in order.
    pub key: Vec<KeyField>,
    /// Larger wins; 0 in tables that need none.
    pub priority: i32,
    /// What it does.
    pub action: EntryAction,
    /// P4Runtime's `metadata`, kept and returned.
    pub metadata: Vec<u8>,
    /// 0: none.
    pub idle_timeout_ns: u64,
    /// The caller's own (P4Runtime's deprecated `controller_metadata`), kept and returned.
    pub cookie: u64,
}

/// A table entry as read, with its direct resources.
#[derive(Debug, Clone, PartialEq)]
pub struct EntryView {
    /// The entry.
    pub entry: Entry,
    /// It belongs to the program.
    pub is_const: bool,
    /// Direct counter, if the table has one.
    pub counter: Option<CounterData>,
    /// Direct meter, if the table has one.
    pub meter: Option<MeterView>,
    /// When it last matched (or was written), in the caller's nanoseconds. Kept only in tables with `support_timeout`.
    pub last_hit: u64,
}

/// Where an entry of a table is, until the table is changed. The smaller, the older.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct EntryPlace {
    age: u64,
    id: EntryId,
}

/// A counter cell; both are always counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(C)]
#[allow(missing_docs)]
pub struct CounterData {
    pub packets: u64,
    pub bytes: u64,
}

/// A two-rate three-colour meter's configuration: per second, in packets or bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct MeterConfig {
    pub cir: u64,
    pub cburst: u64,
    pub pir: u64,
    pub pburst: u64,
}

/// A meter as read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MeterView {
    /// Its configuration (`None`: default, always green).
    pub config: Option<MeterConfig>,
    /// Packets and bytes that were given each colour: green, yellow, red.
    pub counts: [CounterData; 3],
}

/// A table's default entry as read, with its direct resources.
#[derive(Debug, Clone, PartialEq)]
pub struct DefaultView {
    /// The default action; `None`: none (a miss does nothing).
    pub action: Option<EntryAction>,
    /// Kept and returned.
    pub metadata: Vec<u8>,
    /// The caller's own, kept and returned.
    pub cookie: u64,
    /// Direct counter, if the table has one.
    pub counter: Option<CounterData>,
    /// Direct meter, if the table has one.
    pub meter: Option<MeterView>,
}

/// An entry that a direct counter or meter belongs to.
#[derive(Debug, Clone, Copy)]
pub enum Of<'k> {
    /// The entry with this key and priority.
    Entry(&'k [KeyField], i32),
    /// The default entry.
    Default,
}

/// A member of an action profile.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Member {
    pub id: u32,
    pub call: ActionCall,
}

/// A member's place in a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupMember {
    /// The member's id.
    pub member: u32,
    /// Share; at least 1.
    pub weight: u32,
    /// While this port is down, the member is left out of the choice.
    pub watch_port: Option<u32>,
}

/// A group of an action profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// Its id.
    pub id: u32,
    /// As written; the choice goes by the order in which members were made, not by this one.
    pub members: Vec<GroupMember>,
    /// Kept and returned; what it counts is the caller's to know.
    pub max_size: u32,
}

/// One copy that multicast or cloning makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Replica {
    /// `egress_port` of the copy.
    pub port: u32,
    /// `egress_rid` of the copy.
    pub instance: u16,
}

/// A clone session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CloneSession {
    /// The copies.
    pub replicas: Vec<Replica>,
    /// Kept and returned.
    pub class_of_service: u32,
    /// Copies are cut to this many bytes; 0: whole.
    pub packet_length_bytes: u32,
}

/// How messages of a digest are gathered. The engine queues them; the caller does the batching.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct DigestConfig {
    pub max_timeout_ns: u64,
    pub max_list_size: u32,
    pub ack_timeout_ns: u64,
}

/// One digest message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Digest {
    /// Which.
    pub digest: DigestId,
    /// When, in the caller's nanoseconds.
    pub time: u64,
    /// One byte string per field, `ceil(width / 8)` bytes each.
    pub fields: Vec<Vec<u8>>,
}

/// A value's words, if it fits the width; `what` it is, for the text of the error.
fn words(bytes: &[u8], width: u32, what: impl Display) -> Result<Vec<u64>> {
    let zeros = bytes.iter().take_while(|&&b| b == 0).count();
    let bytes = &bytes[zeros..];
    let bits = bytes.first().map_or(0, |b| 8 * bytes.len() - b.leading_zeros() as usize);
    if bits > width as usize {
        return Err(ControlError::InvalidArgument(format!(
            "{what}: the value needs {bits} bits, {width} are there; give one that fits"
        )));
    }
    if width <= 64 {
        return Ok(vec![bytes.iter().fold(0, |v, &b| v << 8 | u64::from(b))]);
    }
    Ok(to_limbs(&BigUint::from_bytes_be(bytes).into(), width))
}

/// The value with exactly `ceil(width / 8)` bytes.
fn bytes(words: &[u64], width: u32) -> Vec<u8> {
    limbs_to_bytes(words, width)
}

/// Checks an action call and packs its parameters.
fn call(program: &Program, call: &ActionCall) -> Result<Call> {
    let Some(action) = program.actions.get(call.action.index()) else {
        return Err(ControlError::InvalidArgument(format!(
            "there is no action {}; give one of the program",
            call.action.0
        )));
    };
    if call.params.len() != action.params.len() {
        let (name, n) = (&action.info.name, action.params.len());
        return Err(ControlError::InvalidArgument(format!(
            "action '{name}' has {n} parameters, {} are given; give one of each",
            call.params.len()
        )));
    }
    let mut params = Vec::with_capacity(action.words());
    for (value, info) in call.params.iter().zip(&action.info.params) {
        params.extend(words(
            value,
            info.width,
            format_args!("parameter '{}' of action '{}'", info.name, action.info.name),
        )?);
    }
    Ok(Call { action: call.action, params: params.into() })
}

/// The reverse of `call`.
fn view_call(program: &Program, call: &Call) -> ActionCall {
    let mut at = 0;
    let mut params = Vec::new();
    for info in &program.actions[call.action.index()].info.params {
        let n = limbs(info.width);
        params.push(bytes(&call.params[at..at + n], info.width));
        at += n;
    }
    ActionCall { action: call.action, params }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn byte_strings() {
        assert_eq!(words(&[], 8, "x").unwrap(), [0]);
        assert_eq!(words(&[0, 0, 1, 0xff], 9, "x").unwrap(), [0x1ff]);
        assert_eq!(words(&[1; 9], 72, "x").unwrap(), [0x0101_0101_0101_0101, 1]);
        let e = words(&[2, 0], 9, "key field 'a'").unwrap_err();
        assert_eq!(
            e.to_string(),
            "invalid argument: key field 'a': the value needs 10 bits, 9 are there; give one that fits"
        );
        assert_eq!(bytes(&[0x1ff], 9), [1, 0xff]);
        assert_eq!(bytes(&[5, 1], 65), [1, 0, 0, 0, 0, 0, 0, 0, 5]);
    }
}
