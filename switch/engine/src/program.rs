//! The compiled program and what can be asked about it.
//!
//! Only data: [`crate::load`] reads and compiles a program, [`crate::native`] makes its machine code.

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

/// A checked and compiled program. Immutable; share it by `Arc`.
pub struct Program {
    pub(crate) phv: Phv,
    /// Constants.
    pub(crate) init: Vec<(Slot, u64)>,
    /// Scratch words that arithmetic in several words takes.
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
    /// Indices of checksums.
    pub(crate) verify: Vec<usize>,
    pub(crate) update: Vec<usize>,
    /// Headers, in the deparser's order.
    pub(crate) order: Vec<u16>,
    /// What the instructions alone do not tell.
    pub(crate) world: World,
    /// Made when the first engine asks for it; why not, otherwise.
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
    /// All tables, those that the compiler made for statements between tables included.
    pub fn tables(&self) -> impl Iterator<Item = (TableId, &TableInfo)> {
        self.tables.iter().enumerate().map(|(i, t)| (TableId(i as u32), &t.info))
    }
    /// The types of headers and of metadata.
    pub fn header_types(&self) -> impl Iterator<Item = &HeaderInfo> {
        self.headers.iter()
    }
    /// By name as in P4Info.
    #[must_use]
    pub fn table(&self, name: &str) -> Option<TableId> {
        self.table_by_name.get(name).copied().map(TableId)
    }
    /// About a table.
    #[must_use]
    pub fn table_info(&self, id: TableId) -> &TableInfo {
        &self.tables[id.index()].info
    }
    /// Bytes that the deparser writes at most.
    pub(crate) fn most_head_bytes(&self) -> usize {
        let plan = |h: &u16| &self.phv.plans[usize::from(self.phv.headers[usize::from(*h)].plan)];
        self.order.iter().map(|h| plan(h).most_bytes()).sum()
    }
    fn named(&self, actions: &[ActionId], name: &str) -> Option<ActionId> {
        actions.iter().copied().find(|a| self.actions[a.index()].info.name == name)
    }
    /// The table's action of that name.
    #[must_use]
    pub fn action(&self, table: TableId, name: &str) -> Option<ActionId> {
        self.named(&self.tables[table.index()].info.actions, name)
    }
    /// The action of that name that members of the profile may have.
    #[must_use]
    pub fn profile_action(&self, profile: ProfileId, name: &str) -> Option<ActionId> {
        self.profiles[profile.index()].info.tables.iter().find_map(|&t| self.action(t, name))
    }
    /// About an action.
    #[must_use]
    pub fn action_info(&self, id: ActionId) -> &ActionInfo {
        &self.actions[id.index()].info
    }
    /// By name as in P4Info.
    #[must_use]
    pub fn action_profile(&self, name: &str) -> Option<ProfileId> {
        self.profile_by_name.get(name).copied().map(ProfileId)
    }
    /// About an action profile.
    #[must_use]
    pub fn profile_info(&self, id: ProfileId) -> &ProfileInfo {
        &self.profiles[id.index()].info
    }
    /// By name as in P4Info.
    #[must_use]
    pub fn register(&self, name: &str) -> Option<RegisterId> {
        self.objects.register_by_name.get(name).copied().map(RegisterId)
    }
    /// About a register array.
    #[must_use]
    pub fn register_info(&self, id: RegisterId) -> &RegisterInfo {
        &self.objects.registers[id.index()]
    }
    /// By name as in P4Info. Indirect counters only.
    #[must_use]
    pub fn counter(&self, name: &str) -> Option<CounterId> {
        self.objects.counter_by_name.get(name).copied().map(CounterId)
    }
    /// About a counter array.
    #[must_use]
    pub fn counter_info(&self, id: CounterId) -> &CounterInfo {
        &self.objects.counters[id.index()]
    }
    /// Registers, indirect counters and meters, with the bytes that they take.
    pub fn arrays(&self) -> impl Iterator<Item = (&str, u64)> {
        self.objects.arrays.iter().map(|(name, bytes)| (&name[..], *bytes))
    }
    /// By name as in P4Info. Direct ones too.
    #[must_use]
    pub fn meter(&self, name: &str) -> Option<MeterId> {
        self.objects.meter_by_name.get(name).copied().map(MeterId)
    }
    /// About a meter array.
    #[must_use]
    pub fn meter_info(&self, id: MeterId) -> &MeterInfo {
        &self.objects.meters[id.index()]
    }
    /// By name as in P4Info.
    #[must_use]
    pub fn digest(&self, name: &str) -> Option<DigestId> {
        self.objects.digest_by_name.get(name).copied().map(DigestId)
    }
    /// About a digest.
    #[must_use]
    pub fn digest_info(&self, id: DigestId) -> &DigestInfo {
        &self.objects.digests[id.index()]
    }
    /// By name as in P4Info.
    #[must_use]
    pub fn value_set(&self, name: &str) -> Option<ValueSetId> {
        self.objects.value_set_by_name.get(name).copied().map(ValueSetId)
    }
    /// About a value set.
    #[must_use]
    pub fn value_set_info(&self, id: ValueSetId) -> &ValueSetInfo {
        &self.objects.value_sets[id.index()]
    }
}
