//! The compiled program and what can be asked about it.

use std::collections::HashMap;
use std::sync::OnceLock;

use crate::code::Code;
use crate::error::LoadError;
use crate::expr::Expr;
use crate::layout::{Cell, FieldRef, Slot};
use crate::load::load;
use crate::load::objects::Objects;
use crate::load::table::{Action, Profile, Table};
use crate::native::Native;
use crate::optimize::World;
use crate::phv::Phv;

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub u32);
        impl $name {
            /// The index as `usize`.
            #[must_use]
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }
    )*};
}

ids! {
    /// A table of the program.
    TableId,
    /// An action; p4c makes one copy of an action per table that uses it, so look them up by table.
    ActionId,
    /// An action profile (with or without selector).
    ProfileId,
    /// A register array.
    RegisterId,
    /// An indirect counter array.
    CounterId,
    /// A meter array, indirect or direct.
    MeterId,
    /// A digest (learn list).
    DigestId,
    /// A parser value set.
    ValueSetId,
}

/// How a key field is matched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MatchKind {
    /// Equal.
    Exact,
    /// Longest prefix.
    Lpm,
    /// Value under a mask.
    Ternary,
    /// Between two bounds, both included.
    Range,
    /// Equal, or anything.
    Optional,
}

/// One field of a table's key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyInfo {
    /// As in P4Info.
    pub name: String,
    /// How it is matched.
    pub kind: MatchKind,
    /// Bits.
    pub width: u32,
}

/// One parameter of an action that the control plane fills.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParamInfo {
    /// As in P4Info.
    pub name: String,
    /// Bits.
    pub width: u32,
}

/// An action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActionInfo {
    /// As in P4Info.
    pub name: String,
    /// In order.
    pub params: Vec<ParamInfo>,
}

/// A table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableInfo {
    /// As in P4Info.
    pub name: String,
    /// In order.
    pub keys: Vec<KeyInfo>,
    /// The table's own copies of its actions.
    pub actions: Vec<ActionId>,
    /// Declared number of entries.
    pub size: u64,
    /// Entries are part of the program and cannot be changed.
    pub const_entries: bool,
    /// The default action cannot be changed.
    pub const_default: bool,
    /// Has direct counters.
    pub direct_counter: bool,
    /// Has a direct meter.
    pub direct_meter: Option<MeterId>,
    /// Entries take members (and groups, with a selector) of this profile instead of actions.
    pub profile: Option<ProfileId>,
    /// Idle times are kept per entry.
    pub support_timeout: bool,
    /// Entries need a priority (a key field is ternary, range or optional).
    pub needs_priority: bool,
}

/// An action profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfileInfo {
    /// As in P4Info.
    pub name: String,
    /// Declared number of members.
    pub size: u64,
    /// Members are chosen out of groups by a hash.
    pub has_selector: bool,
    /// Tables that use it.
    pub tables: Vec<TableId>,
}

/// A register array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegisterInfo {
    /// As in P4Info.
    pub name: String,
    /// Cells.
    pub size: u64,
    /// Bits of a cell.
    pub width: u32,
}

/// An indirect counter array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CounterInfo {
    /// As in P4Info.
    pub name: String,
    /// Cells.
    pub size: u64,
}

/// A meter array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MeterInfo {
    /// As in P4Info.
    pub name: String,
    /// Cells (direct meters: the size of the table).
    pub size: u64,
    /// Counts bytes; packets otherwise.
    pub bytes: bool,
    /// The table a direct meter belongs to.
    pub table: Option<TableId>,
}

/// A field of a digest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldInfo {
    /// Name in the JSON; may be empty.
    pub name: String,
    /// Bits.
    pub width: u32,
}

/// A type of headers or of metadata.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeaderInfo {
    /// Name in the JSON.
    pub name: String,
    /// Its fields, in order; one of variable length has its greatest width.
    pub fields: Vec<FieldInfo>,
}

/// A digest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DigestInfo {
    /// As in P4Info.
    pub name: String,
    /// In order.
    pub fields: Vec<FieldInfo>,
}

/// A parser value set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValueSetInfo {
    /// As in P4Info.
    pub name: String,
    /// Declared number of values; 0 when the JSON does not say.
    pub size: u64,
    /// Bits of one value.
    pub width: u32,
}

/// Fields that the architecture reads and writes.
pub(crate) struct Standard {
    /// Slot that holds the drop port.
    pub drop_port: Slot,
    pub ingress_port: Cell,
    pub packet_length: Cell,
    pub instance_type: Cell,
    pub egress_spec: Cell,
    pub egress_port: Cell,
    pub parser_error: Cell,
    pub checksum_error: Cell,
    pub ingress_timestamp: Cell,
    pub egress_timestamp: Cell,
    /// Only read.
    pub mcast_grp: Option<Slot>,
    pub egress_rid: Cell,
    pub enq_timestamp: Cell,
    pub enq_qdepth: Cell,
    pub deq_timedelta: Cell,
    pub deq_qdepth: Cell,
}

/// Numbers of the errors that the parser itself raises.
pub(crate) struct CoreErrors {
    pub no_error: u64,
    pub packet_too_short: u64,
    pub stack_out_of_bounds: u64,
    pub header_too_short: u64,
    pub parser_timeout: u64,
    pub parser_invalid_argument: u64,
    /// For the trace.
    pub names: HashMap<u64, String>,
}

/// A checksum.
pub(crate) struct Checksum {
    pub name: String,
    pub field: FieldRef,
    /// Slot of the validity of the field's header; `None`: metadata.
    pub valid: Option<Slot>,
    pub calculation: usize,
    pub condition: Expr,
}

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
    pub(crate) native: OnceLock<Result<Native, String>>,
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
    /// Reads, checks and compiles p4c's BMv2 JSON.
    ///
    /// # Errors
    /// Malformed JSON, or anything the engine does not support, with the place.
    pub fn load(json: &[u8]) -> Result<Program, LoadError> {
        load(json)
    }
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
    /// Machine code, if the program can be compiled.
    #[inline]
    pub(crate) fn native(&self) -> Result<&Native, &str> {
        self.native.get_or_init(|| Native::new(self)).as_ref().map_err(String::as_str)
    }
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
