//! The driver's program held against what a controller pushes.

use std::collections::BTreeSet;

use sluice_p4runtime::binding::Binding;
use sluice_p4runtime::proto::p4::config::v1::{MatchField, P4Info, match_field};
use sluice_p4runtime::proto::p4::v1 as p4;
use tonic::Status;

use crate::info::{Info, Key};
use crate::program::Program;
use crate::proto::ForwardingPipelineConfig;
use crate::replication::Replication;

/// The program that the driver runs, by its own description.
#[derive(Debug)]
pub struct DriverProgram {
    /// Its name and files, as the driver gives them back.
    pub config: ForwardingPipelineConfig,
    /// Further programs of the device.
    pub others: Vec<ForwardingPipelineConfig>,
    /// Its tables.
    pub info: Info,
    /// The driver's own: of ports, mirroring, multicast and the like.
    pub fixed: Info,
}

impl DriverProgram {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.config.p4_name
    }
}

/// A program that controllers use.
#[derive(Debug)]
pub struct Loaded {
    /// The driver's ids.
    pub program: Program,
    /// P4Info, resolved.
    pub binding: Binding,
    /// The driver's tables of multicast groups and mirror sessions.
    pub replication: Option<Replication>,
    /// The config as it came, for reading back.
    pub config: p4::ForwardingPipelineConfig,
}

impl Loaded {
    /// Holds a config against the program that the driver runs.
    ///
    /// # Errors
    /// As those of [`Loaded::new`].
    #[allow(clippy::result_large_err)]
    pub fn of(config: p4::ForwardingPipelineConfig, running: &DriverProgram) -> Result<Self, Status> {
        Self::new(config, &running.info, &running.fixed)
    }

    /// Holds a config against a program's tables, by the driver's description of them and of its own.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` naming the place where the two differ.
    #[allow(clippy::result_large_err)]
    pub fn new(config: p4::ForwardingPipelineConfig, driver: &Info, fixed: &Info) -> Result<Self, Status> {
        let mut info = config.p4info.clone().ok_or_else(|| invalid("P4Info is missing from the config; give it"))?;
        drop_driver_externs(&mut info, driver);
        add_value_set_fields(&mut info, driver);
        let program = Program::new(driver, &info).map_err(|error| invalid(error.to_string()))?;
        let binding = Binding::new(&info, &program).map_err(|error| invalid(error.to_string()))?;
        Ok(Self { program, binding, replication: Replication::of(fixed), config })
    }

    /// P4Info's description of a table.
    pub fn table_info(&self, id: u32) -> Option<&sluice_p4runtime::proto::p4::config::v1::Table> {
        let tables = &self.config.p4info.as_ref()?.tables;
        tables.iter().find(|table| table.preamble.as_ref().is_some_and(|preamble| preamble.id == id))
    }
}

fn invalid(message: impl Into<String>) -> Status {
    Status::invalid_argument(message)
}

/// Externs that the driver has as tables of its own, such as the metadata of ports, need no entries of P4Runtime.
fn drop_driver_externs(info: &mut P4Info, driver: &Info) {
    let known: BTreeSet<_> = driver.tables.iter().map(crate::info::Table::p4_name).collect();
    info.externs.retain(|kind| {
        let name = |instance: &sluice_p4runtime::proto::p4::config::v1::ExternInstance| {
            instance.preamble.as_ref().is_some_and(|preamble| known.contains(preamble.name.as_str()))
        };
        !kind.instances.iter().all(name)
    });
}

/// p4c gives a TNA program's value sets no fields in P4Info. They are then the driver's, with ids from 1 on.
fn add_value_set_fields(info: &mut P4Info, driver: &Info) {
    for set in info.value_sets.iter_mut().filter(|set| set.r#match.is_empty()) {
        let name = set.preamble.as_ref().map_or("", |preamble| &preamble.name);
        let known = driver.tables.iter().find(|table| table.p4_name() == name);
        set.r#match = known.iter().flat_map(|table| &table.key).map(match_field).collect();
    }
}

fn match_field(key: &Key) -> MatchField {
    let kind = match_field::Match::MatchType(match_field::MatchType::Ternary as i32);
    MatchField {
        id: key.id,
        name: key.name.clone(),
        bitwidth: key.kind.bits().unwrap_or(0).cast_signed(),
        r#match: Some(kind),
        ..Default::default()
    }
}
