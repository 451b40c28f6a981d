//! The compiled program, and queries about its objects.
//!
//! This module contains only data. [`crate::load`] reads and compiles a program, and [`crate::native`] compiles it to
//! machine code.

mod info;
mod objects;
mod standard;
mod table;

use std::collections::HashMap;
use std::sync::OnceLock;

use crate::code::Code;
use crate::dataflow::World;
use crate::layout::Slot;
use crate::machine_code::MachineCode;
use crate::phv::Phv;

pub use info::{
    ActionId, ActionInfo, CounterId, CounterInfo, DigestId, DigestInfo, FieldInfo, HeaderInfo, KeyInfo, MatchKind,
    MeterId, MeterInfo, ParamInfo, ProfileId, ProfileInfo, RegisterId, RegisterInfo, TableId, TableInfo, ValueSetId,
    ValueSetInfo,
};
pub(crate) use objects::{DigestPart, Objects};
pub(crate) use standard::{Checksum, CoreErrors, Standard};
pub(crate) use table::{Action, ConstEntry, DefaultAction, Direct, Next, Node, Profile, Table};

/// A checked and compiled program. It is immutable, so engines and other users can share it by `Arc`.
pub struct Program {
    pub(crate) phv: Phv,
    /// The slots of constants, with their values.
    pub(crate) init: Vec<(Slot, u64)>,
    /// The number of scratch words that arithmetic on several words needs.
    pub(crate) wide: usize,
    pub(crate) code: Code,
    pub(crate) traced: Code,
    pub(crate) actions: Vec<Action>,
    pub(crate) tables: Vec<Table>,
    pub(crate) table_by_name: HashMap<String, u32>,
    pub(crate) profiles: Vec<Profile>,
    pub(crate) profile_by_name: HashMap<String, u32>,
    pub(crate) objects: Objects,
    pub(crate) headers: Vec<HeaderInfo>,
    pub(crate) standard: Standard,
    pub(crate) errors: CoreErrors,
    pub(crate) checksums: Vec<Checksum>,
    /// The indices of the checksums that are verified after the parser (`verify`), and of those that are updated before
    /// the deparser (`update`).
    pub(crate) verify: Vec<usize>,
    pub(crate) update: Vec<usize>,
    /// The headers in the order in which the deparser writes them.
    pub(crate) order: Vec<u16>,
    /// The slots that the program reads and writes outside of its instructions.
    pub(crate) world: World,
    /// The machine code, which is compiled when an engine first needs it. The error is the reason why the program has
    /// no machine code.
    pub(crate) native: OnceLock<Result<MachineCode, String>>,
}

impl std::fmt::Debug for Program {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "Program({} tables, {} actions, {} instructions)",
            self.tables.len(),
            self.actions.len(),
            self.code.ops.len()
        )
    }
}

impl Program {
    /// Returns all tables, including tables that the compiler generated for statements between tables.
    pub fn tables(&self) -> impl Iterator<Item = (TableId, &TableInfo)> {
        self.tables.iter().enumerate().map(|(i, t)| (TableId(i as u32), &t.info))
    }
    /// Returns the types of headers and of metadata.
    pub fn header_types(&self) -> impl Iterator<Item = &HeaderInfo> {
        self.headers.iter()
    }
    /// Returns the table with this name in P4Info.
    #[must_use]
    pub fn table(&self, name: &str) -> Option<TableId> {
        self.table_by_name.get(name).copied().map(TableId)
    }
    /// Returns the description of a table.
    #[must_use]
    pub fn table_info(&self, id: TableId) -> &TableInfo {
        &self.tables[id.index()].info
    }
    /// Returns the maximum number of bytes that the deparser writes.
    pub(crate) fn most_head_bytes(&self) -> usize {
        let plan = |h: &u16| &self.phv.plans[usize::from(self.phv.headers[usize::from(*h)].plan)];
        self.order.iter().map(|h| plan(h).most_bytes()).sum()
    }
    fn named(&self, actions: &[ActionId], name: &str) -> Option<ActionId> {
        actions.iter().copied().find(|a| self.actions[a.index()].info.name == name)
    }
    /// Returns the action with this name that entries of the table may have.
    #[must_use]
    pub fn action(&self, table: TableId, name: &str) -> Option<ActionId> {
        self.named(&self.tables[table.index()].info.actions, name)
    }
    /// Returns the action with this name that members of the profile may have.
    #[must_use]
    pub fn profile_action(&self, profile: ProfileId, name: &str) -> Option<ActionId> {
        self.profiles[profile.index()].info.tables.iter().find_map(|&t| self.action(t, name))
    }
    /// Returns the description of an action.
    #[must_use]
    pub fn action_info(&self, id: ActionId) -> &ActionInfo {
        &self.actions[id.index()].info
    }
    /// Returns the action profile with this name in P4Info.
    #[must_use]
    pub fn action_profile(&self, name: &str) -> Option<ProfileId> {
        self.profile_by_name.get(name).copied().map(ProfileId)
    }
    /// Returns the description of an action profile.
    #[must_use]
    pub fn profile_info(&self, id: ProfileId) -> &ProfileInfo {
        &self.profiles[id.index()].info
    }
    /// Returns the register array with this name in P4Info.
    #[must_use]
    pub fn register(&self, name: &str) -> Option<RegisterId> {
        self.objects.register_by_name.get(name).copied().map(RegisterId)
    }
    /// Returns the description of a register array.
    #[must_use]
    pub fn register_info(&self, id: RegisterId) -> &RegisterInfo {
        &self.objects.registers[id.index()]
    }
    /// Returns the indirect counter array with this name in P4Info.
    #[must_use]
    pub fn counter(&self, name: &str) -> Option<CounterId> {
        self.objects.counter_by_name.get(name).copied().map(CounterId)
    }
    /// Returns the description of a counter array.
    #[must_use]
    pub fn counter_info(&self, id: CounterId) -> &CounterInfo {
        &self.objects.counters[id.index()]
    }
    /// Returns the name and the size in bytes of each array of registers, indirect counters or indirect meters.
    pub fn arrays(&self) -> impl Iterator<Item = (&str, u64)> {
        self.objects.arrays.iter().map(|(name, bytes)| (&name[..], *bytes))
    }
    /// Returns the direct or indirect meter array with this name in P4Info.
    #[must_use]
    pub fn meter(&self, name: &str) -> Option<MeterId> {
        self.objects.meter_by_name.get(name).copied().map(MeterId)
    }
    /// Returns the description of a meter array.
    #[must_use]
    pub fn meter_info(&self, id: MeterId) -> &MeterInfo {
        &self.objects.meters[id.index()]
    }
    /// Returns the digest with this name in P4Info.
    #[must_use]
    pub fn digest(&self, name: &str) -> Option<DigestId> {
        self.objects.digest_by_name.get(name).copied().map(DigestId)
    }
    /// Returns the description of a digest.
    #[must_use]
    pub fn digest_info(&self, id: DigestId) -> &DigestInfo {
        &self.objects.digests[id.index()]
    }
    /// Returns the value set with this name in P4Info.
    #[must_use]
    pub fn value_set(&self, name: &str) -> Option<ValueSetId> {
        self.objects.value_set_by_name.get(name).copied().map(ValueSetId)
    }
    /// Returns the description of a value set.
    #[must_use]
    pub fn value_set_info(&self, id: ValueSetId) -> &ValueSetInfo {
        &self.objects.value_sets[id.index()]
    }
}
