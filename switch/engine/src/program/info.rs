//! The program's objects as P4Info describes them: their ids, names, sizes and widths.

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub u32);
        impl $name {
            /// Returns the id as an index into lists of this kind of object.
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
    /// An action. p4c makes a copy of an action for each table that uses it, so actions are looked up by their table.
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

/// The kind of match for a field of a table's key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MatchKind {
    /// The field equals the entry's value.
    Exact,
    /// The entry with the longest matching prefix is selected.
    Lpm,
    /// The field equals the entry's value in all bits that the entry's mask selects.
    Ternary,
    /// The field lies between two bounds, which are part of the range.
    Range,
    /// The field equals the entry's value, or the entry matches any value.
    Optional,
}

/// A field of a table's key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyInfo {
    /// Name in P4Info.
    pub name: String,
    /// The kind of match for the field.
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
    /// The actions of the table. Each table has its own copies of its actions.
    pub actions: Vec<ActionId>,
    /// The declared number of entries.
    pub size: u64,
    /// Whether the program declares the table's entries. These entries cannot be changed, unless
    /// [`crate::Engine::open_entries`] allows changes.
    pub const_entries: bool,
    /// Whether the default action cannot be changed.
    pub const_default: bool,
    /// Whether the table has a direct counter.
    pub direct_counter: bool,
    /// The table's direct meter, if it has one.
    pub direct_meter: Option<MeterId>,
    /// The action profile to whose members and groups the entries refer; `None` if entries contain their actions
    /// directly. Groups exist only in a profile with a selector.
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
    /// The declared number of members.
    pub size: u64,
    /// Whether the profile has groups. A hash selects one of a group's members for each packet.
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
    /// Whether the meter's rates are in bytes/s; otherwise, they are in packets/s.
    pub bytes: bool,
    /// The table to which a direct meter belongs; `None` for an indirect meter.
    pub table: Option<TableId>,
}

/// A field of a digest or header type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldInfo {
    /// Name in the JSON, which may be empty.
    pub name: String,
    /// Width in bits.
    pub width: u32,
}

/// A type of headers or of metadata.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeaderInfo {
    /// Name in the JSON.
    pub name: String,
    /// Fields, in order. For a variable-length field the width is its maximum width.
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
    /// The declared number of values; 0 if the JSON does not contain it.
    pub size: u64,
    /// Width of a value in bits.
    pub width: u32,
}
