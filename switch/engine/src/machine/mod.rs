//! Interprets the instructions of a compiled program.

mod ext;
mod run;
mod select;
mod table;
mod trace;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use crate::control::{CloneSession, CounterData, Digest, DigestConfig, Replica};
use crate::drops::Drops;
use crate::meter::Meter;
use crate::options::Options;
use crate::profile::{Bound, ProfileState};
use crate::program::{Program, TableId};
use crate::queue::Queue;
use crate::rng::Rng;
use crate::state::{Register, State};
use crate::table::answer::Answer;
use crate::trace::TraceEvent;

pub use self::table::{EntryState, MissState, TableState};
use self::trace::DropPort;

/// The maximum number of backward jumps in one run of the parser, of ingress or of egress. A run with more jumps is
/// regarded as an endless loop and ends.
pub const FUEL: u32 = 100_000;

/// The reason why a run of instructions ended early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// The parser raised the error with this number.
    Parser(u64),
    /// The condition of an `assert` or `assume` was false.
    Assertion,
    /// The run made more backward jumps than [`FUEL`].
    Fuel,
}

/// Operations that the actions of a pipeline have requested, and that are performed at the pipeline's end.
#[derive(Debug, Clone, Copy, Default)]
pub struct Requests {
    /// The requested clone: the clone session and the index of the field list.
    pub clone: Option<(u32, u16)>,
    pub resubmit: Option<u16>,
    pub recirculate: Option<u16>,
    pub digest: Option<u16>,
    pub exit: bool,
    /// Not 0 if any request except `exit` was made. The field is a word, so that machine code can test it.
    pub pending: u64,
}

impl Requests {
    /// Returns whether a request must be performed at the end of the pipeline.
    pub fn any(&self) -> bool {
        self.pending != 0
    }
}

/// All state of an engine except the field values of the packet.
pub struct Machine {
    pub tables: Vec<TableState>,
    /// Each table's result for a key without an entry, for machine code. The vector never moves in memory.
    pub misses: Vec<Answer>,
    pub profiles: Vec<ProfileState>,
    pub ports_down: BTreeSet<u32>,
    pub state: State,
    /// The addresses of the first cells of all register arrays, followed by those of all counter arrays. Machine code
    /// uses these addresses. The arrays move only between packets, in `Engine::succeed`.
    pub arrays: Vec<usize>,
    pub value_sets: Vec<Vec<(Vec<u8>, Vec<u8>)>>,
    pub multicast: BTreeMap<u32, Vec<Replica>>,
    pub clones: BTreeMap<u32, CloneSession>,
    pub digest_configs: HashMap<u32, DigestConfig>,
    pub digests: VecDeque<Digest>,
    pub drops: Drops,
    pub options: Options,
    pub rng: Rng,
    pub trace: Option<Vec<TraceEvent>>,
    /// The action that set `egress_spec` to the drop port. Updated only while the trace is on.
    pub drop_port: DropPort,
    /// The packet's time in nanoseconds since the caller's origin.
    pub now: u64,
    /// The number of bytes that the parser has consumed.
    pub position: usize,
    /// The packet's length in bytes like in BMv2: the length of the frame, changed by the headers that are added and
    /// removed.
    pub packet_length: u64,
    /// The number of bytes by which the packet increases counters and meters.
    pub frame_length: u64,
    /// The length in bytes to which `truncate` or a clone session cuts the packet.
    pub limit: usize,
    pub requests: Requests,
    pub fuel: u32,
    /// A buffer of bytes, which is reused to avoid allocations.
    pub scratch: Vec<u8>,
    /// A reused buffer for the field values with which every replica of a packet starts.
    pub values: Vec<u64>,
    /// A reused buffer for the field values with which an egress clone of a packet starts.
    pub leaving: Vec<u64>,
    /// The passes of the packet through the pipeline (after resubmission, recirculation or cloning) that have not run
    /// yet.
    pub queue: Queue,
    /// A reused buffer for a parser's transition key.
    pub key: Vec<u64>,
    /// Scratch words for the arithmetic of [`crate::wide`].
    pub wide: Vec<u64>,
}

impl Machine {
    pub fn new(program: &Program, options: Options) -> Machine {
        let tables: Vec<_> = program.tables.iter().map(TableState::new).collect();
        let misses = tables.iter().map(TableState::on_miss).collect();
        let o = &program.objects;
        let direct = |i: usize| o.meter_targets[i].is_some();
        let mut state = State {
            registers: o.registers.iter().map(Register::new).collect(),
            counters: o.counters.iter().map(|c| vec![CounterData::default(); c.size as usize]).collect(),
            meters: o
                .meters
                .iter()
                .enumerate()
                .map(|(i, m)| vec![Meter::default(); if direct(i) { 0 } else { m.size as usize }])
                .collect(),
        };
        let arrays = state.addresses();
        Machine {
            tables,
            misses,
            profiles: program.profiles.iter().map(|_| ProfileState::default()).collect(),
            ports_down: BTreeSet::new(),
            state,
            arrays,
            value_sets: vec![Vec::new(); o.value_sets.len()],
            multicast: BTreeMap::new(),
            clones: BTreeMap::new(),
            digest_configs: HashMap::new(),
            digests: VecDeque::new(),
            drops: Drops::default(),
            rng: Rng::new(options.seed),
            options,
            trace: None,
            drop_port: DropPort::default(),
            now: 0,
            position: 0,
            packet_length: 0,
            frame_length: 0,
            limit: usize::MAX,
            requests: Requests::default(),
            fuel: FUEL,
            scratch: Vec::new(),
            values: Vec::new(),
            leaving: Vec::new(),
            queue: Queue::default(),
            key: Vec::new(),
            wide: vec![0; program.wide],
        }
    }

    /// Replaces a table's default action, and returns the previous default action.
    pub fn set_default(&mut self, table: TableId, bound: Option<Bound>) -> Option<Bound> {
        let ts = &mut self.tables[table.index()];
        let old = std::mem::replace(&mut ts.default, bound);
        ts.publish_miss();
        self.misses[table.index()] = ts.on_miss();
        old
    }

    pub fn request(&mut self, note: impl FnOnce(&mut Requests)) {
        note(&mut self.requests);
        self.requests.pending = 1;
    }

    pub fn note(&mut self, event: impl FnOnce() -> TraceEvent) {
        if let Some(trace) = &mut self.trace {
            trace.push(event());
        }
    }

    pub fn refuel(&mut self) {
        self.fuel = FUEL;
    }
}
