//! Calculations: what goes into a hash or checksum.

use crate::bits::BitWriter;
use crate::hash::Hash;
use crate::layout::{FieldRef, Slot, Slots};
use crate::phv::Phv;

/// One input.
#[derive(Debug, Clone)]
pub enum Input {
    /// A field, left out while its header (slot of the validity) is not valid.
    Field(FieldRef, Option<Slot>),
    /// Bits of a constant, words least significant first.
    Constant(Vec<u64>, u32),
    Header(u16),
}

/// A named calculation.
#[derive(Debug, Clone)]
pub struct Calculation {
    pub hash: Hash,
    pub inputs: Vec<Input>,
    /// What is left of the packet behind the parsed headers comes last.
    pub payload: bool,
}

impl Calculation {
    /// `scratch` is overwritten.
    pub fn output(&self, slots: &Slots, phv: &Phv, payload: &[u8], scratch: &mut Vec<u8>) -> u64 {
        scratch.clear();
        let mut w = BitWriter::new(scratch);
        for input in &self.inputs {
            match input {
                Input::Field(f, valid) => {
                    if valid.is_none_or(|v| slots[v as usize] != 0) {
                        w.field(slots, *f);
                    }
                }
                Input::Constant(row, width) => w.put_row(row, *width),
                Input::Header(h) => {
                    if phv.is_valid(slots, *h as usize) {
                        let mut bytes = Vec::new();
                        let at = &phv.headers[*h as usize];
                        phv.plans[at.plan as usize].deparse(slots, at.base, &mut bytes);
                        w.put_bytes(&bytes);
                    }
                }
            }
        }
        w.finish();
        if self.payload {
            scratch.extend_from_slice(payload);
        }
        self.hash.of(scratch)
    }
}
