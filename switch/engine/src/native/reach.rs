//! Finds the basic blocks that a function of machine code must contain, and the slots that these blocks access.

use std::collections::{BTreeSet, HashMap, HashSet};

use crate::calc::Steps;
use crate::code::{Case, Code, Element, Ext, HeaderAt, KeyPart, Op, Pc, Select};
use crate::dataflow::Slots;
use crate::layout::{FieldRef, Slot};
use crate::optimize::effects;
use crate::program::{ActionId, Program};

/// The context in which code runs. The context determines where the run continues after the end of the code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum For {
    Main,
    /// The table, and the action that the table runs.
    Action(u16, u32),
    /// The condition of the checksum with this index.
    Condition(u16),
    /// The deparser's primitives.
    Deparser,
}

/// The beginning of a basic block, with the context in which the block runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Place {
    Code(For, Pc),
    /// The lookup of a key in the table with this number.
    Apply(u16),
}

/// The slots that the machine code of a place accesses, and the places to which it jumps.
struct Uses {
    /// Slots that the place's code reads before it writes them.
    reads: Slots,
    writes: Slots,
    to: Vec<Place>,
}

/// All places that a function of machine code can reach from its starts.
#[derive(Default)]
pub struct Reach {
    /// The places in depth-first order: each place, except the starts, follows a place from which it can be reached.
    pub order: Vec<Place>,
    /// For each place, the number of jumps that lead to it, plus 2 for a start.
    pub ways: HashMap<Place, u32>,
    /// The slots that machine code itself reads or writes.
    pub inside: HashSet<Slot>,
    /// The slots that the called Rust functions read or write.
    pub outside: HashSet<Slot>,
    /// The slots that machine code may read before it writes them.
    exposed: Option<Slots>,
}

/// Returns all addresses at which nodes or actions begin, and to which jumps or parser transitions lead.
pub fn leaders(code: &Code) -> BTreeSet<Pc> {
    let mut all: BTreeSet<Pc> = code.ops.iter().filter_map(|&op| target(op)).collect();
    all.extend(code.nodes.iter().chain(&code.actions).copied().filter(|&pc| pc != Pc::MAX));
    all.extend(code.selects.iter().flat_map(targets));
    all
}

/// Returns the target of a jump, or `None` for an instruction of another kind.
pub fn target(op: Op) -> Option<Pc> {
    crate::optimize::graph::target(op)
}

/// Returns the addresses at which a parser's transition may continue. The default is the last address.
pub fn targets(select: &Select) -> impl Iterator<Item = Pc> + '_ {
    let case = |c: &Case| match c {
        Case::Value { to, .. } | Case::ValueSet { to, .. } => *to,
    };
    select.cases.iter().map(case).chain([select.default])
}

/// Returns whether machine code itself compares the key of a parser's transition. The key must consist of fields of one
/// word each, and no case may be a value set.
pub fn is_plain(select: &Select) -> bool {
    let plain = |p: &KeyPart| matches!(p, KeyPart::Field(f) if f.narrow());
    select.parts.iter().all(plain) && select.cases.iter().all(|c| matches!(c, Case::Value { .. }))
}

/// Returns whether machine code itself performs a lookahead, which must start and end at byte boundaries.
pub fn is_bytes(offset: u32, width: u32) -> bool {
    offset.is_multiple_of(8) && width.is_multiple_of(8)
}

/// Returns the node that follows a table after this action.
pub fn next(p: &Program, table: u16, action: Option<u32>, hit: bool) -> Place {
    let node = p.tables[usize::from(table)].next.after(action.map(ActionId), hit);
    Place::Code(For::Main, p.code.nodes[node as usize])
}

impl Reach {
    pub fn new(p: &Program, leaders: &BTreeSet<Pc>, starts: Vec<Place>) -> Reach {
        let mut reach = Reach::default();
        let mut all: HashMap<Place, Uses> = HashMap::new();
        let mut waiting = Vec::new();
        for &start in starts.iter().rev() {
            // A start is entered from outside of the function, where no values are known. It is counted like a place
            // that is reached from several places, so that it starts without known values.
            *reach.ways.entry(start).or_default() += 2;
            waiting.push(start);
        }
        while let Some(place) = waiting.pop() {
            if all.contains_key(&place) {
                continue;
            }
            reach.order.push(place);
            let uses = reach.follow(p, leaders, place);
            for &to in &uses.to {
                *reach.ways.entry(to).or_default() += 1;
                waiting.push(to);
            }
            all.insert(place, uses);
        }
        reach.exposed = Some(reach.expose(p, &all, &starts));
        reach
    }

    /// Returns whether machine code may read the slot before it writes the slot.
    pub fn exposes(&self, slot: Slot) -> bool {
        self.exposed.as_ref().is_some_and(|e| e.has(slot))
    }

    fn expose(&self, p: &Program, all: &HashMap<Place, Uses>, starts: &[Place]) -> Slots {
        let mut live: HashMap<Place, Slots> = all.iter().map(|(&place, uses)| (place, uses.reads.clone())).collect();
        let mut changed = true;
        while changed {
            changed = false;
            for place in self.order.iter().rev() {
                let uses = &all[place];
                let mut now = Slots::none(p.world.used);
                uses.to.iter().for_each(|to| now.add_all(&live[to]));
                now.remove_all(&uses.writes);
                now.add_all(&uses.reads);
                if now != live[place] {
                    live.insert(*place, now);
                    changed = true;
                }
            }
        }
        let mut exposed = Slots::none(p.world.used);
        starts.iter().for_each(|start| exposed.add_all(&live[start]));
        exposed
    }

    fn follow(&mut self, p: &Program, leaders: &BTreeSet<Pc>, place: Place) -> Uses {
        let none = || Slots::none(p.world.used);
        let mut uses = Uses { reads: none(), writes: none(), to: Vec::new() };
        uses.to = match place {
            Place::Code(on_behalf, pc) => self.code(p, leaders, &mut uses, on_behalf, pc),
            Place::Apply(table) => self.table(p, &mut uses, table),
        };
        uses
    }

    fn code(&mut self, p: &Program, leaders: &BTreeSet<Pc>, uses: &mut Uses, on_behalf: For, start: Pc) -> Vec<Place> {
        let code = &p.code;
        if let For::Action(_, action) = on_behalf
            && start == code.actions[action as usize]
        {
            let params: Vec<Slot> = p.actions[action as usize].params.iter().flat_map(slots).collect();
            self.write(uses, &params);
        }
        let at = |pc: Pc| Place::Code(on_behalf, pc);
        let mut pc = start;
        loop {
            if pc != start && leaders.contains(&pc) {
                return vec![at(pc)];
            }
            let op = code.ops[pc as usize];
            pc += 1;
            self.note(p, uses, op);
            match op {
                Op::Jump { to } | Op::JumpBack { to } => return vec![at(to)],
                Op::Apply { table } => return vec![Place::Apply(table)],
                Op::Select { index } => return targets(&code.selects[index as usize]).map(at).collect(),
                Op::Return => {
                    let For::Action(table, action) = on_behalf else { return Vec::new() };
                    let (hit, miss) = (next(p, table, Some(action), true), next(p, table, Some(action), false));
                    return if hit == miss { vec![hit] } else { vec![hit, miss] };
                }
                op => {
                    if let Some(to) = target(op) {
                        return vec![at(to), at(pc)];
                    }
                }
            }
        }
    }

    fn read(&mut self, uses: &mut Uses, slots: &[Slot]) {
        self.inside.extend(slots);
        slots.iter().filter(|&&s| !uses.writes.has(s)).for_each(|&s| uses.reads.add(s));
    }

    fn write(&mut self, uses: &mut Uses, slots: &[Slot]) {
        self.inside.extend(slots);
        slots.iter().for_each(|&s| uses.writes.add(s));
    }

    fn table(&mut self, p: &Program, uses: &mut Uses, table: u16) -> Vec<Place> {
        let t = &p.tables[usize::from(table)];
        self.read(uses, &t.key.slots());
        if let Some(selector) = t.info.profile.and_then(|i| p.profiles[i.index()].selector.as_ref()) {
            let slots = selector.slots(&p.world.headers);
            if matches!(selector.steps(), Steps::Words(..)) {
                self.read(uses, &slots);
            } else {
                self.outside.extend(slots);
            }
        }
        if let Some(target) = t.info.direct_meter.and_then(|m| p.objects.meter_targets[m.index()]) {
            self.outside.insert(target.slot);
        }
        let action = |&a: &usize| Place::Code(For::Action(table, a as u32), p.code.actions[a]);
        let mut to: Vec<Place> = p.world.tables[usize::from(table)].actions.iter().map(action).collect();
        let (hit, miss) = (next(p, table, None, true), next(p, table, None, false));
        to.push(hit);
        if miss != hit {
            to.push(miss);
        }
        to
    }

    fn note(&mut self, p: &Program, uses: &mut Uses, op: Op) {
        match op {
            Op::Ext { index } => match &p.code.ext[index as usize] {
                Ext::Hash { calculation, d, base, max } => {
                    let inputs = &p.world.calculations[usize::from(*calculation)];
                    if matches!(p.objects.calculations[usize::from(*calculation)].steps(), Steps::Words(..)) {
                        self.read(uses, inputs);
                    } else {
                        self.outside.extend(inputs);
                    }
                    self.read(uses, &[*base, *max]);
                    self.write(uses, &[*d]);
                }
                Ext::Verify { condition, error } => self.read(uses, &[*condition, *error]),
                Ext::LastIndex { d, next } => {
                    self.read(uses, &[*next]);
                    self.write(uses, &[*d]);
                }
                Ext::Lookahead { offset, width, d } if is_bytes(*offset, *width) => {
                    self.write(uses, &slots(d).collect::<Vec<_>>());
                }
                Ext::Assert { a } => self.read(uses, &[*a]),
                Ext::Log { .. } => {}
                other => self.outside.extend(touched(p, other)),
            },
            Op::SetValid { header } | Op::SetInvalid { header } => {
                self.outside.extend(&p.world.headers[usize::from(header)]);
            }
            Op::Select { index } => {
                let select = &p.code.selects[index as usize];
                let field_slots = |field: &KeyPart| match field {
                    KeyPart::Field(f) => slots(f).collect(),
                    _ => Vec::new(),
                };
                let fields: Vec<Slot> = select.parts.iter().flat_map(field_slots).collect();
                if is_plain(select) { self.read(uses, &fields) } else { self.outside.extend(fields) }
            }
            op => {
                let mut copy = op;
                if let Some((&mut a, b)) = effects::tested(&mut copy) {
                    self.read(uses, &[a]);
                    b.iter().for_each(|b| self.read(uses, &[**b]));
                } else if target(op).is_none() {
                    let e = effects::of(op, &p.code, &p.world);
                    self.read(uses, &e.reads);
                    self.write(uses, &e.writes);
                }
            }
        }
    }
}

fn slots(f: &FieldRef) -> impl Iterator<Item = Slot> + use<> {
    let first = f.slot;
    (0..f.slots() as Slot).map(move |i| first.wrapping_add(i))
}

/// Returns the slots that an operation accesses when Rust executes it. (The result may omit slots of headers and of
/// stacks, which are always in memory.)
pub fn touched(p: &Program, ext: &Ext) -> Vec<Slot> {
    let at = |h: &HeaderAt| match h {
        HeaderAt::Fixed(h) => p.world.headers[usize::from(*h)].clone(),
        HeaderAt::Indexed(_, index) => vec![*index],
    };
    let element = |e: &Element| match e {
        Element::Last => None,
        Element::Index(index) => Some(*index),
    };
    let header = |h: &u16| p.world.headers[usize::from(*h)].clone();
    match ext {
        Ext::Wide(wide) => wide.fields().flat_map(slots).collect(),
        Ext::RowEq { d, a, b, n } => (0..*n).flat_map(|i| [a.wrapping_add(i), b.wrapping_add(i)]).chain([*d]).collect(),
        Ext::CopyVarbit { d, a } => slots(d).chain(slots(a)).collect(),
        Ext::LoadElement { element: e, field, d, .. } => {
            (0..field.slots() as Slot).map(|i| d.wrapping_add(i)).chain(element(e)).collect()
        }
        Ext::StoreElement { element: e, field, a, .. } => {
            (0..field.slots() as Slot).map(|i| a.wrapping_add(i)).chain(element(e)).collect()
        }
        Ext::HeaderEq { d, a, b } => at(a).into_iter().chain(at(b)).chain([*d]).collect(),
        Ext::UnionEq { d, a, b } => a.iter().chain(b).flat_map(header).chain([*d]).collect(),
        Ext::SetValid { header, .. } => at(header),
        Ext::AssignHeader { d, a } => at(d).into_iter().chain(at(a)).collect(),
        Ext::AssignHeaders { pairs, next } => {
            let headers = pairs.iter().flat_map(|(d, a)| header(d).into_iter().chain(header(a)));
            headers.chain(next.iter().flat_map(|n| [n.0, n.1])).collect()
        }
        Ext::Push { count: a, .. } | Ext::Pop { count: a, .. } => vec![*a],
        Ext::PushUnion { count: a, .. } | Ext::PopUnion { count: a, .. } => vec![*a],
        Ext::RegisterRead { d: f, index, .. } | Ext::RegisterWrite { a: f, index, .. } => {
            slots(f).chain([*index]).collect()
        }
        Ext::Hash { d, base: a, max: b, .. } | Ext::Random { d, low: a, high: b } => vec![*d, *a, *b],
        Ext::LastIndex { d: a, next: b } | Ext::Verify { condition: a, error: b } => vec![*a, *b],
        Ext::Truncate { length: a } | Ext::Assert { a } | Ext::Advance { bits: a } => vec![*a],
        Ext::CloneIngress { session, .. } | Ext::CloneEgress { session, .. } => vec![*session],
        Ext::ExtractTo { length, .. } => length.iter().copied().collect(),
        Ext::Lookahead { d, .. } => slots(d).collect(),
        Ext::Log { args, .. } => args.iter().flat_map(|a| slots(&a.0)).collect(),
        Ext::Resubmit { .. } | Ext::Recirculate { .. } | Ext::Digest { .. } | Ext::NeedElement { .. } => Vec::new(),
    }
}
