//! The objects of a program other than tables: registers, counters, meters, calculations, digests, field lists and
//! value sets.

use std::collections::HashMap;

use crate::calc::Calculation;
use crate::layout::{FieldRef, Slot};
use crate::program::{CounterInfo, DigestInfo, MeterInfo, RegisterInfo, ValueSetInfo};

/// A field of a digest message.
#[derive(Debug, Clone)]
pub enum DigestPart {
    Field(FieldRef),
    /// A constant, which is stored as the bytes that the message contains.
    Constant(Vec<u8>),
}

#[derive(Default)]
pub struct Objects {
    /// The name and the size in bytes of each array of registers, indirect counters or indirect meters.
    pub arrays: Vec<(String, u64)>,
    /// The sum of the sizes in `arrays`, in bytes.
    pub array_bytes: u64,
    pub registers: Vec<RegisterInfo>,
    pub register_by_name: HashMap<String, u32>,
    pub counters: Vec<CounterInfo>,
    pub counter_by_name: HashMap<String, u32>,
    pub meters: Vec<MeterInfo>,
    pub meter_by_name: HashMap<String, u32>,
    /// For each meter, the field to which a direct meter writes the colour; `None` for an indirect meter.
    pub meter_targets: Vec<Option<FieldRef>>,
    pub calculations: Vec<Calculation>,
    pub calculation_by_name: HashMap<String, u32>,
    pub digests: Vec<DigestInfo>,
    pub digest_parts: Vec<Vec<DigestPart>>,
    pub digest_by_name: HashMap<String, u32>,
    pub digest_by_id: HashMap<u64, u16>,
    pub field_lists: Vec<Vec<FieldRef>>,
    pub field_list_by_id: HashMap<u64, u16>,
    pub value_sets: Vec<ValueSetInfo>,
    pub value_set_by_name: HashMap<String, u32>,
}

impl Objects {
    /// Returns the slots of the fields that digests and field lists contain.
    pub fn carried_slots(&self) -> impl Iterator<Item = Slot> + '_ {
        let digested = self.digest_parts.iter().flatten().filter_map(|field| match field {
            DigestPart::Field(f) => Some(f),
            DigestPart::Constant(_) => None,
        });
        let fields = self.field_lists.iter().flatten().chain(digested);
        fields.flat_map(|f| (0..f.slots() as Slot).map(|i| f.slot + i))
    }
}
