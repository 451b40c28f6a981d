//! Reading and changing state.
//!
//! Every method is atomic to packets, because it borrows the engine exclusively: the caller keeps the engine in one mutex and
//! locks it once per batch of packets and once per request. A method that returns an error has changed nothing.
//!
//! Byte strings are big-endian. Any length is accepted as long as the value fits the width; what is read back has exactly
//! `ceil(width / 8)` bytes. Priorities are P4Runtime's: the larger wins.

use crate::engine::Engine;
use crate::error::ControlError;
use crate::program::{
    ActionId, CounterId, DigestId, MeterId, ProfileId, RegisterId, TableId, ValueSetId,
};

type Result<T> = std::result::Result<T, ControlError>;

/// One field of an entry's key. `Optional(None)`, a zero mask, a zero prefix and a full range match anything.
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
    /// Kept and returned, not acted upon. Empty: none.
    pub watch_port: Vec<u8>,
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
    OneShot(Vec<OneShotMember>),
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
    /// Direct meter, if the table has one: its configuration (`None`: default).
    pub meter: Option<Option<MeterConfig>>,
    /// When it last matched (or was written), in the caller's nanoseconds. Kept only in tables with `support_timeout`.
    pub last_hit: u64,
}

/// A counter cell; both are always counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
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
    /// Kept and returned, not acted upon. Empty: none.
    pub watch_port: Vec<u8>,
}

/// A group of an action profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// Its id.
    pub id: u32,
    /// In the order of selection.
    pub members: Vec<GroupMember>,
    /// Kept and returned.
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

#[allow(unused_variables)]
impl Engine {
    /// Adds an entry; `now` is the start of its idle time.
    ///
    /// # Errors
    /// `AlreadyExists`, `InvalidArgument`, `ResourceExhausted`, `PermissionDenied` (const table), `NotFound` (member or group).
    pub fn table_insert(&mut self, now: u64, table: TableId, entry: &Entry) -> Result<()> {
        todo!()
    }
    /// Replaces the action and attributes of the entry with the same key and priority. Its counter is kept.
    ///
    /// # Errors
    /// As `table_insert`, and `NotFound`.
    pub fn table_modify(&mut self, now: u64, table: TableId, entry: &Entry) -> Result<()> {
        todo!()
    }
    /// Removes the entry with this key and priority.
    ///
    /// # Errors
    /// `NotFound`, `InvalidArgument`, `PermissionDenied`.
    pub fn table_delete(&mut self, table: TableId, key: &[KeyField], priority: i32) -> Result<()> {
        todo!()
    }
    /// The entry with this key and priority.
    ///
    /// # Errors
    /// `NotFound`, `InvalidArgument`.
    pub fn table_get(&self, table: TableId, key: &[KeyField], priority: i32) -> Result<EntryView> {
        todo!()
    }
    /// All entries, oldest first, const ones included.
    pub fn table_entries(&self, table: TableId) -> Vec<EntryView> {
        todo!()
    }
    /// Number of entries.
    pub fn table_len(&self, table: TableId) -> usize {
        todo!()
    }
    /// The default action; `None`: none (a miss does nothing).
    pub fn table_default(&self, table: TableId) -> Option<EntryAction> {
        todo!()
    }
    /// Sets the default action, or (`None`) puts the program's own back.
    ///
    /// # Errors
    /// `PermissionDenied` (const), `InvalidArgument`, `Unimplemented`.
    pub fn table_set_default(&mut self, table: TableId, action: Option<&EntryAction>) -> Result<()> {
        todo!()
    }
    /// Sets an entry's direct counter.
    ///
    /// # Errors
    /// `NotFound`, `InvalidArgument` (no direct counter).
    pub fn direct_counter_write(&mut self, table: TableId, key: &[KeyField], priority: i32, value: CounterData) -> Result<()> {
        todo!()
    }
    /// Configures an entry's direct meter; `None`: default (always green).
    ///
    /// # Errors
    /// `NotFound`, `InvalidArgument` (no direct meter, CIR above PIR).
    pub fn direct_meter_write(&mut self, now: u64, table: TableId, key: &[KeyField], priority: i32, config: Option<MeterConfig>) -> Result<()> {
        todo!()
    }
    /// Entries that have now been idle for their timeout and were not yet reported since they last matched.
    pub fn take_idle(&mut self, now: u64) -> Vec<(TableId, EntryView)> {
        todo!()
    }

    /// Creates a member.
    ///
    /// # Errors
    /// `AlreadyExists`, `InvalidArgument`, `ResourceExhausted`.
    pub fn member_insert(&mut self, profile: ProfileId, member: &Member) -> Result<()> {
        todo!()
    }
    /// Changes what a member does, for all entries and groups that refer to it.
    ///
    /// # Errors
    /// `NotFound`, `InvalidArgument`.
    pub fn member_modify(&mut self, profile: ProfileId, member: &Member) -> Result<()> {
        todo!()
    }
    /// Deletes a member that nothing refers to.
    ///
    /// # Errors
    /// `NotFound`, `FailedPrecondition`.
    pub fn member_delete(&mut self, profile: ProfileId, id: u32) -> Result<()> {
        todo!()
    }
    /// All members made by `member_insert`, by id.
    pub fn members(&self, profile: ProfileId) -> Vec<Member> {
        todo!()
    }
    /// Creates a group.
    ///
    /// # Errors
    /// `AlreadyExists`, `InvalidArgument`, `NotFound` (member), `ResourceExhausted`.
    pub fn group_insert(&mut self, profile: ProfileId, group: &Group) -> Result<()> {
        todo!()
    }
    /// Replaces a group's members at once: no packet sees a mixture.
    ///
    /// # Errors
    /// `NotFound`, `InvalidArgument`, `ResourceExhausted`.
    pub fn group_modify(&mut self, profile: ProfileId, group: &Group) -> Result<()> {
        todo!()
    }
    /// Deletes a group that no entry refers to.
    ///
    /// # Errors
    /// `NotFound`, `FailedPrecondition`.
    pub fn group_delete(&mut self, profile: ProfileId, id: u32) -> Result<()> {
        todo!()
    }
    /// All groups, by id.
    pub fn groups(&self, profile: ProfileId) -> Vec<Group> {
        todo!()
    }

    /// One register cell.
    ///
    /// # Errors
    /// `OutOfRange`.
    pub fn register_read(&self, register: RegisterId, index: u64) -> Result<Vec<u8>> {
        todo!()
    }
    /// Appends `count` cells from `start`, each `ceil(width / 8)` bytes, to `out`: one lock for a whole array.
    ///
    /// # Errors
    /// `OutOfRange`.
    pub fn register_read_range(&self, register: RegisterId, start: u64, count: u64, out: &mut Vec<u8>) -> Result<()> {
        todo!()
    }
    /// Sets one cell.
    ///
    /// # Errors
    /// `OutOfRange`, `InvalidArgument` (does not fit).
    pub fn register_write(&mut self, register: RegisterId, index: u64, value: &[u8]) -> Result<()> {
        todo!()
    }
    /// Sets every cell.
    ///
    /// # Errors
    /// `InvalidArgument` (does not fit).
    pub fn register_fill(&mut self, register: RegisterId, value: &[u8]) -> Result<()> {
        todo!()
    }

    /// One cell of an indirect counter.
    ///
    /// # Errors
    /// `OutOfRange`.
    pub fn counter_read(&self, counter: CounterId, index: u64) -> Result<CounterData> {
        todo!()
    }
    /// Sets one cell.
    ///
    /// # Errors
    /// `OutOfRange`.
    pub fn counter_write(&mut self, counter: CounterId, index: u64, value: CounterData) -> Result<()> {
        todo!()
    }

    /// One cell's configuration; `None`: default (always green).
    ///
    /// # Errors
    /// `OutOfRange`.
    pub fn meter_read(&self, meter: MeterId, index: u64) -> Result<Option<MeterConfig>> {
        todo!()
    }
    /// Configures one cell; `None`: default. The bucket starts full, but the same configuration again leaves it alone.
    ///
    /// # Errors
    /// `OutOfRange`, `InvalidArgument` (CIR above PIR).
    pub fn meter_write(&mut self, now: u64, meter: MeterId, index: u64, config: Option<MeterConfig>) -> Result<()> {
        todo!()
    }

    /// Creates or replaces (`Some`), or deletes (`None`) a multicast group.
    ///
    /// # Errors
    /// `InvalidArgument` (group 0, the same replica twice), `NotFound` (delete).
    pub fn multicast_set(&mut self, group: u32, replicas: Option<&[Replica]>) -> Result<()> {
        todo!()
    }
    /// All multicast groups, by id.
    pub fn multicast_groups(&self) -> Vec<(u32, Vec<Replica>)> {
        todo!()
    }
    /// Creates or replaces (`Some`), or deletes (`None`) a clone session.
    ///
    /// # Errors
    /// `InvalidArgument`, `NotFound` (delete).
    pub fn clone_session_set(&mut self, session: u32, config: Option<&CloneSession>) -> Result<()> {
        todo!()
    }
    /// All clone sessions, by id.
    pub fn clone_sessions(&self) -> Vec<(u32, CloneSession)> {
        todo!()
    }

    /// Starts (`Some`) or stops (`None`) a digest. Messages of a stopped digest are not kept.
    pub fn digest_configure(&mut self, digest: DigestId, config: Option<DigestConfig>) {
        todo!()
    }
    /// A digest's configuration.
    pub fn digest_config(&self, digest: DigestId) -> Option<DigestConfig> {
        todo!()
    }
    /// Queued digest messages, oldest first; empties the queue.
    pub fn take_digests(&mut self) -> Vec<Digest> {
        todo!()
    }

    /// Replaces the values of a parser value set: (value, mask) pairs; an empty mask is all ones.
    ///
    /// # Errors
    /// `InvalidArgument`, `ResourceExhausted`.
    pub fn value_set_write(&mut self, set: ValueSetId, values: &[(Vec<u8>, Vec<u8>)]) -> Result<()> {
        todo!()
    }
    /// The values as written.
    pub fn value_set_read(&self, set: ValueSetId) -> Vec<(Vec<u8>, Vec<u8>)> {
        todo!()
    }
}
