//! Table entries as they are written and read.

use super::counter::{CounterData, MeterView};
use crate::program::ActionId;
use crate::table::keys::EntryId;

/// A field of an entry's key. `Optional(None)`, a zero mask, a zero prefix length and a full range match any value.
///
/// The JSON has ternary fields in the place of the program's optional ones. Such a field therefore accepts both
/// `Optional` and `Ternary`, and is read back as it was written. `Optional(None)` is accepted for every field that is
/// not exact.
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
    /// One byte string for each parameter.
    pub params: Vec<Vec<u8>>,
}

/// A member of a one-shot group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OneShotMember {
    /// The member's action.
    pub call: ActionCall,
    /// The member's share of the group's packets; at least 1.
    pub weight: u32,
    /// A port; while it is down, the member is not selected.
    pub watch_port: Option<u32>,
}

/// How a one-shot group selects a member for a packet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Selection {
    /// As the program's selector does it, which is by a hash in v1model.
    #[default]
    Default,
    /// By the hash of the program's selector.
    Hash,
    /// At random, independently for every packet.
    Random,
}

/// How the size of a one-shot group is counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CountedIn {
    /// As the program's selector declares it.
    #[default]
    Default,
    /// By the sum of the weights.
    Weights,
    /// By the number of members.
    Members,
}

/// A one-shot group: a group that belongs to a single entry.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OneShotGroup {
    /// The members, at least one.
    pub members: Vec<OneShotMember>,
    /// How a member is selected for a packet.
    pub selection: Selection,
    /// Stored and returned; the engine enforces no limit by it.
    pub counted_in: CountedIn,
}

impl From<Vec<OneShotMember>> for OneShotGroup {
    fn from(members: Vec<OneShotMember>) -> Self {
        Self { members, ..Self::default() }
    }
}

/// What a table entry does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntryAction {
    /// Runs an action; for direct tables.
    Call(ActionCall),
    /// Runs the action of the member with this id; for tables with an action profile.
    Member(u32),
    /// Runs the action of a member selected from the group with this id; for tables with a selector.
    Group(u32),
    /// Runs the action of a member selected from the entry's own group, which is replaced as a whole; for tables with a
    /// selector.
    OneShot(OneShotGroup),
}

/// A table entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The key, one element for each key field of the table, in order.
    pub key: Vec<KeyField>,
    /// The priority, of which the largest wins; 0 in tables that need none.
    pub priority: i32,
    /// What the entry does.
    pub action: EntryAction,
    /// P4Runtime's `metadata`; stored and returned.
    pub metadata: Vec<u8>,
    /// The idle timeout in nanoseconds; 0 for none.
    pub idle_timeout_ns: u64,
    /// A number for the client's use (P4Runtime's deprecated `controller_metadata`); stored and returned.
    pub cookie: u64,
}

/// A table entry as read, with its direct resources.
#[derive(Debug, Clone, PartialEq)]
pub struct EntryView {
    /// The entry.
    pub entry: Entry,
    /// Whether the program declares the entry.
    pub is_const: bool,
    /// The direct counter, if the table has one.
    pub counter: Option<CounterData>,
    /// The direct meter, if the table has one.
    pub meter: Option<MeterView>,
    /// When the entry last matched a packet or was last written, in nanoseconds since the caller's origin. Updated only
    /// in tables with `support_timeout`.
    pub last_hit: u64,
}

/// The place of an entry in its table, valid until the table is changed. Places are ordered by the entries' age, oldest
/// first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct EntryPlace {
    pub(super) age: u64,
    pub(super) id: EntryId,
}

/// A table's default entry as read, with its direct resources.
#[derive(Debug, Clone, PartialEq)]
pub struct DefaultView {
    /// The default action; `None` if a miss runs no action.
    pub action: Option<EntryAction>,
    /// P4Runtime's `metadata`; stored and returned.
    pub metadata: Vec<u8>,
    /// A number for the client's use; stored and returned.
    pub cookie: u64,
    /// The direct counter, if the table has one.
    pub counter: Option<CounterData>,
    /// The direct meter, if the table has one.
    pub meter: Option<MeterView>,
}

/// The entry whose direct counter or meter is meant.
#[derive(Debug, Clone, Copy)]
pub enum Of<'k> {
    /// The entry with this key and priority.
    Entry(&'k [KeyField], i32),
    /// The default entry.
    Default,
}
