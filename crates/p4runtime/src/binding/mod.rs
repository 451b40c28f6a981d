//! P4Info resolved against the compiled program once, when the pipeline is pushed: maps each id in P4Info to the object
//! of the program that the id denotes.
//!
//! P4Info and the program must come from one run of the compiler. If their names, widths or kinds differ, neither can
//! be trusted, so the push fails with an error that states the values of both.

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

/// All objects of P4Info, each with the object of the program that it describes.
#[derive(Debug)]
pub struct Binding {
    /// The tables of P4Info.
    pub tables: Objects<TableBinding>,
    /// The actions of P4Info.
    pub actions: Objects<ActionBinding>,
    /// The action profiles and selectors of P4Info.
    pub profiles: Objects<ProfileBinding>,
    /// The indirect counters of P4Info.
    pub counters: Objects<CounterBinding>,
    /// The indirect meters of P4Info.
    pub meters: Objects<MeterBinding>,
    /// The registers of P4Info.
    pub registers: Objects<RegisterBinding>,
    /// The digests of P4Info.
    pub digests: Objects<DigestBinding>,
    /// The parser value sets of P4Info.
    pub value_sets: Objects<ValueSetBinding>,
    /// The `packet_in` header of packets to the controller; `None` if the program declares none.
    pub packet_in: Option<PacketHeader>,
    /// The `packet_out` header of packets from the controller; `None` if the program declares none.
    pub packet_out: Option<PacketHeader>,
    /// The types of P4Info. For a type that is translated to strings, also the strings by which controllers name its
    /// values.
    pub types: Types,
    table_ids: HashMap<TableId, u32>,
    digest_ids: HashMap<DigestId, u32>,
}

impl Binding {
    /// Resolves P4Info against the program.
    ///
    /// # Errors
    /// Fails when P4Info and the program differ, or when P4Info has an object that this switch does not support.
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

    /// Returns the table that has this id in the compiled program.
    pub fn table_of(&self, engine: TableId) -> Option<&TableBinding> {
        self.table_ids.get(&engine).and_then(|id| self.tables.get(*id))
    }

    /// Returns the digest that has this id in the compiled program.
    pub fn digest_of(&self, engine: DigestId) -> Option<&DigestBinding> {
        self.digest_ids.get(&engine).and_then(|id| self.digests.get(*id))
    }
}
