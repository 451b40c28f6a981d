//! Lets the control plane read and write registers, counters and indirect meters.

use super::{CounterData, MeterConfig, MeterView, Result, words};
use crate::bits::limbs_to_bytes;
use crate::engine::Engine;
use crate::error::ControlError;
use crate::meter::Meter;
use crate::program::{CounterId, MeterId, RegisterId};

impl Engine {
    /// Reads one register cell.
    ///
    /// # Errors
    /// `OutOfRange` if the array has no cell `index`.
    pub fn register_read(&self, register: RegisterId, index: u64) -> Result<Vec<u8>> {
        let r = &self.machine.state.registers[register.index()];
        let cell = match (r.get(index), r.row(index)) {
            (Some(word), _) => limbs_to_bytes(&[word], r.width),
            (None, Some(row)) => limbs_to_bytes(row, r.width),
            (None, None) => return Err(out_of_range(index, r.size)),
        };
        Ok(cell)
    }
    /// Appends `count` cells, beginning with cell `start`, to `out`, each as `ceil(width / 8)` bytes. With one call a
    /// caller can read a complete array under one lock.
    ///
    /// # Errors
    /// `OutOfRange` if the array ends before the last of these cells.
    pub fn register_read_range(&self, register: RegisterId, start: u64, count: u64, out: &mut Vec<u8>) -> Result<()> {
        let r = &self.machine.state.registers[register.index()];
        let end = start
            .checked_add(count)
            .filter(|&end| end <= r.size)
            .ok_or_else(|| out_of_range(start.saturating_add(count), r.size))?;
        let bytes = r.width.div_ceil(8) as usize;
        out.reserve(bytes.saturating_mul(count as usize));
        for i in start..end {
            if let Some(word) = r.get(i) {
                out.extend_from_slice(&word.to_be_bytes()[8 - bytes..]);
            } else if let Some(row) = r.row(i) {
                out.extend(limbs_to_bytes(row, r.width));
            }
        }
        Ok(())
    }
    /// Sets one register cell.
    ///
    /// # Errors
    /// `OutOfRange` if the array has no cell `index`, `InvalidArgument` if the value does not fit into a cell.
    pub fn register_write(&mut self, register: RegisterId, index: u64, value: &[u8]) -> Result<()> {
        let r = &mut self.machine.state.registers[register.index()];
        let size = r.size;
        let value = words(value, r.width, "register")?;
        if r.write(index, &value) { Ok(()) } else { Err(out_of_range(index, size)) }
    }
    /// Sets every cell of a register array.
    ///
    /// # Errors
    /// `InvalidArgument` if the value does not fit into a cell.
    pub fn register_fill(&mut self, register: RegisterId, value: &[u8]) -> Result<()> {
        let r = &mut self.machine.state.registers[register.index()];
        let value = words(value, r.width, "register")?;
        for i in 0..r.size {
            r.write(i, &value);
        }
        Ok(())
    }
    /// Reads one cell of an indirect counter.
    ///
    /// # Errors
    /// `OutOfRange` if the array has no cell `index`.
    pub fn counter_read(&self, counter: CounterId, index: u64) -> Result<CounterData> {
        let cells = &self.machine.state.counters[counter.index()];
        cell(cells, index).copied()
    }
    /// Sets one cell of an indirect counter.
    ///
    /// # Errors
    /// `OutOfRange` if the array has no cell `index`.
    pub fn counter_write(&mut self, counter: CounterId, index: u64, value: CounterData) -> Result<()> {
        *cell_mut(&mut self.machine.state.counters[counter.index()], index)? = value;
        Ok(())
    }
    /// Reads the configuration and the counts of one meter cell.
    ///
    /// # Errors
    /// `OutOfRange` if the array has no cell `index`.
    pub fn meter_read(&self, meter: MeterId, index: u64) -> Result<MeterView> {
        cell(&self.machine.state.meters[meter.index()], index).map(Meter::view)
    }
    /// Configures one meter cell; `None` sets the default configuration. A changed configuration starts with full
    /// buckets; an unchanged configuration does not affect the buckets. `now` is the time in nanoseconds.
    ///
    /// # Errors
    /// `OutOfRange` if the array has no cell `index`, `InvalidArgument` if the CIR is above the PIR.
    pub fn meter_write(&mut self, now: u64, meter: MeterId, index: u64, config: Option<MeterConfig>) -> Result<()> {
        check_meter(config)?;
        cell_mut(&mut self.machine.state.meters[meter.index()], index)?.configure(now, config);
        Ok(())
    }
    /// Sets the counts of one meter cell, one count for each colour, to zero.
    ///
    /// # Errors
    /// `OutOfRange` if the array has no cell `index`.
    pub fn meter_clear_counts(&mut self, meter: MeterId, index: u64) -> Result<()> {
        cell_mut(&mut self.machine.state.meters[meter.index()], index).map(Meter::clear_counts)
    }
}

fn out_of_range(index: u64, size: u64) -> ControlError {
    ControlError::OutOfRange(format!(
        "the index {index} is beyond the end, the array has {size} cells; give a lower one"
    ))
}

pub(super) fn cell<T>(cells: &[T], index: u64) -> Result<&T> {
    usize::try_from(index).ok().and_then(|i| cells.get(i)).ok_or_else(|| out_of_range(index, cells.len() as u64))
}

pub(super) fn cell_mut<T>(cells: &mut [T], index: u64) -> Result<&mut T> {
    let size = cells.len() as u64;
    usize::try_from(index).ok().and_then(|i| cells.get_mut(i)).ok_or_else(|| out_of_range(index, size))
}

/// Returns an error if the committed rate of a meter configuration is above its peak rate.
pub fn check_meter(config: Option<MeterConfig>) -> Result<()> {
    match config {
        Some(c) if c.cir > c.pir => Err(ControlError::InvalidArgument(format!(
            "the meter's CIR {} is above its PIR {}; give a lower CIR",
            c.cir, c.pir
        ))),
        _ => Ok(()),
    }
}
