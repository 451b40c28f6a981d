//! Table entries in the form in which the control plane writes and reads them.

use super::counter::{CounterData, MeterView};
use crate::program::ActionId;
use crate::table::keys::EntryId;

/// A field of an entry's key. `Optional(None)`, a zero mask, a zero prefix length and a full range match any value.
///
/// p4c's JSON represents the program's optional key fields as ternary fields. A ternary field therefore accepts both
/// `Optional` and `Ternary`, and reading the entry returns the variant that was written. Every field that is not exact
/// accepts `Optional(None)`.
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
    /// The id of the action in the table. Each table has its own copy of an action.
    pub action: ActionId,
    /// One big-endian byte string for each parameter.
    pub params: Vec<Vec<u8>>,
}

/// A member of a one-shot group, which is a group that belongs to a single entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OneShotMember {
    /// The member's action.
    pub call: ActionCall,
    /// The member's relative share of the group's packets; at least 1.
    pub weight: u32,
    /// The port that the member depends on, if any. While this port is down, the member is not selected.
    pub watch_port: Option<u32>,
}

/// The method by which a one-shot group selects a member for a packet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Selection {
    /// The method of the program's selector, which in v1model is a hash.
    #[default]
    Default,
    /// The hash of the program's selector over the packet's selector fields.
    Hash,
    /// A random choice, independent for every packet.
    Random,
}

/// The unit in which the size of a one-shot group is counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CountedIn {
    /// The unit that the program's selector declares.
    #[default]
    Default,
    /// The size is the sum of the members' weights.
    Weights,
    /// The size is the number of members.
    Members,
}

/// A one-shot group: a group that belongs to a single entry.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OneShotGroup {
    /// The members of the group. A group must have at least one member.
    pub members: Vec<OneShotMember>,
    /// The method that selects a member for a packet.
    pub selection: Selection,
    /// The unit of the group's size. The engine only stores and returns this value and enforces no limit by it.
    pub counted_in: CountedIn,
}

impl From<Vec<OneShotMember>> for OneShotGroup {
    fn from(members: Vec<OneShotMember>) -> Self {
        Self { members, ..Self::default() }
    }
}

/// The action that a table entry runs on packets that it matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntryAction {
    /// Runs an action. Only tables without an action profile accept this variant.
    Call(ActionCall),
    /// Runs the action of the member with this id. Only tables with an action profile accept this variant.
    Member(u32),
    /// Runs the action of a member selected from the group with this id. Only tables with a selector accept this
    /// variant.
    Group(u32),
    /// Runs the action of a member selected from the group in this entry. Only tables with a selector accept this
    /// variant. The group can only be replaced as a whole.
    OneShot(OneShotGroup),
}

/// A table entry in the form in which the control plane writes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The key, which has one element for each key field of the table, in order.
    pub key: Vec<KeyField>,
    /// The priority. Of several matching entries, the entry with the largest priority is selected. The priority is 0 in
    /// tables without priorities.
    pub priority: i32,
    /// The action that the entry runs.
    pub action: EntryAction,
    /// P4Runtime's `metadata` of the entry. The engine only stores and returns it.
    pub metadata: Vec<u8>,
    /// The idle timeout in nanoseconds; 0 means no timeout.
    pub idle_timeout_ns: u64,
    /// A number for the client's use (P4Runtime's deprecated `controller_metadata`). The engine only stores and returns
    /// it.
    pub cookie: u64,
}

/// A table entry as the control plane reads it, with its direct counter and meter.
#[derive(Debug, Clone, PartialEq)]
pub struct EntryView {
    /// The entry as the control plane wrote it, with every key field at its full width (`ceil(width / 8)` bytes).
    pub entry: Entry,
    /// Whether the program itself declares the entry as constant.
    pub is_const: bool,
    /// The value of the direct counter; `None` if the table has no direct counter.
    pub counter: Option<CounterData>,
    /// The state of the direct meter; `None` if the table has no direct meter.
    pub meter: Option<MeterView>,
    /// The time when the entry last matched a packet or was last written, as the `now` in nanoseconds that the caller
    /// passed with the packet or the write. A match updates the time only in tables with `support_timeout`.
    pub last_hit: u64,
}

/// The place of an entry in its table. The place is valid until the table is changed. Places sort by the entries' age,
/// oldest entry first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct EntryPlace {
    pub(super) age: u64,
    pub(super) id: EntryId,
}

/// A table's default entry as the control plane reads it, with its direct counter and meter.
#[derive(Debug, Clone, PartialEq)]
pub struct DefaultView {
    /// The default action; `None` if a miss runs no action.
    pub action: Option<EntryAction>,
    /// P4Runtime's `metadata` of the entry. The engine only stores and returns it.
    pub metadata: Vec<u8>,
    /// A number for the client's use. The engine only stores and returns it.
    pub cookie: u64,
    /// The value of the direct counter; `None` if the table has no direct counter.
    pub counter: Option<CounterData>,
    /// The state of the direct meter; `None` if the table has no direct meter.
    pub meter: Option<MeterView>,
}

/// Selects the entry whose direct counter or direct meter is read or written.
#[derive(Debug, Clone, Copy)]
pub enum Of<'k> {
    /// The entry with this key and priority.
    Entry(&'k [KeyField], i32),
    /// The default entry.
    Default,
}
