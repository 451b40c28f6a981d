//! P4Info resolved against the compiled program: what each id stands for, found once at pipeline push.
//!
//! P4Info and the program come from one run of the compiler. Where they disagree, neither can be trusted, so
//! a difference in names, widths or kinds is an error that names both sides.

mod by_id;
mod compiled;
mod error;
mod objects;
mod packet_headers;
mod table;

use std::collections::HashMap;

use sluice_engine::{DigestId, TableId};

use crate::proto::p4::config::v1 as p4info;
use crate::translation::Types;

pub use by_id::Objects;
pub use compiled::Compiled;
pub use error::BindError;
pub use objects::{CounterBinding, DigestBinding, MeterBinding, ProfileBinding, RegisterBinding, ValueSetBinding};
pub use packet_headers::{PacketField, PacketHeader};
pub use table::{ActionBinding, ActionChoice, ActionSet, KeyBinding, ParamBinding, Scope, TableBinding};

/// All of P4Info, resolved.
#[derive(Debug)]
pub struct Binding {
    /// Tables.
    pub tables: Objects<TableBinding>,
    /// Actions.
    pub actions: Objects<ActionBinding>,
    /// Action profiles and selectors.
    pub profiles: Objects<ProfileBinding>,
    /// Indirect counters.
    pub counters: Objects<CounterBinding>,
    /// Indirect meters.
    pub meters: Objects<MeterBinding>,
    /// Registers.
    pub registers: Objects<RegisterBinding>,
    /// Digests.
    pub digests: Objects<DigestBinding>,
    /// Parser value sets.
    pub value_sets: Objects<ValueSetBinding>,
    /// The header of packets to the controller.
    pub packet_in: Option<PacketHeader>,
    /// The header of packets from the controller.
    pub packet_out: Option<PacketHeader>,
    /// P4Info's types, and names of their values.
    pub types: Types,
    table_ids: HashMap<TableId, u32>,
    digest_ids: HashMap<DigestId, u32>,
}

impl Binding {
    /// Resolves P4Info against the program.
    ///
    /// # Errors
    /// Where the two differ, or P4Info asks for what this switch does not have.
    pub fn new(info: &p4info::P4Info, program: &impl Compiled) -> Result<Self, BindError> {
        if let Some(other) = info.externs.first() {
            return Err(BindError::Unsupported(format!("extern type {}", other.extern_type_name)));
        }
        let types = Types::new(info);
        let mut actions = Objects::bind(
            &info.actions,
            |action| action.preamble.as_ref(),
            |action, preamble| table::bind_action(action, preamble, &types),
        )?;
        let tables = Objects::bind(
            &table::compiled_tables(info, program),
            |table| table.preamble.as_ref(),
            |table, preamble| table::bind_table(table, preamble, info, &types, program, &actions),
        )?;
        table::fit_params(&mut actions, &tables, program);
        let (packet_in, packet_out) = packet_headers::bind(info, &types, program)?;
        let mut binding = Self {
            profiles: objects::profiles(info, program, &actions, &tables)?,
            counters: objects::counters(info, program)?,
            meters: objects::meters(info, program)?,
            registers: objects::registers(info, &types, program)?,
            digests: objects::digests(info, &types, program)?,
            value_sets: objects::value_sets(info, &types, program)?,
            table_ids: tables.iter().map(|table| (table.engine, table.id)).collect(),
            digest_ids: HashMap::new(),
            tables,
            actions,
            packet_in,
            packet_out,
            types,
        };
        binding.digest_ids = binding.digests.iter().map(|digest| (digest.engine, digest.id)).collect();
        Ok(binding)
    }

    /// The table with this engine id.
    pub fn table_of(&self, engine: TableId) -> Option<&TableBinding> {
        self.table_ids.get(&engine).and_then(|id| self.tables.get(*id))
    }

    /// The digest with this engine id.
    pub fn digest_of(&self, engine: DigestId) -> Option<&DigestBinding> {
        self.digest_ids.get(&engine).and_then(|id| self.digests.get(*id))
    }
}
