//! A compiled program with its P4Info, which a client pushed or which the switch loaded at its start.

use std::sync::Arc;

use prost::Message;
use prost_reflect::{DescriptorPool, DynamicMessage};
use sluice_engine::{ControlError, Engine, LoadError, Options, Program};
use thiserror::Error;

use crate::binding::{BindError, Binding};
use crate::entity::{ReplicationEntries, replication};
use crate::framing;
use crate::ports::Ports;
use crate::proto::DESCRIPTORS;
use crate::proto::p4::config::v1::P4Info;
use crate::proto::p4::v1 as p4;

/// The reason why a program was refused.
#[derive(Debug, Error)]
pub enum PipelineError {
    /// The program cannot be loaded.
    #[error("program (p4_device_config): {0}")]
    Program(#[from] LoadError),
    /// P4Info is invalid, or does not match the program.
    #[error("{0}")]
    Binding(#[from] BindError),
    /// P4Info's text form cannot be parsed.
    #[error("P4Info text: {0}; give what p4c writes with --p4runtime-files FILE.txtpb")]
    Text(String),
    /// The memory does not suffice for the program's arrays.
    #[error(
        "program (p4_device_config): its arrays take {bytes} bytes, {largest_bytes} of them '{largest}', and there is not so much memory; \
         declare the arrays smaller"
    )]
    Memory {
        /// Length of all arrays together, in bytes.
        bytes: u64,
        /// The name of the array that needs the most memory.
        largest: String,
        /// Length of this array, in bytes.
        largest_bytes: u64,
    },
    /// The config contains no program.
    #[error("program (p4_device_config): it is empty; give the JSON that p4c-bm2-ss writes")]
    Empty,
    /// The config is BMv2's message `P4DeviceConfig`, which contains no program.
    #[error(
        "program (p4_device_config): this p4.tmp.P4DeviceConfig has no device_data; give it the JSON that p4c-bm2-ss writes"
    )]
    NoDeviceData,
    /// The config is neither JSON nor BMv2's message `P4DeviceConfig`.
    #[error(
        "program (p4_device_config): it is neither a JSON object nor a p4.tmp.P4DeviceConfig ({0}); give the JSON that p4c-bm2-ss writes"
    )]
    Framing(String),
}

/// A compiled program, with its resolved P4Info if there is one.
pub struct Pipeline {
    /// The compiled program.
    pub program: Arc<Program>,
    /// The resolved P4Info; `None` when the switch was started with a program but without P4Info.
    pub binding: Option<Binding>,
    /// The config that a client sent, or that the switch built from its program files at its start. Clients can read
    /// the config.
    pub config: p4::ForwardingPipelineConfig,
}

impl Pipeline {
    /// Compiles the program and resolves P4Info against it.
    ///
    /// # Errors
    /// Fails when the program is missing, when the program or P4Info is invalid or unsupported, or when the memory does
    /// not suffice.
    pub fn new(config: p4::ForwardingPipelineConfig) -> Result<Self, PipelineError> {
        let program = Arc::new(Program::load(&framing::json(&config.p4_device_config)?)?);
        check_memory(&program)?;
        let binding = config.p4info.as_ref().map(|info| Binding::new(info, &*program)).transpose()?;
        Ok(Self { program, binding, config })
    }
}

/// Allocates the memory of all arrays at once and frees it again, to refuse a program that does not fit. When the
/// engine creates the arrays later, a failed allocation would end the process.
fn check_memory(program: &Program) -> Result<(), PipelineError> {
    let bytes = program.arrays().map(|(_, bytes)| bytes).sum();
    let mut memory = Vec::<u8>::new();
    let fits = usize::try_from(bytes).is_ok_and(|bytes| memory.try_reserve_exact(bytes).is_ok());
    // `black_box` prevents the compiler from removing the unused allocation.
    std::hint::black_box(&memory);
    match program.arrays().max_by_key(|(_, bytes)| *bytes) {
        Some((largest, largest_bytes)) if !fits => {
            Err(PipelineError::Memory { bytes, largest: largest.to_owned(), largest_bytes })
        }
        _ => Ok(()),
    }
}

/// Parses P4Info in protobuf's text form, which p4c writes.
///
/// # Errors
/// Fails when the text is malformed or empty.
pub fn parse_p4info(text: &str) -> Result<P4Info, PipelineError> {
    let error = |error: &dyn std::fmt::Display| PipelineError::Text(error.to_string());
    let pool = DescriptorPool::decode(DESCRIPTORS).map_err(|cause| error(&cause))?;
    let descriptor =
        pool.get_message_by_name("p4.config.v1.P4Info").ok_or_else(|| error(&"the message P4Info is not built in"))?;
    let message = DynamicMessage::parse_text_format(descriptor, text).map_err(|cause| error(&cause))?;
    let info = P4Info::decode(&message.encode_to_vec()[..]).map_err(|cause| error(&cause))?;
    if info == P4Info::default() { Err(error(&"there is nothing in it")) } else { Ok(info) }
}

/// A program with its state.
pub struct Running {
    /// The program and its P4Info.
    pub pipeline: Arc<Pipeline>,
    /// The state of tables, arrays and profiles.
    pub engine: Engine,
    /// The multicast groups and clone sessions in the form in which clients wrote them. The engine stores only the
    /// parts that packets need.
    pub replication: ReplicationEntries,
}

impl Running {
    /// Returns the program in its initial state: tables contain only the entries that the program declares. Clients may
    /// change these entries in tables that P4Info does not declare const.
    pub fn start(pipeline: Arc<Pipeline>, options: Options) -> Self {
        let mut engine = Engine::new(Arc::clone(&pipeline.program), options);
        for profile in pipeline.binding.iter().flat_map(|binding| binding.profiles.iter()) {
            engine.limit_profile(profile.engine, profile.limit);
        }
        for table in pipeline.binding.iter().flat_map(|binding| binding.tables.iter()).filter(|table| !table.is_const) {
            engine.open_entries(table.engine);
        }
        Self { pipeline, engine, replication: ReplicationEntries::default() }
    }

    /// Applies the link states of the ports to groups and replicas.
    ///
    /// # Errors
    /// Fails when the engine refuses a group. The engine accepted the same group earlier, so a failure is a bug.
    pub(crate) fn apply_port_states(&mut self, ports: &Ports) -> Result<(), ControlError> {
        for (port, up) in ports.iter() {
            self.engine.set_port(port, up);
        }
        replication::reselect_replicas(&mut self.engine, &self.replication, ports)
    }
}
