//! The program's objects as P4Info describes them: their ids, names, sizes and widths.

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub u32);
        impl $name {
            /// The id as an index.
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
    /// An action. p4c makes a copy of an action for each table that uses it, so look an action up by its table.
    ActionId,
    /// An action profile, with or without selector.
    ProfileId,
    /// A register array.
    RegisterId,
    /// An indirect counter array.
    CounterId,
    /// A meter array, indirect or direct.
    MeterId,
    /// A digest (`learn_lists` in the JSON).
    DigestId,
    /// A parser value set.
    ValueSetId,
}

/// How a key field is matched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MatchKind {
    /// The field equals the entry's value.
    Exact,
    /// The entry with the longest matching prefix is selected.
    Lpm,
    /// The field equals the entry's value in the bits of a mask.
    Ternary,
    /// The field lies between two bounds, both included.
    Range,
    /// The field equals the entry's value, or the entry matches any value.
    Optional,
}

/// A field of a table's key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyInfo {
    /// Name in P4Info.
    pub name: String,
    /// How the field is matched.
    pub kind: MatchKind,
    /// Width in bits.
    pub width: u32,
}

/// A parameter of an action, whose value the control plane sets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParamInfo {
    /// Name in P4Info.
    pub name: String,
    /// Width in bits.
    pub width: u32,
}

/// An action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActionInfo {
    /// Name in P4Info.
    pub name: String,
    /// Parameters, in their order in P4Info.
    pub params: Vec<ParamInfo>,
}

/// A table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableInfo {
    /// Name in P4Info.
    pub name: String,
    /// Key fields, in their order in P4Info.
    pub keys: Vec<KeyInfo>,
    /// The table's own copies of its actions.
    pub actions: Vec<ActionId>,
    /// Declared number of entries.
    pub size: u64,
    /// Whether the program declares the table's entries. They cannot be changed (but see
    /// [`crate::Engine::open_entries`]).
    pub const_entries: bool,
    /// Whether the default action cannot be changed.
    pub const_default: bool,
    /// Whether the table has a direct counter.
    pub direct_counter: bool,
    /// The table's direct meter, if it has one.
    pub direct_meter: Option<MeterId>,
    /// The action profile whose members (and groups, with a selector) the entries refer to; `None` if they name actions
    /// directly.
    pub profile: Option<ProfileId>,
    /// Whether entries can have an idle timeout.
    pub support_timeout: bool,
    /// Whether entries need a priority, because a key field is ternary, range or optional.
    pub needs_priority: bool,
}

/// An action profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfileInfo {
    /// Name in P4Info.
    pub name: String,
    /// Declared number of members.
    pub size: u64,
    /// Whether there are groups, from which a hash selects a member for each packet.
    pub has_selector: bool,
    /// The tables that use the profile.
    pub tables: Vec<TableId>,
}

/// A register array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegisterInfo {
    /// Name in P4Info.
    pub name: String,
    /// Number of cells.
    pub size: u64,
    /// Width of a cell in bits.
    pub width: u32,
}

/// An indirect counter array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CounterInfo {
    /// Name in P4Info.
    pub name: String,
    /// Number of cells.
    pub size: u64,
}

/// A meter array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MeterInfo {
    /// Name in P4Info.
    pub name: String,
    /// Number of cells; for a direct meter, the size of its table.
    pub size: u64,
    /// Whether the meter's rates are in bytes; otherwise, in packets.
    pub bytes: bool,
    /// The table that a direct meter belongs to; `None` for an indirect one.
    pub table: Option<TableId>,
}

/// A field of a digest or header type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldInfo {
    /// Name in the JSON; may be empty.
    pub name: String,
    /// Width in bits.
    pub width: u32,
}

/// A type of headers or of metadata.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeaderInfo {
    /// Name in the JSON.
    pub name: String,
    /// Fields, in order. A variable-length field has its largest width.
    pub fields: Vec<FieldInfo>,
}

/// A digest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DigestInfo {
    /// Name in P4Info.
    pub name: String,
    /// Fields, in order.
    pub fields: Vec<FieldInfo>,
}

/// A parser value set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValueSetInfo {
    /// Name in P4Info.
    pub name: String,
    /// Declared number of values; 0 if the JSON does not state it.
    pub size: u64,
    /// Width of a value in bits.
    pub width: u32,
}
