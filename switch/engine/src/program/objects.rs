//! The objects of a program beside its tables: registers, counters, meters, calculations, digests, field lists and value sets.

use std::collections::HashMap;

use crate::calc::Calculation;
use crate::layout::{FieldRef, Slot};
use crate::program::{CounterInfo, DigestInfo, MeterInfo, RegisterInfo, ValueSetInfo};

/// Part of a digest.
#[derive(Debug, Clone)]
pub enum DigestPart {
    Field(FieldRef),
    /// Bytes as they are.
    Constant(Vec<u8>),
}

#[derive(Default)]
pub struct Objects {
    /// Registers, indirect counters and meters, with the bytes that they take.
    pub arrays: Vec<(String, u64)>,
    /// What they take together.
    pub array_bytes: u64,
    pub registers: Vec<RegisterInfo>,
    pub register_by_name: HashMap<String, u32>,
    pub counters: Vec<CounterInfo>,
    pub counter_by_name: HashMap<String, u32>,
    pub meters: Vec<MeterInfo>,
    pub meter_by_name: HashMap<String, u32>,
    /// Direct meters: where the colour goes.
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
    /// Slots of fields that digests and other passes take along.
    pub fn kept(&self) -> impl Iterator<Item = Slot> + '_ {
        let digested = self.digest_parts.iter().flatten().filter_map(|part| match part {
            DigestPart::Field(f) => Some(f),
            DigestPart::Constant(_) => None,
        });
        let fields = self.field_lists.iter().flatten().chain(digested);
        fields.flat_map(|f| (0..f.slots() as Slot).map(|i| f.slot + i))
    }
}
