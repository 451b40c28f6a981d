//! The state that all packets share, except tables and profiles: arrays of registers, counters and meters.

use crate::control::CounterData;
use crate::layout::limbs;
use crate::meter::Meter;
use crate::program::RegisterInfo;

/// The values of a register array. Each value is stored in the smallest integer type that has at least its width.
/// Packets access cells in random order, so an array that fits into the processor's cache is faster.
enum Cells {
    Bytes(Box<[u8]>),
    Halves(Box<[u16]>),
    Words(Box<[u32]>),
    Longs(Box<[u64]>),
    /// Cells wider than 64 bits. Each cell consists of several words.
    Rows(Box<[u64]>),
}

/// A register array.
pub struct Register {
    pub width: u32,
    pub limbs: usize,
    pub size: u64,
    cells: Cells,
}

/// Returns the base-2 logarithm of the number of bytes that a cell of up to 64 bits occupies.
pub fn cell_shift(width: u32) -> u32 {
    match width {
        0..=8 => 0,
        9..=16 => 1,
        17..=32 => 2,
        _ => 3,
    }
}

/// Returns the number of bytes that a cell occupies.
pub fn cell_bytes(width: u32) -> usize {
    if width <= 64 { 1 << cell_shift(width) } else { 8 * limbs(width) }
}

impl Register {
    pub fn new(info: &RegisterInfo) -> Register {
        let (n, limbs) = (info.size as usize, limbs(info.width));
        let cells = match cell_shift(info.width) {
            0 => Cells::Bytes(vec![0; n].into()),
            1 => Cells::Halves(vec![0; n].into()),
            2 => Cells::Words(vec![0; n].into()),
            _ if limbs == 1 => Cells::Longs(vec![0; n].into()),
            _ => Cells::Rows(vec![0; n * limbs].into()),
        };
        Register { width: info.width, limbs, size: info.size, cells }
    }

    /// Returns the value of a cell of up to 64 bits, or `None` if the index is outside of the array.
    pub fn get(&self, index: u64) -> Option<u64> {
        let i = usize::try_from(index).ok()?;
        match &self.cells {
            Cells::Bytes(c) => c.get(i).map(|&v| v.into()),
            Cells::Halves(c) => c.get(i).map(|&v| v.into()),
            Cells::Words(c) => c.get(i).map(|&v| v.into()),
            Cells::Longs(c) => c.get(i).copied(),
            Cells::Rows(_) => None,
        }
    }

    /// Sets the value of a cell of up to 64 bits. Has no effect if the index is outside of the array.
    pub fn put(&mut self, index: u64, v: u64) {
        fn set<T>(cells: &mut [T], i: usize, v: T) {
            if let Some(cell) = cells.get_mut(i) {
                *cell = v;
            }
        }
        let i = usize::try_from(index).unwrap_or(usize::MAX);
        match &mut self.cells {
            Cells::Bytes(c) => set(c, i, v as u8),
            Cells::Halves(c) => set(c, i, v as u16),
            Cells::Words(c) => set(c, i, v as u32),
            Cells::Longs(c) => set(c, i, v),
            Cells::Rows(_) => {}
        }
    }

    /// Returns the words of a cell wider than 64 bits, or `None` if the index is outside of the array.
    pub fn row(&self, index: u64) -> Option<&[u64]> {
        let Cells::Rows(rows) = &self.cells else { return None };
        let at = usize::try_from(index).ok().filter(|_| index < self.size)? * self.limbs;
        rows.get(at..at + self.limbs)
    }

    pub fn row_mut(&mut self, index: u64) -> Option<&mut [u64]> {
        let Cells::Rows(rows) = &mut self.cells else { return None };
        let at = usize::try_from(index).ok().filter(|_| index < self.size)? * self.limbs;
        rows.get_mut(at..at + self.limbs)
    }

    /// Sets the value of a cell of any width. Returns false if the index is outside of the array.
    pub fn write(&mut self, index: u64, value: &[u64]) -> bool {
        if index >= self.size {
            return false;
        }
        match value {
            [v] => self.put(index, *v),
            _ => {
                if let Some(row) = self.row_mut(index) {
                    row.copy_from_slice(value);
                }
            }
        }
        true
    }

    /// Returns the address of the first cell.
    fn address(&mut self) -> usize {
        match &mut self.cells {
            Cells::Bytes(c) => c.as_mut_ptr().expose_provenance(),
            Cells::Halves(c) => c.as_mut_ptr().expose_provenance(),
            Cells::Words(c) => c.as_mut_ptr().expose_provenance(),
            Cells::Longs(c) | Cells::Rows(c) => c.as_mut_ptr().expose_provenance(),
        }
    }
}

/// The program's arrays of registers, counters and meters.
pub struct State {
    pub registers: Vec<Register>,
    pub counters: Vec<Vec<CounterData>>,
    pub meters: Vec<Vec<Meter>>,
}

impl State {
    /// Returns the addresses of the first cells of all register arrays, followed by those of all counter arrays.
    pub fn addresses(&mut self) -> Vec<usize> {
        let registers = self.registers.iter_mut().map(Register::address);
        let counters = self.counters.iter_mut().map(|c| c.as_mut_ptr().expose_provenance());
        registers.chain(counters).collect()
    }
}

impl CounterData {
    /// Adds one packet of `bytes` bytes to the counter.
    #[inline]
    pub fn count(&mut self, bytes: u64) {
        self.packets = self.packets.wrapping_add(1);
        self.bytes = self.bytes.wrapping_add(bytes);
    }

    /// Adds the packets and bytes of another counter.
    pub(crate) fn add(&mut self, other: CounterData) {
        self.packets = self.packets.wrapping_add(other.packets);
        self.bytes = self.bytes.wrapping_add(other.bytes);
    }
}
