//! Transfers state from an old engine to the new engine that replaces it when the program is replaced: the state that
//! packets can change, and the handles of the members of action profiles.
//!
//! Packets must wait while state that packets read is transferred: arrays, and the tokens of entries' meters. Arrays of
//! the same shape are moved rather than copied, so their size does not affect the waiting time. State that packets only
//! add to (the counts and idle times of entries) is transferred later in portions, while packets already run on the new
//! engine.

use super::{CounterData, EntryPlace, KeyField, Result};
use crate::engine::Engine;
use crate::error::ControlError;
use crate::meter::Meter;
use crate::program::{CounterId, MeterId, ProfileId, RegisterId, TableId};
use crate::state::Register;

/// An array of the old engine, and the corresponding array of the new engine (`None` if the new program does not have
/// it).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Array {
    /// A register in the old and in the new program. Both registers must have cells of the same width.
    Register(RegisterId, Option<RegisterId>),
    /// A counter in the old and in the new program.
    Counter(CounterId, Option<CounterId>),
    /// A meter in the old and in the new program.
    Meter(MeterId, Option<MeterId>),
}

/// An entry of the old engine and the corresponding entry of the new engine. The pair is valid until one of the two
/// tables is changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntryPair {
    /// The table in the old engine, and the entry's place in it; `None` for the default entry.
    pub old: (TableId, Option<EntryPlace>),
    /// The table in the new engine, and the entry's place in it; `None` for the default entry.
    pub new: (TableId, Option<EntryPlace>),
}

impl Engine {
    /// Returns the place of an entry in its table.
    ///
    /// # Errors
    /// `NotFound` if the entry does not exist, `InvalidArgument` if the key does not fit the table.
    pub fn table_place(&self, table: TableId, key: &[KeyField], priority: i32) -> Result<EntryPlace> {
        let id = self.locate(table, key, priority)?;
        Ok(EntryPlace { age: self.machine.tables[table.index()].store.age(id), id })
    }

    /// Whether a table has the default entry that the program declares: the program's action with the program's
    /// parameters, no metadata, and a cookie of 0.
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

    /// Returns, for each member of a profile, its id and its handles: first the handle of the member itself, then the
    /// handles of its copies (a member with weight W in a group has W handles there). The handles determine the
    /// members' order in groups, and thereby which member a packet's hash selects.
    pub fn member_handles(&self, profile: ProfileId) -> Vec<(u32, Vec<u32>)> {
        let ps = &self.machine.profiles[profile.index()];
        ps.handles_of(ps.member_at.keys().copied())
    }

    /// Assigns to members of a profile the handles that these members had in the old engine, and rebuilds the selection
    /// lists of all groups in the new order.
    pub fn succeed_handles(&mut self, profile: ProfileId, handles: Vec<(u32, Vec<u32>)>) {
        let ps = &mut self.machine.profiles[profile.index()];
        ps.set_handles(handles);
        ps.rebuild_wheels(&self.machine.ports_down, |_| true);
    }

    /// Transfers from `old` the cells of `arrays` and the state of `random()`. For the `metered` entries, transfers
    /// their direct meters (configuration, tokens and counts) too. An array whose size differs is copied, which takes
    /// about a nanosecond for each cell.
    ///
    /// # Errors
    /// `OutOfRange` if a cell that is not in its initial state has no corresponding cell; no state is transferred then.
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

    /// Adds, for each of the `pairs`, the counts of the entry in `old` to the counts of the entry in this engine, and
    /// transfers the idle time. The idle time of an entry that a packet has matched in this engine is not changed.
    /// `succeeded` is the time in nanoseconds when [`Engine::succeed`] was called. Pass every entry exactly once. The
    /// counts of meters that have a configuration are skipped, because `succeed` has transferred them already.
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

    /// Returns an error if a cell of the array is not in its initial state and has no corresponding cell in the new
    /// engine.
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

/// Returns the largest index, from `size` on, of a cell for which `used` returns true; `None` if there is no such cell.
fn last_used<T>(cells: &[T], size: u64, used: impl Fn(&T) -> bool) -> Option<u64> {
    let size = usize::try_from(size).unwrap_or(usize::MAX).min(cells.len());
    cells[size..].iter().rposition(used).map(|at| (size + at) as u64)
}

/// Transfers the cells of `old`, except those whose index the new array does not have.
fn take<T: Copy>(cells: &mut Vec<T>, old: &mut Vec<T>) {
    if cells.len() == old.len() {
        std::mem::swap(cells, old);
    } else {
        let common = cells.len().min(old.len());
        cells[..common].copy_from_slice(&old[..common]);
    }
}

impl Register {
    /// Returns the index of the last nonzero cell among the cells from index `size` on; `None` if they are all zero.
    fn last_used(&self, size: u64) -> Option<u64> {
        let zero = |cell: u64| {
            self.get(cell).is_none_or(|v| v == 0) && self.row(cell).is_none_or(|row| row.iter().all(|v| *v == 0))
        };
        (size.min(self.size)..self.size).rev().find(|cell| !zero(*cell))
    }

    /// Transfers the cells of `old`, except those whose index this register does not have. The cells of both registers
    /// have the same width.
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
