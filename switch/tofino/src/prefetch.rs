//! Cells that a request asks for one by one: read together, before its patterns are answered one after the other.
//!
//! All cells are one request to the driver. Where there are many of one array, the driver first copies the array from the device: of
//! open-p4studio's, on an idle model, a cell takes 0.9 to 1.7 ms, a copy of 1,024 registers in one pipe 6 ms, of 1,024 counters in
//! four 84 ms.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use sluice_p4runtime::proto::p4::v1 as p4;
use tonic::Status;

use crate::bfrt;
use crate::client::Driver;
use crate::load::Loaded;
use crate::proto::{self, TableData, entity as found, key_field};
use p4::entity::Entity;

/// Rows of a register that are copied, in one pipe, in the time that a cell takes.
const REGISTERS_A_CELL: u64 = 150;
/// Rows of a counter that are copied, in all pipes, in the time that a cell takes.
const COUNTERS_A_CELL: u64 = 16;
/// A single cell is read when its pattern is answered.
const LEAST: usize = 2;

/// An array of the driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Array {
    table: u32,
    /// The id of the key's field.
    key: u32,
    size: u64,
    /// Rows that are copied in the time that a cell takes.
    rows_a_cell: u64,
}

/// The indices that patterns name, by array.
type Wanted = BTreeMap<Array, BTreeSet<u32>>;

/// Cells by pipe, table and index; of counters the pipe is the driver's number for all of them.
#[derive(Debug, Default)]
pub struct Prefetched(HashMap<(u32, u32, u64), TableData>);

impl Prefetched {
    /// Reads the cells that patterns name. It leaves out what the driver refuses: the gateway asks for each of those cells again, alone,
    /// and so refuses the pattern that is at fault, with its place.
    ///
    /// # Errors
    /// When the driver does not answer.
    pub async fn read(
        loaded: &Loaded,
        driver: &Driver,
        pipes: &[u32],
        patterns: &[p4::Entity],
    ) -> Result<Self, Status> {
        let mut prefetched = Self::default();
        let (mut registers, mut counters) = (Wanted::new(), Wanted::new());
        for pattern in patterns.iter().filter_map(|pattern| pattern.entity.as_ref()) {
            match pattern {
                Entity::RegisterEntry(entry) => want(&mut registers, register(loaded, entry), entry.index.as_ref()),
                Entity::CounterEntry(entry) => want(&mut counters, counter(loaded, entry), entry.index.as_ref()),
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

    /// A cell, if it was read.
    pub fn cell(&self, driver: &Driver, table: u32, index: u64) -> Option<&TableData> {
        self.0.get(&(driver.pipe(), table, index))
    }

    async fn fetch(&mut self, driver: &Driver, wanted: &Wanted) -> Result<(), Status> {
        if wanted.is_empty() {
            return Ok(());
        }
        let _turns = driver.turns.of(&wanted.keys().map(|array| array.table).collect()).await;
        let is_copied = |array: &Array, cells: &BTreeSet<u32>| cells.len() as u64 * array.rows_a_cell >= array.size;
        let copied = wanted.iter().filter(|(array, cells)| is_copied(array, cells));
        let copies = copied.map(|(array, _)| bfrt::sync(array.table, "Sync")).collect();
        if driver.write(copies).await?.iter().any(Result::is_err) {
            return Ok(());
        }
        let cells = wanted.iter().flat_map(|(array, cells)| {
            let from_hw = !is_copied(array, cells);
            cells.iter().map(move |index| bfrt::cell(array.table, array.key, *index, from_hw))
        });
        for entity in driver.read(cells.collect()).await.unwrap_or_default() {
            let Some(found::Entity::TableEntry(entry)) = entity.entity else { continue };
            if let (Some(index), Some(data)) = (index_of(&entry), entry.data) {
                self.0.insert((driver.pipe(), entry.table_id, index), data);
            }
        }
        Ok(())
    }
}

/// The index of an array's cell.
pub fn index_of(entry: &proto::TableEntry) -> Option<u64> {
    match entry.key.as_ref()?.fields.first()?.match_type.as_ref()? {
        key_field::MatchType::Exact(index) => Some(bfrt::number(&index.value)),
        _ => None,
    }
}

fn register(loaded: &Loaded, entry: &p4::RegisterEntry) -> Option<Array> {
    let register = loaded.binding.registers.get(entry.register_id)?;
    let known = &loaded.program.registers[register.engine.index()];
    Some(Array { table: known.id, key: known.index, size: register.size, rows_a_cell: REGISTERS_A_CELL })
}

fn counter(loaded: &Loaded, entry: &p4::CounterEntry) -> Option<Array> {
    let counter = loaded.binding.counters.get(entry.counter_id)?;
    let known = &loaded.program.counters[counter.engine.index()];
    Some(Array { table: known.id, key: known.index, size: counter.size, rows_a_cell: COUNTERS_A_CELL })
}

/// Notes a cell, if it is one of the array.
fn want(wanted: &mut Wanted, array: Option<Array>, index: Option<&p4::Index>) {
    let (Some(array), Some(index)) = (array, index.and_then(|index| u32::try_from(index.index).ok())) else { return };
    if u64::from(index) < array.size {
        wanted.entry(array).or_default().insert(index);
    }
}
