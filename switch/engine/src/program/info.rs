//! What P4Info has on a program: the ids of its objects, their names, sizes and widths.

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
