//! Takes over the state that packets have changed from the engine that this one replaces, when the program is replaced.
//!
//! State that packets read has to move at one moment, while packets wait: arrays, and the tokens of entries' meters.
//! Arrays of the same shape are moved rather than copied, so their size does not matter. State that packets only add
//! to, which is the counts and idle times of entries, is added later and piece by piece, while packets run on the new
//! engine.

use super::{CounterData, EntryPlace, KeyField, Result};
use crate::engine::Engine;
use crate::error::ControlError;
use crate::meter::Meter;
use crate::program::{CounterId, MeterId, ProfileId, RegisterId, TableId};
use crate::state::Register;

/// An array of the old engine, and its counterpart in the new engine; `None` if the new program does not have it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Array {
    /// A register of the old and of the new program. Both have cells of the same width.
    Register(RegisterId, Option<RegisterId>),
    /// A counter.
    Counter(CounterId, Option<CounterId>),
    /// A meter.
    Meter(MeterId, Option<MeterId>),
}

/// An entry of the old engine, and its counterpart in the new one. Valid until one of the two tables is changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntryPair {
    /// The table, and the entry's place; `None` for the default entry.
    pub old: (TableId, Option<EntryPlace>),
    /// The same in the new engine.
    pub new: (TableId, Option<EntryPlace>),
}

impl Engine {
    /// The place of an entry.
    ///
    /// # Errors
    /// `NotFound` if there is no such entry, `InvalidArgument` if the key does not fit the table.
    pub fn table_place(&self, table: TableId, key: &[KeyField], priority: i32) -> Result<EntryPlace> {
        let id = self.locate(table, key, priority)?;
        Ok(EntryPlace { age: self.machine.tables[table.index()].store.age(id), id })
    }

    /// Whether a table's default entry is the program's own: no client has set its action, metadata or cookie.
    pub fn default_is_own(&self, table: TableId) -> bool {
        let ts = &self.machine.tables[table.index()];
        let own = self.program.tables[table.index()].default.as_ref();
        let same = match (&ts.default, own) {
            (None, None) => true,
            (Some(crate::profile::Bound::Call(call)), Some(own)) => {
                call.action == own.action && *call.params == *own.params
            }
            _ => false,
        };
        same && ts.miss.metadata.is_empty() && ts.miss.cookie == 0
    }

    /// The handles of all members of a profile, by the member's id. They determine the order of selection in its
    /// groups.
    pub fn member_handles(&self, profile: ProfileId) -> Vec<(u32, Vec<u32>)> {
        let ps = &self.machine.profiles[profile.index()];
        ps.handles_of(ps.member_at.keys().copied())
    }

    /// Gives members of a profile the handles that the same members had in the old engine.
    pub fn succeed_handles(&mut self, profile: ProfileId, handles: Vec<(u32, Vec<u32>)>) {
        let ps = &mut self.machine.profiles[profile.index()];
        ps.set_handles(handles);
        ps.rebuild_wheels(&self.machine.ports_down, |_| true);
    }

    /// Takes over from `old` the arrays, the tokens and configurations of the meters of the `metered` entries, and the
    /// state of `random()`. An array of another size is copied, which takes about a nanosecond for each cell.
    ///
    /// # Errors
    /// `OutOfRange` if a cell that is not in its initial state has no counterpart; nothing is taken over then.
    pub fn succeed(&mut self, old: &mut Engine, arrays: &[Array], metered: &[EntryPair]) -> Result<()> {
        for array in arrays {
            self.has_place(old, *array)?;
        }
        let (state, from) = (&mut self.machine.state, &mut old.machine.state);
        for array in arrays {
            match *array {
                Array::Register(from_id, Some(id)) => {
                    state.registers[id.index()].take(&mut from.registers[from_id.index()]);
                }
                Array::Counter(from_id, Some(id)) => {
                    take(&mut state.counters[id.index()], &mut from.counters[from_id.index()]);
                }
                Array::Meter(from_id, Some(id)) => {
                    take(&mut state.meters[id.index()], &mut from.meters[from_id.index()]);
                }
                Array::Register(_, None) | Array::Counter(_, None) | Array::Meter(_, None) => {}
            }
        }
        for engine in [&mut *self, &mut *old] {
            engine.machine.arrays = engine.machine.state.addresses();
        }
        for pair in metered {
            if let (Some((_, meter)), Some((_, own))) = (old.direct_at(pair.old), self.direct_at(pair.new)) {
                *own = *meter;
            }
        }
        self.machine.rng = old.machine.rng.clone();
        Ok(())
    }

    /// Adds the counts of entries of `old`, and continues their idle times unless packets have matched them here since
    /// `succeeded`, the time of [`Engine::succeed`] in nanoseconds. To be called once for every entry. The meters of
    /// `metered` entries have their counts already.
    pub fn add_counts(&mut self, old: &Engine, pairs: &[EntryPair], succeeded: u64) {
        for pair in pairs {
            let Some((counter, meter)) = old.direct_at_ref(pair.old) else { continue };
            if let Some((own, own_meter)) = self.direct_at(pair.new) {
                own.add(*counter);
                if meter.config().is_none() {
                    own_meter.add_counts(meter);
                }
            }
            let ((from, Some(from_place)), (table, Some(place))) = (pair.old, pair.new) else { continue };
            let entry = self.machine.tables[table.index()].entry_mut(place.id);
            let from = old.machine.tables[from.index()].entry(from_place.id);
            if let (Some(entry), Some(from)) = (entry, from)
                && entry.last_hit < succeeded
            {
                (entry.last_hit, entry.reported) = (from.last_hit, entry.reported.max(from.reported));
            }
        }
    }

    fn direct_at(&mut self, (table, place): (TableId, Option<EntryPlace>)) -> Option<(&mut CounterData, &mut Meter)> {
        let ts = &mut self.machine.tables[table.index()];
        match place {
            None => Some((&mut ts.miss.counter, &mut ts.miss.meter)),
            Some(place) => ts.entry_mut(place.id).map(|entry| (&mut entry.counter, &mut entry.meter)),
        }
    }

    fn direct_at_ref(&self, (table, place): (TableId, Option<EntryPlace>)) -> Option<(&CounterData, &Meter)> {
        let ts = &self.machine.tables[table.index()];
        match place {
            None => Some((&ts.miss.counter, &ts.miss.meter)),
            Some(place) => ts.entry(place.id).map(|entry| (&entry.counter, &entry.meter)),
        }
    }

    /// Refuses an array with a cell that is not in its initial state and has no counterpart.
    fn has_place(&self, old: &Engine, array: Array) -> Result<()> {
        let (state, from) = (&self.machine.state, &old.machine.state);
        let (name, size, last) = match array {
            Array::Register(from_id, id) => {
                let size = id.map_or(0, |id| state.registers[id.index()].size);
                (&old.program.register_info(from_id).name, size, from.registers[from_id.index()].last_used(size))
            }
            Array::Counter(from_id, id) => {
                let size = id.map_or(0, |id| state.counters[id.index()].len() as u64);
                let used = |cell: &CounterData| *cell != CounterData::default();
                (&old.program.counter_info(from_id).name, size, last_used(&from.counters[from_id.index()], size, used))
            }
            Array::Meter(from_id, id) => {
                let size = id.map_or(0, |id| state.meters[id.index()].len() as u64);
                let used = |cell: &Meter| cell.config().is_some();
                (&old.program.meter_info(from_id).name, size, last_used(&from.meters[from_id.index()], size, used))
            }
        };
        match last {
            None => Ok(()),
            Some(cell) => Err(ControlError::OutOfRange(format!(
                "cell {cell} of '{name}' is in use, and there are {size} cells; clear it, or declare more"
            ))),
        }
    }
}

/// The last cell in use among those from index `size` on.
fn last_used<T>(cells: &[T], size: u64, used: impl Fn(&T) -> bool) -> Option<u64> {
    let size = usize::try_from(size).unwrap_or(usize::MAX).min(cells.len());
    cells[size..].iter().rposition(used).map(|at| (size + at) as u64)
}

/// Takes over the cells of `old`, as many as there are in both arrays.
fn take<T: Copy>(cells: &mut Vec<T>, old: &mut Vec<T>) {
    if cells.len() == old.len() {
        std::mem::swap(cells, old);
    } else {
        let common = cells.len().min(old.len());
        cells[..common].copy_from_slice(&old[..common]);
    }
}

impl Register {
    /// The last cell that is not zero among those from index `size` on.
    fn last_used(&self, size: u64) -> Option<u64> {
        let zero = |cell: u64| {
            self.get(cell).is_none_or(|v| v == 0) && self.row(cell).is_none_or(|row| row.iter().all(|v| *v == 0))
        };
        (size.min(self.size)..self.size).rev().find(|cell| !zero(*cell))
    }

    /// Takes over the cells of a register of the same width, as many as there are in both arrays.
    fn take(&mut self, old: &mut Register) {
        if self.size == old.size && self.width == old.width {
            std::mem::swap(self, old);
            return;
        }
        for cell in 0..self.size.min(old.size) {
            match (old.get(cell), old.row(cell)) {
                (Some(value), _) => self.put(cell, value),
                (None, Some(row)) => {
                    self.write(cell, row);
                }
                (None, None) => {}
            }
        }
    }
}
