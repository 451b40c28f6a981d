//! The interpreter's loop over the instructions, and the lookup in tables.

use super::{Machine, Stop};
use crate::code::{Code, Op, Pc};
use crate::layout::Slots;
use crate::profile::{Bound, Call};
use crate::program::Program;
use crate::table::keys::EntryId;

impl Machine {
    fn burn(&mut self) -> Result<(), Stop> {
        self.fuel = self.fuel.checked_sub(1).ok_or(Stop::Fuel)?;
        Ok(())
    }

    /// Interprets the code from `start` to the end of the pipeline, parser or condition. `data` is the frame, which the
    /// parser reads.
    #[expect(clippy::too_many_lines, reason = "one arm an instruction")]
    pub fn run(&mut self, p: &Program, code: &Code, s: &mut Slots, start: Pc, data: &[u8]) -> Result<(), Stop> {
        let mut pc = start as usize;
        // The address at which to continue after an action that a table runs.
        let mut after: Option<Pc> = None;
        let ops = code.ops.as_slice();
        loop {
            let op = &ops[pc];
            pc += 1;
            macro_rules! s {
                ($slot:expr) => {
                    s[usize::from($slot)]
                };
            }
            match *op {
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
                    if let Some(v) = self.state.registers[usize::from(register)].get(s!(index)) {
                        s!(d) = v;
                    }
                }
                Op::RegisterWrite { register, index, a } => {
                    self.state.registers[usize::from(register)].put(s!(index), s!(a));
                }
                Op::Count { counter, index } => {
                    let cells = &mut self.state.counters[usize::from(counter)];
                    if let Some(c) = usize::try_from(s!(index)).ok().and_then(|i| cells.get_mut(i)) {
                        c.count(self.frame_length);
                    }
                }
                Op::Meter { meter, d, index } => {
                    if let Some(colour) = self.execute_meter(p, usize::from(meter), s!(index)) {
                        s!(d) = colour;
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

    /// Parser: extracts one header of fixed length.
    #[inline(never)]
    pub fn extract(&mut self, p: &Program, s: &mut Slots, header: usize, data: &[u8]) -> Result<(), Stop> {
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

    /// Implements P4's `setValid`. If the header was not valid, its fields become zero, and the packet's length grows
    /// by the length of the header.
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

    /// Applies a table. Returns the address of the action that must run, if any, and the address of the next node.
    #[inline(never)]
    fn apply(&mut self, p: &Program, code: &Code, s: &mut Slots, table: usize, data: &[u8]) -> (Option<Pc>, Pc) {
        let t = &p.tables[table];
        let mut key = std::mem::take(&mut self.tables[table].key);
        t.key.build(s, &mut key);
        let (call, hit) = self.find(p, s, table, &key, data, None);
        let action = call.map(|c| c.action);
        if let Some(call) = call
            && let Some(first) = p.actions[call.action.index()].params.first()
        {
            let at = usize::from(first.slot);
            s[at..at + call.params.len()].copy_from_slice(&call.params);
        }
        self.tables[table].key = key;
        if self.trace.is_some() {
            let ts = &self.tables[table];
            let id = ts.store.lookup(&ts.key).filter(|_| hit);
            self.trace_table(p, table, id);
        }
        let next = code.nodes[t.next.after(action, hit) as usize];
        (action.map(|a| code.actions[a.index()]), next)
    }

    /// Looks up a key and updates the direct counter and meter. Returns the action that must run, and whether an entry
    /// matched. `hash` is the selector's hash, if it has been computed already.
    #[inline]
    pub fn find(
        &mut self,
        p: &Program,
        s: &mut Slots,
        table: usize,
        key: &[u64],
        data: &[u8],
        hash: Option<u64>,
    ) -> (Option<&Call>, bool) {
        let entry_id = self.tables[table].store.lookup(key);
        if self.tables[table].has_direct_state {
            self.update_direct_state(p, s, table, entry_id);
        }
        let ts = &self.tables[table];
        let entry = entry_id.and_then(|id| ts.bound_of(id));
        let hit = entry.is_some();
        let bound = entry.or(ts.default.as_ref());
        let call = match (bound, p.tables[table].info.profile) {
            (Some(Bound::Call(call)), _) => Some(call),
            (Some(bound), Some(profile)) => {
                let scratch = &mut self.scratch;
                let position = self.position;
                self.profiles[profile.index()].resolve(bound, &mut self.rng, || {
                    match (hash, &p.profiles[profile.index()].selector) {
                        (Some(hash), _) => hash,
                        (None, Some(c)) => c.output(s, &p.phv, data.get(position..).unwrap_or(&[]), scratch),
                        (None, None) => 0,
                    }
                })
            }
            _ => None,
        };
        (call, hit)
    }

    /// Updates the direct counter, the direct meter and the idle time of an entry. If `entry_id` is `None`, updates the
    /// counter and meter of the default entry.
    fn update_direct_state(&mut self, p: &Program, s: &mut Slots, table: usize, entry_id: Option<EntryId>) {
        let ts = &mut self.tables[table];
        let (counter, meter) = match entry_id.and_then(|id| ts.entries.get_mut(id as usize)?.as_mut()) {
            Some(e) => {
                e.last_hit = self.now;
                (&mut e.counter, Some(&mut e.meter))
            }
            // On a miss, the field for the meter's colour changes only if the control plane has configured a meter for
            // the default entry. BMv2 behaves in this way too.
            None => (&mut ts.miss.counter, Some(&mut ts.miss.meter).filter(|m| m.config().is_some())),
        };
        counter.count(self.frame_length);
        if let (Some(meter), Some(m)) = (meter, p.tables[table].info.direct_meter) {
            let colour = meter.execute(self.now, self.frame_length, p.objects.meters[m.index()].bytes);
            if let Some(target) = p.objects.meter_targets[m.index()] {
                s[usize::from(target.slot)] = colour;
            }
        }
    }

    /// Returns the colour that a meter assigns to the packet, or `None` if the index is outside of the array.
    pub fn execute_meter(&mut self, p: &Program, meter: usize, index: u64) -> Option<u64> {
        let m = self.state.meters[meter].get_mut(usize::try_from(index).ok()?)?;
        Some(m.execute(self.now, self.frame_length, p.objects.meters[meter].bytes))
    }
}
