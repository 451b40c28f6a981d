//! Reads the single cells that the patterns of a request name, in one request to the driver. Afterwards the patterns
//! are answered one by one.
//!
//! If a request names many cells of one array, the driver first copies the array from the device. With open-p4studio on
//! an idle software model, a read of one cell needs 0.9 to 1.7 ms. A copy of 1,024 registers in one pipe needs 6 ms,
//! and a copy of 1,024 counters in four pipes needs 84 ms.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use sluice_p4runtime::proto::p4::v1 as p4;
use tonic::Status;

use crate::bfrt;
use crate::client::Driver;
use crate::load::Loaded;
use crate::proto::{self, TableData, entity as driver_entity, key_field};
use p4::entity::Entity;

/// Number of cells of a register in one pipe that the driver can copy in the time that it needs to read a single cell.
const REGISTERS_A_CELL: u64 = 150;
/// Number of rows of a counter that the driver can copy in the time that it needs to read a single cell. A row consists
/// of the cells with one index in all pipes.
const COUNTERS_A_CELL: u64 = 16;
/// The least number of cells that are prefetched. A single cell is read when its pattern is answered.
const LEAST: usize = 2;

/// A register or counter array of the driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Array {
    table: u32,
    /// The id of the key's only field, the index.
    key: u32,
    size: u64,
    /// The value of [`REGISTERS_A_CELL`] for a register, of [`COUNTERS_A_CELL`] for a counter.
    rows_a_cell: u64,
}

/// The indices of the cells to read, for each array.
type CellIndices = BTreeMap<Array, BTreeSet<u32>>;

/// The cells that were read, by pipe, table and index. For counters, the pipe is the driver's id of all pipes.
#[derive(Debug, Default)]
pub struct Prefetched(HashMap<(u32, u32, u64), TableData>);

impl Prefetched {
    /// Reads the cells that patterns name. If a request for several cells fails, the result omits all cells of this
    /// request. The gateway then reads them again one by one, so that the error names the place of the wrong pattern.
    ///
    /// # Errors
    /// Fails when the driver does not reply to a request to copy arrays.
    pub async fn read(
        loaded: &Loaded,
        driver: &Driver,
        pipes: &[u32],
        patterns: &[p4::Entity],
    ) -> Result<Self, Status> {
        let mut prefetched = Self::default();
        let (mut registers, mut counters) = (CellIndices::new(), CellIndices::new());
        for pattern in patterns.iter().filter_map(|pattern| pattern.entity.as_ref()) {
            match pattern {
                Entity::RegisterEntry(entry) => add_cell(&mut registers, register(loaded, entry), entry.index.as_ref()),
                Entity::CounterEntry(entry) => add_cell(&mut counters, counter(loaded, entry), entry.index.as_ref()),
                _ => {}
            }
        }
        if registers.values().chain(counters.values()).map(BTreeSet::len).sum::<usize>() < LEAST {
            return Ok(prefetched);
        }
        for pipe in pipes {
            prefetched.fetch(&driver.in_pipe(*pipe), &registers).await?;
        }
        prefetched.fetch(driver, &counters).await?;
        Ok(prefetched)
    }

    /// Returns a cell, if it was prefetched.
    pub fn cell(&self, driver: &Driver, table: u32, index: u64) -> Option<&TableData> {
        self.0.get(&(driver.pipe(), table, index))
    }

    async fn fetch(&mut self, driver: &Driver, indices: &CellIndices) -> Result<(), Status> {
        if indices.is_empty() {
            return Ok(());
        }
        let _turns = driver.array_locks.lock(&indices.keys().map(|array| array.table).collect()).await;
        let is_copied = |array: &Array, cells: &BTreeSet<u32>| cells.len() as u64 * array.rows_a_cell >= array.size;
        let copied = indices.iter().filter(|(array, cells)| is_copied(array, cells));
        let copies = copied.map(|(array, _)| bfrt::sync(array.table, "Sync")).collect();
        if driver.write(copies).await?.iter().any(Result::is_err) {
            return Ok(());
        }
        let cells = indices.iter().flat_map(|(array, cells)| {
            let from_hw = !is_copied(array, cells);
            cells.iter().map(move |index| bfrt::cell(array.table, array.key, *index, from_hw))
        });
        for entity in driver.read(cells.collect()).await.unwrap_or_default() {
            let Some(driver_entity::Entity::TableEntry(entry)) = entity.entity else { continue };
            if let (Some(index), Some(data)) = (index_of(&entry), entry.data) {
                self.0.insert((driver.pipe(), entry.table_id, index), data);
            }
        }
        Ok(())
    }
}

/// Returns the index of an array's cell, which is the key of the cell's entry; `None` if the entry has no such key.
pub fn index_of(entry: &proto::TableEntry) -> Option<u64> {
    match entry.key.as_ref()?.fields.first()?.match_type.as_ref()? {
        key_field::MatchType::Exact(index) => Some(bfrt::number(&index.value)),
        _ => None,
    }
}

fn register(loaded: &Loaded, entry: &p4::RegisterEntry) -> Option<Array> {
    let register = loaded.binding.registers.get(entry.register_id)?;
    let compiled = &loaded.program.registers[register.engine.index()];
    Some(Array { table: compiled.id, key: compiled.index, size: register.size, rows_a_cell: REGISTERS_A_CELL })
}

fn counter(loaded: &Loaded, entry: &p4::CounterEntry) -> Option<Array> {
    let counter = loaded.binding.counters.get(entry.counter_id)?;
    let compiled = &loaded.program.counters[counter.engine.index()];
    Some(Array { table: compiled.id, key: compiled.index, size: counter.size, rows_a_cell: COUNTERS_A_CELL })
}

/// Adds the index of a cell, if the cell exists.
fn add_cell(indices: &mut CellIndices, array: Option<Array>, index: Option<&p4::Index>) {
    let (Some(array), Some(index)) = (array, index.and_then(|index| u32::try_from(index.index).ok())) else { return };
    if u64::from(index) < array.size {
        indices.entry(array).or_default().insert(index);
    }
}
