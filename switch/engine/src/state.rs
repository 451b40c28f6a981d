//! What a program remembers between packets, tables and profiles apart.

use crate::control::CounterData;
use crate::layout::limbs;
use crate::meter::Meter;
use crate::program::RegisterInfo;

/// A register array: `limbs` words per cell.
pub struct Register {
    pub width: u32,
    pub limbs: usize,
    pub size: u64,
    pub words: Vec<u64>,
}

impl Register {
    pub fn new(info: &RegisterInfo) -> Register {
        let limbs = limbs(info.width);
        Register { width: info.width, limbs, size: info.size, words: vec![0; info.size as usize * limbs] }
    }

    /// A cell's words.
    pub fn cell(&self, index: u64) -> Option<&[u64]> {
        let at = usize::try_from(index).ok().filter(|_| index < self.size)? * self.limbs;
        self.words.get(at..at + self.limbs)
    }

    pub fn cell_mut(&mut self, index: u64) -> Option<&mut [u64]> {
        let at = usize::try_from(index).ok().filter(|_| index < self.size)? * self.limbs;
        self.words.get_mut(at..at + self.limbs)
    }
}

/// All arrays.
pub struct State {
    pub registers: Vec<Register>,
    pub counters: Vec<Vec<CounterData>>,
    pub meters: Vec<Vec<Meter>>,
}

impl CounterData {
    /// One packet more.
    #[inline]
    pub fn count(&mut self, bytes: u64) {
        self.packets = self.packets.wrapping_add(1);
        self.bytes = self.bytes.wrapping_add(bytes);
    }
}
