//! Checks a config that a controller pushes against the program that the driver runs.

use std::collections::BTreeSet;

use sluice_p4runtime::binding::Binding;
use sluice_p4runtime::proto::p4::config::v1::{MatchField, P4Info, match_field};
use sluice_p4runtime::proto::p4::v1 as p4;
use tonic::Status;

use crate::info::{Info, Key};
use crate::program::Program;
use crate::proto::ForwardingPipelineConfig;
use crate::replication::Replication;

/// The program that the driver runs, from the driver's own description.
#[derive(Debug)]
pub struct DriverProgram {
    /// The name and files of the program, as the driver returns them.
    pub config: ForwardingPipelineConfig,
    /// The further programs that the driver runs on the device.
    pub other_programs: Vec<ForwardingPipelineConfig>,
    /// The tables of the program, from its `bfrt.json`.
    pub info: Info,
    /// The tables of the device itself: ports, mirroring, multicast and others.
    pub device_info: Info,
}

impl DriverProgram {
    /// Returns the program's name.
    pub fn name(&self) -> &str {
        &self.config.p4_name
    }
}

/// A program that controllers use.
#[derive(Debug)]
pub struct Loaded {
    /// The driver's ids of the objects of P4Info.
    pub program: Program,
    /// The objects of P4Info, each with the number of the same object in `program`.
    pub binding: Binding,
    /// The device's tables of multicast groups and mirror sessions; `None` if the device lacks one of these tables.
    pub replication: Option<Replication>,
    /// The config as the client sent it. Clients can read it.
    pub config: p4::ForwardingPipelineConfig,
}

impl Loaded {
    /// Checks a config against the program that the driver runs.
    ///
    /// # Errors
    /// The errors of [`Loaded::new`].
    #[allow(clippy::result_large_err)]
    pub fn of(config: p4::ForwardingPipelineConfig, running: &DriverProgram) -> Result<Self, Status> {
        Self::new(config, &running.info, &running.device_info)
    }

    /// Checks a config against the tables of a program. `driver` describes these tables, `device_info` the tables of
    /// the device itself.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` when P4Info is missing, or differs from the tables; the message names the differing object.
    #[allow(clippy::result_large_err)]
    pub fn new(config: p4::ForwardingPipelineConfig, driver: &Info, device_info: &Info) -> Result<Self, Status> {
        let mut info = config.p4info.clone().ok_or_else(|| invalid("P4Info is missing from the config; give it"))?;
        drop_driver_externs(&mut info, driver);
        add_value_set_fields(&mut info, driver);
        let program = Program::new(driver, &info).map_err(|error| invalid(error.to_string()))?;
        let binding = Binding::new(&info, &program).map_err(|error| invalid(error.to_string()))?;
        Ok(Self { program, binding, replication: Replication::of(device_info), config })
    }

    /// Returns the description of the table with this id in P4Info.
    pub fn table_info(&self, id: u32) -> Option<&sluice_p4runtime::proto::p4::config::v1::Table> {
        let tables = &self.config.p4info.as_ref()?.tables;
        tables.iter().find(|table| table.preamble.as_ref().is_some_and(|preamble| preamble.id == id))
    }
}

fn invalid(message: impl Into<String>) -> Status {
    Status::invalid_argument(message)
}

/// Removes externs which are tables in the driver, such as port metadata, because controllers do not write them through
/// P4Runtime.
fn drop_driver_externs(info: &mut P4Info, driver: &Info) {
    let driver_tables: BTreeSet<_> = driver.tables.iter().map(crate::info::Table::p4_name).collect();
    info.externs.retain(|kind| {
        let name = |instance: &sluice_p4runtime::proto::p4::config::v1::ExternInstance| {
            instance.preamble.as_ref().is_some_and(|preamble| driver_tables.contains(preamble.name.as_str()))
        };
        !kind.instances.iter().all(name)
    });
}

/// Adds the fields of value sets, which p4c omits from the P4Info of a TNA program. The fields and their ids are copied
/// from the driver's description of the program.
fn add_value_set_fields(info: &mut P4Info, driver: &Info) {
    for set in info.value_sets.iter_mut().filter(|set| set.r#match.is_empty()) {
        let name = set.preamble.as_ref().map_or("", |preamble| &preamble.name);
        let table = driver.tables.iter().find(|table| table.p4_name() == name);
        set.r#match = table.iter().flat_map(|table| &table.key).map(match_field).collect();
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
