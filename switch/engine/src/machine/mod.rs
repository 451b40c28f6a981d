//! Runs instructions.

mod ext;
mod run;
mod select;
mod trace;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use crate::control::{CloneSession, CounterData, Digest, DigestConfig, Entry, Replica};
use crate::engine::{Drops, Options};
use crate::meter::Meter;
use crate::profile::{Bound, Call, ProfileState};
use crate::program::{MatchKind, Program, TableInfo};
use crate::rng::Rng;
use crate::state::{Register, State};
use crate::table::store::{EntryId, Store};
use crate::trace::TraceEvent;

/// Jumps backwards that one pass may make.
const FUEL: u32 = 100_000;

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

/// What an entry holds besides its key.
#[derive(Debug, Clone)]
pub struct EntryState {
    pub bound: Bound,
    pub counter: CounterData,
    pub meter: Meter,
    pub last_hit: u64,
    /// Its idle time was reported since it last matched.
    pub reported: bool,
    pub written: Entry,
    pub is_const: bool,
}

/// What a table's default entry holds besides its action.
#[derive(Debug, Clone, Default)]
pub struct MissState {
    pub counter: CounterData,
    pub meter: Meter,
    pub metadata: Vec<u8>,
    pub cookie: u64,
}

/// A table at run time.
pub struct TableState {
    pub store: Store,
    pub entries: Vec<Option<EntryState>>,
    pub default: Option<Bound>,
    /// What else the default entry holds.
    pub miss: MissState,
    /// The packet's key.
    pub key: Vec<u64>,
    /// Some entry has a counter, a meter or an idle time.
    pub attended: bool,
}

impl TableState {
    /// What an entry does.
    pub fn bound_of(&self, id: EntryId) -> Option<&Bound> {
        self.entries.get(id as usize)?.as_ref().map(|e| &e.bound)
    }
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
}

/// Everything but the packet's values.
pub struct Machine {
    pub tables: Vec<TableState>,
    pub profiles: Vec<ProfileState>,
    pub ports_down: BTreeSet<u32>,
    pub state: State,
    /// Addresses of the first cells of the registers, then of the counters, for machine code. The arrays never move.
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
    pub scratch: Vec<u8>,
}

impl Machine {
    pub fn new(program: &Program, options: Options) -> Machine {
        let tables = program
            .tables
            .iter()
            .map(|t| TableState {
                store: Store::new(t.key.words, is_exact(&t.info)),
                entries: Vec::new(),
                default: t
                    .default
                    .as_ref()
                    .map(|d| Bound::Call(Call { action: d.action, params: d.params.clone().into() })),
                miss: MissState::default(),
                key: vec![0; t.key.words],
                attended: t.info.direct_counter || t.info.direct_meter.is_some() || t.info.support_timeout,
            })
            .collect();
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
            now: 0,
            position: 0,
            packet_length: 0,
            frame_length: 0,
            limit: usize::MAX,
            requests: Requests::default(),
            fuel: FUEL,
            scratch: Vec::new(),
        }
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

/// Every entry of such a table has the same mask.
pub fn is_exact(info: &TableInfo) -> bool {
    info.keys.iter().all(|k| k.kind == MatchKind::Exact)
}
