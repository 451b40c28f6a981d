//! Table entries as they are written and read.

use super::counter::{CounterData, MeterView};
use crate::program::ActionId;
use crate::table::keys::EntryId;

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
    pub(super) age: u64,
    pub(super) id: EntryId,
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
