//! Runs instructions.

use std::collections::{BTreeMap, HashMap, VecDeque};

use crate::code::{Case, Code, KeyPart, Note, Op, Pc, Select};
use crate::control::{CloneSession, CounterData, Digest, DigestConfig, Replica};
use crate::engine::{Drops, Options};
use crate::layout::{FieldRef, Slots};
use crate::meter::Meter;
use crate::phv::low;
use crate::profile::{Bound, Call, ProfileState};
use crate::program::{Program, TableInfo};
use crate::rng::Rng;
use crate::state::{Register, State};
use crate::table::store::Store;
use crate::trace::TraceEvent;
use crate::{bits, wide};

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
    pub written: crate::control::Entry,
    pub is_const: bool,
}

/// A table at run time.
pub struct TableState {
    pub store: Store,
    pub entries: Vec<Option<EntryState>>,
    pub default: Option<Bound>,
    /// The packet's key.
    pub key: Vec<u64>,
    /// Some entry has a counter, a meter or an idle time.
    pub attended: bool,
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
    pub state: State,
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
                key: vec![0; t.key.words],
                attended: t.info.direct_counter || t.info.direct_meter.is_some() || t.info.support_timeout,
            })
            .collect();
        let o = &program.objects;
        let direct = |i: usize| o.meter_targets[i].is_some();
        let state = State {
            registers: o.registers.iter().map(Register::new).collect(),
            counters: o.counters.iter().map(|c| vec![CounterData::default(); c.size as usize]).collect(),
            meters: o
                .meters
                .iter()
                .enumerate()
                .map(|(i, m)| vec![Meter::default(); if direct(i) { 0 } else { m.size as usize }])
                .collect(),
        };
        Machine {
            tables,
            profiles: program.profiles.iter().map(|_| ProfileState::default()).collect(),
            state,
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

    fn burn(&mut self) -> Result<(), Stop> {
        self.fuel = self.fuel.checked_sub(1).ok_or(Stop::Fuel)?;
        Ok(())
    }

    /// Runs from `pc` until the end of the pipeline, parser or condition. `data`: the frame, for the parser.
    pub fn run(&mut self, p: &Program, code: &Code, s: &mut Slots, start: Pc, data: &[u8]) -> Result<(), Stop> {
        let mut pc = start as usize;
        // where an action that a table runs goes on
        let mut after: Option<Pc> = None;
        loop {
            let op = code.ops[pc];
            pc += 1;
            macro_rules! s {
                ($slot:expr) => {
                    s[usize::from($slot)]
                };
            }
            match op {
                Op::Mov { m, d, a } => s!(d) = s!(a) & (u64::MAX >> m),
                Op::Add { m, d, a, b } => s!(d) = s!(a).wrapping_add(s!(b)) & (u64::MAX >> m),
                Op::Sub { m, d, a, b } => s!(d) = s!(a).wrapping_sub(s!(b)) & (u64::MAX >> m),
                Op::Mul { m, d, a, b } => s!(d) = s!(a).wrapping_mul(s!(b)) & (u64::MAX >> m),
                Op::And { d, a, b } => s!(d) = s!(a) & s!(b),
                Op::Or { d, a, b } => s!(d) = s!(a) | s!(b),
                Op::Xor { d, a, b } => s!(d) = s!(a) ^ s!(b),
                Op::Not { m, d, a } => s!(d) = !s!(a) & (u64::MAX >> m),
                Op::Shl { m, d, a, b } => {
                    let k = s!(b);
                    s!(d) = if k < 64 { s!(a) << k & (u64::MAX >> m) } else { 0 };
                }
                Op::Shr { d, a, b } => {
                    let k = s!(b);
                    s!(d) = if k < 64 { s!(a) >> k } else { 0 };
                }
                Op::Sar { d, a, b } => s!(d) = ((s!(a) as i64) >> s!(b).min(63)) as u64,
                Op::ShlI { m, k, d, a } => s!(d) = s!(a) << k & (u64::MAX >> m),
                Op::ShrI { m, k, d, a } => s!(d) = s!(a) >> k & (u64::MAX >> m),
                Op::SarI { k, d, a } => s!(d) = ((s!(a) as i64) >> k) as u64,
                Op::Funnel { m, k, d, a } => {
                    let (low, high) = (s!(a), s!(a.wrapping_add(1)));
                    s!(d) = (low >> k | high << (64 - k)) & (u64::MAX >> m);
                }
                Op::Div { d, a, b } => s!(d) = s!(a).checked_div(s!(b)).unwrap_or(0),
                Op::Rem { d, a, b } => s!(d) = s!(a).checked_rem(s!(b)).unwrap_or(0),
                Op::Sext { m, d, a } => s!(d) = (((s!(a) << m) as i64) >> m) as u64,
                Op::ClampSU { m, d, a } => {
                    s!(d) = (s!(a) as i64).max(0).min((u64::MAX >> m).min(i64::MAX as u64) as i64) as u64
                }
                Op::ClampUU { m, d, a } => s!(d) = s!(a).min(u64::MAX >> m),
                Op::ClampSS { m, d, a } => s!(d) = (s!(a) as i64).clamp(i64::MIN >> m, i64::MAX >> m) as u64,
                Op::Eq { d, a, b } => s!(d) = u64::from(s!(a) == s!(b)),
                Op::Ne { d, a, b } => s!(d) = u64::from(s!(a) != s!(b)),
                Op::LtU { d, a, b } => s!(d) = u64::from(s!(a) < s!(b)),
                Op::LeU { d, a, b } => s!(d) = u64::from(s!(a) <= s!(b)),
                Op::LtS { d, a, b } => s!(d) = u64::from((s!(a) as i64) < s!(b) as i64),
                Op::LeS { d, a, b } => s!(d) = u64::from(s!(a) as i64 <= s!(b) as i64),
                Op::Jump { to } => pc = to as usize,
                Op::JumpBack { to } => {
                    self.burn()?;
                    pc = to as usize;
                }
                Op::JumpIfZero { a, to } => {
                    if s!(a) == 0 {
                        pc = to as usize;
                    }
                }
                Op::JumpIfNotZero { a, to } => {
                    if s!(a) != 0 {
                        pc = to as usize;
                    }
                }
                Op::JumpEq { to, a, b } => {
                    if s!(a) == s!(b) {
                        pc = to.pc();
                    }
                }
                Op::JumpNe { to, a, b } => {
                    if s!(a) != s!(b) {
                        pc = to.pc();
                    }
                }
                Op::JumpLtU { to, a, b } => {
                    if s!(a) < s!(b) {
                        pc = to.pc();
                    }
                }
                Op::JumpLeU { to, a, b } => {
                    if s!(a) <= s!(b) {
                        pc = to.pc();
                    }
                }
                Op::JumpLtS { to, a, b } => {
                    if (s!(a) as i64) < s!(b) as i64 {
                        pc = to.pc();
                    }
                }
                Op::JumpLeS { to, a, b } => {
                    if s!(a) as i64 <= s!(b) as i64 {
                        pc = to.pc();
                    }
                }
                Op::Copy { d, a, n } => s.copy_within(usize::from(a)..usize::from(a) + usize::from(n), usize::from(d)),
                Op::Zero { d, n } => s[usize::from(d)..usize::from(d) + usize::from(n)].fill(0),
                Op::Apply { table } => {
                    let (action, next) = self.apply(p, code, s, table.into(), data);
                    match action {
                        Some(start) => {
                            after = Some(next);
                            pc = start as usize;
                        }
                        None => pc = next as usize,
                    }
                }
                Op::EndIfExit => {
                    if self.requests.exit {
                        return Ok(());
                    }
                }
                Op::Exit => self.requests.exit = true,
                Op::Return => match after.take() {
                    Some(next) if !self.requests.exit => pc = next as usize,
                    _ => return Ok(()),
                },
                Op::SetValid { header } => self.set_valid(p, s, header.into()),
                Op::SetInvalid { header } => self.set_invalid(p, s, header.into()),
                Op::RegisterRead { register, d, index } => {
                    let r = &self.state.registers[usize::from(register)];
                    if let Some(&v) = usize::try_from(s!(index)).ok().and_then(|i| r.words.get(i)) {
                        s!(d) = v;
                    }
                }
                Op::RegisterWrite { register, index, a } => {
                    let r = &mut self.state.registers[usize::from(register)];
                    if let Some(v) = usize::try_from(s!(index)).ok().and_then(|i| r.words.get_mut(i)) {
                        *v = s!(a);
                    }
                }
                Op::Count { counter, index } => {
                    let cells = &mut self.state.counters[usize::from(counter)];
                    if let Some(c) = usize::try_from(s!(index)).ok().and_then(|i| cells.get_mut(i)) {
                        c.count(self.frame_length);
                    }
                }
                Op::Meter { meter, d, index } => {
                    let cells = &mut self.state.meters[usize::from(meter)];
                    if let Some(m) = usize::try_from(s!(index)).ok().and_then(|i| cells.get_mut(i)) {
                        let bytes = p.objects.meters[usize::from(meter)].bytes;
                        s!(d) = m.execute(self.now, if bytes { self.frame_length } else { 1 });
                    }
                }
                Op::Extract { header } => self.extract(p, s, header.into(), data)?,
                Op::Select { index } => {
                    let to = self.select(p, code, s, index as usize, data)?;
                    if to as usize <= pc {
                        self.burn()?;
                    }
                    pc = to as usize;
                }
                Op::Ext { index } => self.ext(p, &code.ext[index as usize], s, data)?,
                Op::Note { index } => self.run_note(p, code, s, index as usize),
            }
        }
    }

    /// One header of fixed length.
    #[inline(never)]
    fn extract(&mut self, p: &Program, s: &mut Slots, header: usize, data: &[u8]) -> Result<(), Stop> {
        let h = &p.phv.headers[header];
        let plan = &p.phv.plans[usize::from(h.plan)];
        let rest = &data[self.position..];
        if rest.len() < plan.fixed_bytes {
            return Err(Stop::Parser(p.errors.packet_too_short));
        }
        plan.extract(s, h.base, rest, 0);
        self.position += plan.fixed_bytes;
        p.phv.set_valid(s, header);
        Ok(())
    }

    /// `setValid`: a header that was not valid becomes all zero.
    #[inline(never)]
    pub fn set_valid(&mut self, p: &Program, s: &mut Slots, header: usize) {
        if !p.phv.is_valid(s, header) {
            p.phv.zero(s, header);
            p.phv.set_valid(s, header);
            self.packet_length += p.phv.header_bytes(s, header) as u64;
        }
    }

    #[inline(never)]
    pub fn set_invalid(&mut self, p: &Program, s: &mut Slots, header: usize) {
        if p.phv.is_valid(s, header) {
            self.packet_length = self.packet_length.wrapping_sub(p.phv.header_bytes(s, header) as u64);
            s[usize::from(p.phv.headers[header].valid)] = 0;
        }
    }

    /// Looks a table up; returns the start of the action and of the next node.
    #[inline(never)]
    fn apply(&mut self, p: &Program, code: &Code, s: &mut Slots, table: usize, data: &[u8]) -> (Option<Pc>, Pc) {
        let t = &p.tables[table];
        let ts = &mut self.tables[table];
        t.key.build(s, &mut ts.key);
        let found = ts.store.lookup(&ts.key);
        let entry = found.and_then(|id| ts.entries[id as usize].as_mut());
        let hit = entry.is_some();
        let bound = match entry {
            Some(e) => {
                if ts.attended {
                    e.last_hit = self.now;
                    e.reported = false;
                    e.counter.count(self.frame_length);
                    if let Some(m) = t.info.direct_meter {
                        let cost = if p.objects.meters[m.index()].bytes { self.frame_length } else { 1 };
                        let colour = e.meter.execute(self.now, cost);
                        if let Some(target) = p.objects.meter_targets[m.index()] {
                            s[usize::from(target.slot)] = colour;
                        }
                    }
                }
                Some(&e.bound)
            }
            None => ts.default.as_ref(),
        };
        let call = match (bound, t.info.profile) {
            (Some(Bound::Call(call)), _) => Some(call),
            (Some(bound), Some(profile)) => {
                let scratch = &mut self.scratch;
                let position = self.position;
                self.profiles[profile.index()].resolve(bound, || match &p.profiles[profile.index()].selector {
                    Some(c) => c.output(s, &p.phv, data.get(position..).unwrap_or(&[]), scratch),
                    None => 0,
                })
            }
            _ => None,
        };
        let action = call.map(|c| c.action);
        if let Some(call) = call
            && let Some(first) = p.actions[call.action.index()].params.first()
        {
            let at = usize::from(first.slot);
            s[at..at + call.params.len()].copy_from_slice(&call.params);
        }
        if self.trace.is_some() {
            let id = found.filter(|_| hit);
            self.trace_table(p, table, id);
        }
        let next = code.nodes[t.next.after(action, hit) as usize];
        (action.map(|a| code.actions[a.index()]), next)
    }

    fn key_part(&self, p: &Program, s: &Slots, part: KeyPart, data: &[u8], row: &mut Vec<u64>) -> Result<(), Stop> {
        let field = |f: FieldRef, row: &mut Vec<u64>| {
            if f.limbs() == 1 {
                row.push(low(s, f.slot, f.width));
            } else {
                row.extend_from_slice(&s[usize::from(f.slot)..usize::from(f.slot) + f.limbs()]);
            }
        };
        match part {
            KeyPart::Field(f) => field(f, row),
            KeyPart::StackLast { stack, field: f } => {
                let base =
                    p.phv.stacks[usize::from(stack)].last(s).ok_or(Stop::Parser(p.errors.stack_out_of_bounds))?;
                field(f.offset(base), row);
            }
            KeyPart::UnionStackLast { stack, member, field: f } => {
                let u = &p.phv.union_stacks[usize::from(stack)];
                let last = usize::try_from(s[usize::from(u.next)].wrapping_sub(1)).ok();
                let headers = last.and_then(|i| u.unions.get(i)).ok_or(Stop::Parser(p.errors.stack_out_of_bounds))?;
                let base = p.phv.headers[usize::from(headers[usize::from(member)])].base;
                field(f.offset(base), row);
            }
            KeyPart::Lookahead { offset, width } => {
                let first = row.len();
                row.resize(first + crate::layout::limbs(width), 0);
                self.lookahead(p, data, offset, width, &mut row[first..])?;
            }
        }
        Ok(())
    }

    /// Bits ahead of the parser.
    pub fn lookahead(&self, p: &Program, data: &[u8], offset: u32, width: u32, row: &mut [u64]) -> Result<(), Stop> {
        let rest = &data[self.position..];
        if rest.len() * 8 < (offset + width) as usize {
            return Err(Stop::Parser(p.errors.packet_too_short));
        }
        bits::read(rest, offset as usize, width as usize, row);
        Ok(())
    }

    /// Where a parser state leads.
    #[inline(never)]
    fn select(&mut self, p: &Program, code: &Code, s: &Slots, index: usize, data: &[u8]) -> Result<Pc, Stop> {
        let select = &code.selects[index];
        let Some(small) = &select.small else {
            return self.select_slowly(p, select, s, data);
        };
        let v = match select.parts[0] {
            KeyPart::Field(f) => s[usize::from(f.slot)],
            KeyPart::Lookahead { offset, width } => {
                let mut row = [0];
                self.lookahead(p, data, offset, width, &mut row)?;
                row[0]
            }
            _ => 0,
        };
        Ok(small.iter().find(|c| v & c.1 == c.0).map_or(select.default, |c| c.2))
    }

    fn select_slowly(&self, p: &Program, select: &Select, s: &Slots, data: &[u8]) -> Result<Pc, Stop> {
        let mut row = Vec::with_capacity(8);
        for &part in &select.parts {
            self.key_part(p, s, part, data, &mut row)?;
        }
        for case in &select.cases {
            match case {
                Case::Value { value, mask, to } => {
                    if row.iter().zip(mask).zip(value).all(|((k, m), v)| k & m == *v) {
                        return Ok(*to);
                    }
                }
                Case::ValueSet { set, to } => {
                    if self.in_value_set(usize::from(*set), &select.parts, &row) {
                        return Ok(*to);
                    }
                }
            }
        }
        Ok(select.default)
    }

    fn in_value_set(&self, set: usize, parts: &[KeyPart], row: &[u64]) -> bool {
        if self.value_sets[set].is_empty() {
            return false;
        }
        let total: u32 = parts.iter().map(|p| p.width()).sum();
        let mut key = Vec::new();
        let mut w = bits::BitWriter::new(&mut key);
        w.put(0, (8 - total % 8) % 8);
        let mut at = 0;
        for part in parts {
            w.put_row(&row[at..], part.width());
            at += crate::layout::limbs(part.width());
        }
        w.finish();
        self.value_sets[set]
            .iter()
            .any(|(value, mask)| key.iter().zip(mask).zip(value).all(|((k, m), v)| k & m == v & m))
    }

    #[cold]
    fn run_note(&mut self, p: &Program, code: &Code, s: &Slots, index: usize) {
        let event = match &code.notes[index] {
            Note::ParserState(name) => TraceEvent::ParserState(name.clone()),
            Note::Extract(name) => TraceEvent::Extract(name.clone()),
            Note::Condition { text, a } => {
                TraceEvent::Condition { condition: text.clone(), value: s[usize::from(*a)] != 0 }
            }
            Note::Action(id) => {
                let action = &p.actions[*id as usize];
                let value = |f: &FieldRef| format!("0x{}", hex(&wide::to_bytes(s, *f)));
                let params =
                    action.info.params.iter().zip(&action.params).map(|(i, f)| (i.name.clone(), value(f))).collect();
                TraceEvent::Action { action: action.info.name.clone(), params }
            }
        };
        self.note(|| event);
    }

    #[cold]
    fn trace_table(&mut self, p: &Program, table: usize, entry: Option<u32>) {
        let ts = &self.tables[table];
        let key = ts.key.iter().map(|w| format!("{w:016x}")).collect::<Vec<_>>().join(" ");
        let entry =
            entry.and_then(|id| ts.entries[id as usize].as_ref()).map(|e| describe(&p.tables[table].info, &e.written));
        let table = p.tables[table].info.name.clone();
        self.note(|| TraceEvent::Table { table, key, entry });
    }
}

/// Every entry of such a table has the same mask.
pub fn is_exact(info: &TableInfo) -> bool {
    info.keys.iter().all(|k| k.kind == crate::program::MatchKind::Exact)
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

fn describe(info: &TableInfo, entry: &crate::control::Entry) -> String {
    use crate::control::KeyField as K;
    let field = |f: &K| match f {
        K::Exact(v) => hex(v),
        K::Lpm { value, prefix_len } => format!("{}/{prefix_len}", hex(value)),
        K::Ternary { value, mask } => format!("{}&&&{}", hex(value), hex(mask)),
        K::Range { low, high } => format!("{}..{}", hex(low), hex(high)),
        K::Optional(v) => v.as_ref().map_or("*".into(), |v| hex(v)),
    };
    let fields: Vec<String> =
        info.keys.iter().zip(&entry.key).map(|(k, f)| format!("{}={}", k.name, field(f))).collect();
    if info.needs_priority { format!("{} priority {}", fields.join(" "), entry.priority) } else { fields.join(" ") }
}
