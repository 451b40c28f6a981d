//! P4Info resolved against the compiled program once, when the pipeline is pushed: which object of the program each
//! P4Info id stands for.
//!
//! P4Info and the program must come from one run of the compiler. Where their names, widths or kinds differ, neither
//! can be trusted, so the push fails with an error that states both sides.

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

/// All objects of P4Info, each with the program's object that it stands for.
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
    /// The packet_in header, of packets to the controller; `None` if the program declares none.
    pub packet_in: Option<PacketHeader>,
    /// The packet_out header, of packets from the controller; `None` if the program declares none.
    pub packet_out: Option<PacketHeader>,
    /// P4Info's types, and the names of their translated values.
    pub types: Types,
    table_ids: HashMap<TableId, u32>,
    digest_ids: HashMap<DigestId, u32>,
}

impl Binding {
    /// Resolves P4Info against the program.
    ///
    /// # Errors
    /// Fails when P4Info and the program differ, or P4Info has an object that this switch does not support.
    pub fn new(info: &p4info::P4Info, program: &impl Compiled) -> Result<Self, BindError> {
        if let Some(external) = info.externs.first() {
            return Err(BindError::Unsupported(format!("extern type {}", external.extern_type_name)));
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

    /// Returns the table with this id of the compiled program.
    pub fn table_of(&self, engine: TableId) -> Option<&TableBinding> {
        self.table_ids.get(&engine).and_then(|id| self.tables.get(*id))
    }

    /// Returns the digest with this id of the compiled program.
    pub fn digest_of(&self, engine: DigestId) -> Option<&DigestBinding> {
        self.digest_ids.get(&engine).and_then(|id| self.digests.get(*id))
    }
}
