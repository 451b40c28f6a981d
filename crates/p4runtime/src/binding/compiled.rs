//! The interface through which [`super::Binding`] reads the objects of a compiled program, to compare them with P4Info.

use sluice_engine::{
    ActionId, ActionInfo, CounterId, CounterInfo, DigestId, DigestInfo, HeaderInfo, MeterId, MeterInfo, ProfileId,
    ProfileInfo, Program, RegisterId, RegisterInfo, TableId, TableInfo, ValueSetId, ValueSetInfo,
};

/// The objects of a compiled program, by name. Each target defines its own ids; a [`Binding`](super::Binding) stores
/// them unchanged.
pub trait Compiled {
    /// Returns all tables.
    fn tables(&self) -> impl Iterator<Item = &TableInfo>;
    /// Returns the table with this name.
    fn table(&self, name: &str) -> Option<(TableId, &TableInfo)>;
    /// Returns the action that has this name in the table.
    fn action(&self, table: TableId, name: &str) -> Option<ActionId>;
    /// Returns the action that has this name in the profile.
    fn profile_action(&self, profile: ProfileId, name: &str) -> Option<ActionId>;
    /// Returns the parameters of an action.
    fn action_info(&self, id: ActionId) -> &ActionInfo;
    /// Returns the action profile with this name.
    fn action_profile(&self, name: &str) -> Option<(ProfileId, &ProfileInfo)>;
    /// Returns the indirect counter with this name.
    fn counter(&self, name: &str) -> Option<(CounterId, &CounterInfo)>;
    /// Returns the indirect meter with this name.
    fn meter(&self, name: &str) -> Option<(MeterId, &MeterInfo)>;
    /// Returns the register with this name.
    fn register(&self, name: &str) -> Option<(RegisterId, &RegisterInfo)>;
    /// Returns the digest with this name.
    fn digest(&self, name: &str) -> Option<(DigestId, &DigestInfo)>;
    /// Returns the parser value set with this name.
    fn value_set(&self, name: &str) -> Option<(ValueSetId, &ValueSetInfo)>;
    /// Returns the header types that the compiled program describes.
    fn header_types(&self) -> impl Iterator<Item = &HeaderInfo>;
}

macro_rules! by_name {
    ($($find:ident, $info:ident => $id:ty, $of:ty;)*) => {$(
        fn $find(&self, name: &str) -> Option<($id, &$of)> {
            Program::$find(self, name).map(|id| (id, self.$info(id)))
        }
    )*};
}

impl Compiled for Program {
    by_name! {
        table, table_info => TableId, TableInfo;
        action_profile, profile_info => ProfileId, ProfileInfo;
        counter, counter_info => CounterId, CounterInfo;
        meter, meter_info => MeterId, MeterInfo;
        register, register_info => RegisterId, RegisterInfo;
        digest, digest_info => DigestId, DigestInfo;
        value_set, value_set_info => ValueSetId, ValueSetInfo;
    }

    fn tables(&self) -> impl Iterator<Item = &TableInfo> {
        Program::tables(self).map(|(_, info)| info)
    }

    fn action(&self, table: TableId, name: &str) -> Option<ActionId> {
        Program::action(self, table, name)
    }

    fn profile_action(&self, profile: ProfileId, name: &str) -> Option<ActionId> {
        Program::profile_action(self, profile, name)
    }

    fn action_info(&self, id: ActionId) -> &ActionInfo {
        Program::action_info(self, id)
    }

    fn header_types(&self) -> impl Iterator<Item = &HeaderInfo> {
        Program::header_types(self)
    }
}
