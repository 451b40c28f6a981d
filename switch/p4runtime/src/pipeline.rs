//! A program with its P4Info: what a client pushes, checked and compiled.

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

/// Why a program was refused.
#[derive(Debug, Error)]
pub enum PipelineError {
    /// The program itself.
    #[error("program (p4_device_config): {0}")]
    Program(#[from] LoadError),
    /// P4Info, or its fit with the program.
    #[error("{0}")]
    Binding(#[from] BindError),
    /// P4Info's text form.
    #[error("P4Info text: {0}; give what p4c writes with --p4runtime-files FILE.txtpb")]
    Text(String),
    /// No room for its state.
    #[error(
        "program (p4_device_config): its arrays take {bytes} bytes, {largest_bytes} of them '{largest}', and there is not so much memory; \
         declare the arrays smaller"
    )]
    Memory {
        /// What all arrays take.
        bytes: u64,
        /// The array that takes most.
        largest: String,
        /// What it takes.
        largest_bytes: u64,
    },
    /// No program.
    #[error("program (p4_device_config): it is empty; give the JSON that p4c-bm2-ss writes")]
    Empty,
    /// BMv2's message without a program.
    #[error(
        "program (p4_device_config): this p4.tmp.P4DeviceConfig has no device_data; give it the JSON that p4c-bm2-ss writes"
    )]
    NoDeviceData,
    /// Neither JSON nor BMv2's message.
    #[error(
        "program (p4_device_config): it is neither a JSON object nor a p4.tmp.P4DeviceConfig ({0}); give the JSON that p4c-bm2-ss writes"
    )]
    Framing(String),
}

/// A program and, when known, what the control plane may say to it.
pub struct Pipeline {
    /// The compiled program.
    pub program: Arc<Program>,
    /// P4Info resolved; `None` when the switch was started with a program and without P4Info.
    pub binding: Option<Binding>,
    /// The config as it came, for reading back.
    pub config: p4::ForwardingPipelineConfig,
}

impl Pipeline {
    /// Compiles the program and holds P4Info against it.
    ///
    /// # Errors
    /// When a part is missing, wrong, or not supported, and when there is no memory for the state.
    pub fn new(config: p4::ForwardingPipelineConfig) -> Result<Self, PipelineError> {
        let program = Arc::new(Program::load(&framing::json(&config.p4_device_config)?)?);
        check_memory(&program)?;
        let binding = config.p4info.as_ref().map(|info| Binding::new(info, &*program)).transpose()?;
        Ok(Self { program, binding, config })
    }
}

/// Asks for the memory of all arrays at once, and gives it back: where they are made later, its lack would end the switch.
fn check_memory(program: &Program) -> Result<(), PipelineError> {
    let bytes = program.arrays().map(|(_, bytes)| bytes).sum();
    let mut memory = Vec::<u8>::new();
    let there = usize::try_from(bytes).is_ok_and(|bytes| memory.try_reserve_exact(bytes).is_ok());
    // What nobody looks at a compiler need not ask for.
    std::hint::black_box(&memory);
    match program.arrays().max_by_key(|(_, bytes)| *bytes) {
        Some((largest, largest_bytes)) if !there => {
            Err(PipelineError::Memory { bytes, largest: largest.to_owned(), largest_bytes })
        }
        _ => Ok(()),
    }
}

/// Reads P4Info in protobuf's text form, as p4c writes it.
///
/// # Errors
/// When the text is malformed or has nothing in it.
pub fn parse_p4info(text: &str) -> Result<P4Info, PipelineError> {
    let error = |error: &dyn std::fmt::Display| PipelineError::Text(error.to_string());
    let pool = DescriptorPool::decode(DESCRIPTORS).map_err(|cause| error(&cause))?;
    let descriptor =
        pool.get_message_by_name("p4.config.v1.P4Info").ok_or_else(|| error(&"the message P4Info is not built in"))?;
    let message = DynamicMessage::parse_text_format(descriptor, text).map_err(|cause| error(&cause))?;
    let info = P4Info::decode(&message.encode_to_vec()[..]).map_err(|cause| error(&cause))?;
    if info == P4Info::default() { Err(error(&"there is nothing in it")) } else { Ok(info) }
}

/// A pipeline at work.
pub struct Running {
    /// What runs.
    pub pipeline: Arc<Pipeline>,
    /// Its state.
    pub engine: Engine,
    /// The part of the state that the engine does not need.
    pub replication: ReplicationEntries,
}

impl Running {
    /// The pipeline with empty state.
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

    /// Has groups and replicas follow the state of the ports.
    ///
    /// # Errors
    /// When the engine refuses a group that it has taken before.
    pub(crate) fn follow(&mut self, ports: &Ports) -> Result<(), ControlError> {
        for (port, up) in ports.iter() {
            self.engine.set_port(port, up);
        }
        replication::choose_again(&mut self.engine, &self.replication, ports)
    }
}
