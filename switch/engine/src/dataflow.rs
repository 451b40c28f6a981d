//! Which slots are constant, belong to headers, or are read and written by tables, calculations and the architecture.
//! The instructions do not contain this information, and the optimizer and the compiler to machine code need it.

use std::collections::HashMap;

use crate::layout::Slot;

/// The effects of applying a table, without the effects of its actions: the slots read and written, and the possible
/// next nodes.
pub struct TableEffects {
    /// The slots of the key and the slots that the table's selector hashes.
    pub reads: Vec<Slot>,
    /// The slots of action parameters, and the slot in which a direct meter stores the colour.
    pub writes: Vec<Slot>,
    /// The actions that the table may run, as indices into [`Code::actions`](crate::code::Code::actions).
    pub actions: Vec<usize>,
    /// The nodes that may follow the table, as indices into [`Code::nodes`](crate::code::Code::nodes).
    pub next: Vec<usize>,
}

/// Which of a program's slots are constant, how wide their values are, and what reads or writes them besides the
/// instructions.
pub struct World {
    /// The number of slots in use.
    pub used: usize,
    /// Slots that never change, with their values.
    pub constants: HashMap<Slot, u64>,
    /// For each constant value, the first slot that contains the value.
    pub values: HashMap<u64, Slot>,
    /// The first slot after those of the headers and stacks. From here on, slots are temporaries of statements, action
    /// parameters and constants.
    pub first_temporary: Slot,
    /// For each slot, the maximum number of bits of its value; 64 if no smaller number is proven.
    pub bits: Vec<u8>,
    /// Slots that only instructions, tables and calculations read. A write to such a slot can be removed if no
    /// instruction, table or calculation reads the written value.
    pub private: Slots,
    pub tables: Vec<TableEffects>,
    /// For each header, the slots that it occupies. The slots of a union's member include the validity slots of the
    /// other members.
    pub headers: Vec<Vec<Slot>>,
    /// For each calculation, the slots that the calculation reads.
    pub calculations: Vec<Vec<Slot>>,
}

impl World {
    /// Returns a slot that always contains this value, or `None` if there is no such slot.
    pub fn constant(&self, value: u64) -> Option<Slot> {
        self.values.get(&value).copied()
    }
}

/// A set of slots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slots(Vec<u64>);

impl Slots {
    pub fn none(used: usize) -> Slots {
        Slots(vec![0; used.div_ceil(64)])
    }

    pub fn add(&mut self, slot: Slot) {
        if let Some(word) = self.0.get_mut(usize::from(slot) / 64) {
            *word |= 1 << (slot % 64);
        }
    }

    pub fn remove(&mut self, slot: Slot) {
        if let Some(word) = self.0.get_mut(usize::from(slot) / 64) {
            *word &= !(1 << (slot % 64));
        }
    }

    pub fn has(&self, slot: Slot) -> bool {
        self.0.get(usize::from(slot) / 64).is_some_and(|word| word >> (slot % 64) & 1 == 1)
    }

    pub fn remove_all(&mut self, other: &Slots) {
        for (a, b) in self.0.iter_mut().zip(&other.0) {
            *a &= !b;
        }
    }

    pub fn add_all(&mut self, other: &Slots) {
        for (a, b) in self.0.iter_mut().zip(&other.0) {
            *a |= b;
        }
    }
}
