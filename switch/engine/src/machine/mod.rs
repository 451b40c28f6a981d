//! Runs instructions.

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

/// Jumps backwards that one pass may make.
pub const FUEL: u32 = 100_000;

/// Why a run ended early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// The parser raised this error.
    Parser(u64),
    /// `assert` or `assume` did not hold.
    Assertion,
    /// More jumps backwards than one pass may make.
    Fuel,
}

/// What actions asked for.
#[derive(Debug, Clone, Copy, Default)]
pub struct Requests {
    /// Session and field list.
    pub clone: Option<(u32, u16)>,
    pub resubmit: Option<u16>,
    pub recirculate: Option<u16>,
    pub digest: Option<u16>,
    pub exit: bool,
    /// Not 0: one of them is there (`exit` apart).
    pub asked: u64,
}

impl Requests {
    /// Whether there is something to do at the end of the pipeline.
    pub fn any(&self) -> bool {
        self.asked != 0
    }
}

/// Everything but the packet's values.
pub struct Machine {
    pub tables: Vec<TableState>,
    /// What each table answers on a miss, for machine code. Never moves.
    pub misses: Vec<Answer>,
    pub profiles: Vec<ProfileState>,
    pub ports_down: BTreeSet<u32>,
    pub state: State,
    /// Addresses of the first cells of the registers, then of the counters, for machine code. The arrays move only
    /// between packets, in `Engine::succeed`.
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
    /// Followed while the trace is on.
    pub drop_port: DropPort,
    /// Nanoseconds.
    pub now: u64,
    /// Bytes parsed.
    pub position: usize,
    /// Length as BMv2 counts it: the frame's, changed by headers that are added and removed.
    pub packet_length: u64,
    /// What counters and meters count.
    pub frame_length: u64,
    /// `truncate`.
    pub limit: usize,
    pub requests: Requests,
    pub fuel: u32,
    /// Bytes in the making.
    pub scratch: Vec<u8>,
    /// What every replica of a packet starts with.
    pub values: Vec<u64>,
    /// What an egress clone of a packet starts with.
    pub leaving: Vec<u64>,
    /// Passes still to be made.
    pub queue: Queue,
    /// A parser's transition key in the making.
    pub key: Vec<u64>,
    /// What [`crate::wide`] computes with.
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

    /// Gives a table another default action; returns the one it had.
    pub fn set_default(&mut self, table: TableId, bound: Option<Bound>) -> Option<Bound> {
        let ts = &mut self.tables[table.index()];
        let old = std::mem::replace(&mut ts.default, bound);
        ts.show_miss();
        self.misses[table.index()] = ts.on_miss();
        old
    }

    pub fn ask(&mut self, note: impl FnOnce(&mut Requests)) {
        note(&mut self.requests);
        self.requests.asked = 1;
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
