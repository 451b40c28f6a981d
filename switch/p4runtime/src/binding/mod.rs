//! P4Info resolved against the compiled program: what each id stands for, found once at pipeline push.
//!
//! P4Info and the program come from one run of the compiler. Where they disagree, neither can be trusted, so
//! a difference in names, widths or kinds is an error that names both sides.

mod compiled;
mod objects;
mod packet_headers;
mod table;

use std::collections::HashMap;

use sluice_engine::{ActionId, CounterId, DigestId, MeterId, ProfileId, ProfileLimit, RegisterId, TableId, ValueSetId};
use thiserror::Error;

use crate::proto::p4::{config::v1 as p4info, v1 as p4};
use crate::translation::{Sdn, Types};
use crate::typespec::DataType;

pub use compiled::Compiled;
pub use packet_headers::{PacketField, PacketHeader};

/// Why P4Info does not fit the program.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum BindError {
    /// P4Info has an object that the program lacks.
    #[error(
        "P4Info has {kind} {name}, the program's JSON has not: they are not from the same compilation; give what one run of p4c wrote"
    )]
    Missing {
        /// What kind of object.
        kind: &'static str,
        /// Its name in P4Info.
        name: String,
    },
    /// Both have it, but not alike.
    #[error(
        "{place}: P4Info says {p4info}, the program's JSON says {json}: they are not from the same compilation; give what one run of p4c wrote"
    )]
    Different {
        /// The object.
        place: String,
        /// The value in P4Info.
        p4info: String,
        /// The value in the JSON.
        json: String,
    },
    /// P4Info contradicts itself.
    #[error("P4Info: {0}; p4c does not write this: compile the program again")]
    Malformed(String),
    /// Correct, but not offered by this switch.
    #[error("P4Info: {0} is not supported by this switch; change it in the program and compile that again")]
    Unsupported(String),
}

/// One field of a table's key or of a value set.
#[derive(Debug)]
pub struct KeyBinding {
    /// P4Info's field id.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// How it is matched.
    pub kind: sluice_engine::MatchKind,
    /// Compiled to a ternary match, as p4c does with optional fields.
    pub as_ternary: bool,
    /// Its width in bits, in the program.
    pub width: u32,
    /// What the control plane sees, if its type is translated.
    pub sdn: Option<Sdn>,
}

/// An action's parameter.
#[derive(Debug)]
pub struct ParamBinding {
    /// P4Info's parameter id.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// Its width in bits, in the program.
    pub width: u32,
    /// What the control plane sees, if its type is translated.
    pub sdn: Option<Sdn>,
}

/// An action, as P4Info has it.
#[derive(Debug)]
pub struct ActionBinding {
    /// P4Info's id.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// Its parameters, in the engine's order.
    pub params: Vec<ParamBinding>,
}

/// Where in a table an action may stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// In entries and as default.
    Any,
    /// In entries only (`@tableonly`).
    EntriesOnly,
    /// As default only (`@defaultonly`).
    DefaultOnly,
}

/// An action of a table or of an action profile.
#[derive(Debug, Clone, Copy)]
pub struct ActionChoice {
    /// The engine's copy of the action.
    pub engine: ActionId,
    /// Where it may stand.
    pub scope: Scope,
}

/// The actions of a table or action profile, by P4Info id and by engine id.
#[derive(Debug, Default)]
pub struct ActionSet {
    /// By P4Info id.
    pub by_id: HashMap<u32, ActionChoice>,
    /// P4Info id by engine id.
    pub by_engine: HashMap<ActionId, u32>,
}

/// A table.
#[derive(Debug)]
pub struct TableBinding {
    /// P4Info's id.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// The engine's.
    pub engine: TableId,
    /// The key, in the engine's order.
    pub key: Vec<KeyBinding>,
    /// Its actions.
    pub actions: ActionSet,
    /// P4Info id of its action profile.
    pub profile: Option<u32>,
    /// All its entries are constant.
    pub is_const: bool,
    /// Its default action is constant.
    pub const_default: bool,
    /// Entries need a priority.
    pub needs_priority: bool,
    /// Entries may have an idle timeout.
    pub idle_timeout: bool,
    /// P4Info id of its direct counter.
    pub counter: Option<u32>,
    /// P4Info id of its direct meter.
    pub meter: Option<u32>,
}

/// An action profile or selector.
#[derive(Debug)]
pub struct ProfileBinding {
    /// P4Info's id.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// The engine's.
    pub engine: ProfileId,
    /// The actions members may have.
    pub actions: ActionSet,
    /// Has groups.
    pub with_selector: bool,
    /// What it may hold.
    pub limit: Option<ProfileLimit>,
    /// Limit for `max_size` and for one-shot groups; 0 for none.
    pub max_group_size: u32,
    /// Members are counted instead of weights against `max_group_size`.
    pub size_counts_members: bool,
    /// Highest weight of one member when members are counted; 0 for any.
    pub max_member_weight: u32,
    /// Members have no weights.
    pub weights_disallowed: bool,
}

/// An indirect counter.
#[derive(Debug)]
pub struct CounterBinding {
    /// P4Info's id.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// The engine's.
    pub engine: CounterId,
    /// Number of cells.
    pub size: u64,
}

/// An indirect meter.
#[derive(Debug)]
pub struct MeterBinding {
    /// P4Info's id.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// The engine's.
    pub engine: MeterId,
    /// Number of cells.
    pub size: u64,
}

/// A register.
#[derive(Debug)]
pub struct RegisterBinding {
    /// P4Info's id.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// The engine's.
    pub engine: RegisterId,
    /// Number of cells.
    pub size: u64,
    /// Type of a cell.
    pub data: DataType,
    /// Bytes of a cell as the engine gives it.
    pub bytes: usize,
}

/// A digest.
#[derive(Debug)]
pub struct DigestBinding {
    /// P4Info's id.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// The engine's.
    pub engine: DigestId,
    /// Type of a message.
    pub data: DataType,
}

impl DigestBinding {
    /// A message for the wire, from its fields.
    pub fn encode(&self, fields: &[Vec<u8>]) -> p4::P4Data {
        self.data.encode(&mut fields.iter().map(Vec::as_slice))
    }
}

/// A parser value set.
#[derive(Debug)]
pub struct ValueSetBinding {
    /// P4Info's id.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// The engine's.
    pub engine: ValueSetId,
    /// Its fields, first bits first.
    pub key: Vec<KeyBinding>,
    /// Number of members it holds; 0 for any.
    pub size: usize,
}

/// Objects of one kind, by P4Info id, and in P4Info's order.
#[derive(Debug)]
pub struct Objects<T> {
    list: Vec<T>,
    by_id: HashMap<u32, usize>,
}

impl<T> Objects<T> {
    /// The object with this id.
    pub fn get(&self, id: u32) -> Option<&T> {
        self.by_id.get(&id).map(|place| &self.list[*place])
    }

    /// All of them, in P4Info's order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.list.iter()
    }

    fn get_mut(&mut self, id: u32) -> Option<&mut T> {
        self.by_id.get(&id).map(|place| &mut self.list[*place])
    }

    fn bind<I>(
        infos: &[I],
        preamble: impl Fn(&I) -> Option<&p4info::Preamble>,
        mut bind: impl FnMut(&I, &p4info::Preamble) -> Result<T, BindError>,
    ) -> Result<Self, BindError> {
        let mut objects = Self { list: Vec::with_capacity(infos.len()), by_id: HashMap::new() };
        for info in infos {
            let preamble =
                preamble(info).ok_or_else(|| BindError::Malformed("an object has no preamble".to_owned()))?;
            if objects.by_id.insert(preamble.id, objects.list.len()).is_some() {
                return Err(BindError::Malformed(format!("two objects have the id {:#x}", preamble.id)));
            }
            objects.list.push(bind(info, preamble)?);
        }
        Ok(objects)
    }
}

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
