//! The driver's program held against what a controller pushes.

use std::collections::BTreeSet;

use sluice_p4runtime::binding::Binding;
use sluice_p4runtime::proto::p4::config::v1::P4Info;
use sluice_p4runtime::proto::p4::v1 as p4;
use tonic::Status;

use crate::info::Info;
use crate::program::Program;
use crate::proto::ForwardingPipelineConfig;

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
    /// The config as it came, for reading back.
    pub config: p4::ForwardingPipelineConfig,
}

impl Loaded {
    /// Holds a config against a program's tables, by the driver's description of them.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` naming the place where the two differ.
    #[allow(clippy::result_large_err)]
    pub fn new(config: p4::ForwardingPipelineConfig, driver: &Info) -> Result<Self, Status> {
        let mut info = config.p4info.clone().ok_or_else(|| invalid("P4Info is missing from the config; give it"))?;
        drop_driver_externs(&mut info, driver);
        let program = Program::new(driver, &info).map_err(|error| invalid(error.to_string()))?;
        let binding = Binding::new(&info, &program).map_err(|error| invalid(error.to_string()))?;
        Ok(Self { program, binding, config })
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
