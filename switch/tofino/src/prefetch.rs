//! Cells that a request asks for one by one: read together, before its patterns are answered one after the other.
//!
//! A cell from the device costs the driver a wait for the device, and so does a copy of a small array into its memory. So the driver
//! copies the arrays of several cells in one request, and gives the cells in another.

use std::collections::{BTreeSet, HashMap};

use sluice_p4runtime::proto::p4::v1 as p4;
use tonic::Status;

use crate::bfrt;
use crate::client::Driver;
use crate::load::Loaded;
use crate::proto::{self, TableData, entity as found, key_field};
use p4::entity::Entity;

/// Larger arrays are not copied for single cells: of 65,536 cells that takes open-p4studio's model 60 to 700 ms a pipe.
const LARGEST: i64 = 4096;
/// Fewer cells are not worth a copy.
const LEAST: usize = 2;

/// An array of the driver: its table, and the id of the key's field.
type Array = (u32, u32);

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
        let (mut registers, mut counters) = (BTreeSet::new(), BTreeSet::new());
        for pattern in patterns.iter().filter_map(|pattern| pattern.entity.as_ref()) {
            match pattern {
                Entity::RegisterEntry(entry) => registers.extend(register_cell(loaded, entry)),
                Entity::CounterEntry(entry) => counters.extend(counter_cell(loaded, entry)),
                _ => {}
            }
        }
        if registers.len() + counters.len() < LEAST {
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

    async fn fetch(&mut self, driver: &Driver, cells: &BTreeSet<(Array, u32)>) -> Result<(), Status> {
        if cells.is_empty() {
            return Ok(());
        }
        let tables: BTreeSet<u32> = cells.iter().map(|((table, _), _)| *table).collect();
        let _turns = driver.turns.of(&tables).await;
        let copies = tables.into_iter().map(|table| bfrt::sync(table, "Sync")).collect();
        if driver.write(copies).await?.iter().any(Result::is_err) {
            return Ok(());
        }
        let wanted = cells
            .iter()
            .map(|((table, key), index)| bfrt::entry_entity(bfrt::key_only(*table, bfrt::number_key(*key, *index))));
        for entity in driver.read(wanted.collect()).await.unwrap_or_default() {
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

fn register_cell(loaded: &Loaded, entry: &p4::RegisterEntry) -> Option<(Array, u32)> {
    let register = loaded.binding.registers.get(entry.register_id)?;
    let known = &loaded.program.registers[register.engine.index()];
    small_cell(entry.index.as_ref(), register.size, (known.id, known.index))
}

fn counter_cell(loaded: &Loaded, entry: &p4::CounterEntry) -> Option<(Array, u32)> {
    let counter = loaded.binding.counters.get(entry.counter_id)?;
    let known = &loaded.program.counters[counter.engine.index()];
    small_cell(entry.index.as_ref(), counter.size, (known.id, known.index))
}

fn small_cell(index: Option<&p4::Index>, size: u64, array: Array) -> Option<(Array, u32)> {
    let index = index?.index;
    let is_there = (0..LARGEST).contains(&index) && index.cast_unsigned() < size && size <= LARGEST.cast_unsigned();
    is_there.then_some((array, index as u32))
}
