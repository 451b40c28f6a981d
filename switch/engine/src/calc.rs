//! Calculations of a P4 program: the inputs of hashes and checksums, and how their results are computed.

use crate::bits::BitWriter;
use crate::hash::{Hash, fold, sum_words};
use crate::layout::{FieldRef, Slot, Slots};
use crate::phv::{Phv, Word, words};

/// One input of a calculation.
#[derive(Debug, Clone)]
pub enum Input {
    /// A field, and the slot that contains its header's validity; `None` if the header is always valid. The field is
    /// omitted while the header is not valid.
    Field(FieldRef, Option<Slot>),
    /// A constant: its words, least significant first, and its width in bits.
    Constant(Vec<u64>, u32),
    Header(u16),
}

/// A hash or checksum and its inputs.
#[derive(Debug, Clone)]
pub struct Calculation {
    hash: Hash,
    inputs: Vec<Input>,
    /// Whether the bytes after the parsed headers are the last input.
    payload: bool,
    plan: Plan,
}

/// The method by which the result of a calculation is computed.
#[derive(Debug, Clone)]
enum Plan {
    /// For fields that are never omitted, form complete bytes and have at most `MAX_BYTES` bytes: the fields' words are
    /// hashed directly.
    Words(Vec<Word>),
    /// For an Internet checksum whose inputs are fields that form groups: the fields are added up. `tail` is a
    /// variable-length field after all groups, with the slot of its header's validity.
    Sum { groups: Vec<Group>, tail: Option<(FieldRef, Option<Slot>)> },
    /// For any other calculation: the inputs are collected bit by bit into bytes, and the bytes are hashed.
    General,
}

/// Successive fields whose total width is a multiple of 16 bits, and which are present while the slot `valid` is not 0
/// (`None`: always).
#[derive(Debug, Clone)]
pub struct Group {
    pub valid: Option<Slot>,
    pub terms: Vec<Term>,
    /// Whether the sum of the terms fits into 64 bits.
    pub narrow: bool,
}

/// A word of a field. The word's highest `m` bits are cut off, and the rest is shifted left by `shift` bits so that it
/// ends at a 16-bit boundary.
#[derive(Debug, Clone, Copy)]
pub struct Term {
    pub slot: Slot,
    pub m: u8,
    pub shift: u8,
}

/// The steps of a calculation, for generated machine code that performs the steps itself.
pub enum Steps<'a> {
    /// Hash the words in the slice.
    Words(Hash, &'a [Word]),
    /// Add up the groups and the tail. If `payload` is true, also add the packet's bytes after the parsed headers.
    Sum {
        groups: &'a [Group],
        tail: Option<(FieldRef, Option<Slot>)>,
        payload: bool,
    },
    General,
}

impl Calculation {
    pub fn new(hash: Hash, inputs: Vec<Input>, payload: bool) -> Calculation {
        let plan = match hash {
            Hash::Csum16 => sum_plan(&inputs, payload),
            _ => word_plan(&inputs, payload),
        };
        Calculation { hash, inputs, payload, plan: plan.unwrap_or(Plan::General) }
    }

    /// Returns the slots that the calculation reads. `headers` contains the slots of each header.
    pub fn slots(&self, headers: &[Vec<Slot>]) -> Vec<Slot> {
        let mut slots = Vec::new();
        for input in &self.inputs {
            match input {
                Input::Field(f, valid) => {
                    slots.extend((0..f.slots() as Slot).map(|i| f.slot + i));
                    slots.extend(valid);
                }
                Input::Constant(..) => {}
                Input::Header(h) => slots.extend(&headers[usize::from(*h)]),
            }
        }
        slots
    }

    pub fn steps(&self) -> Steps<'_> {
        match &self.plan {
            Plan::Words(words) => Steps::Words(self.hash, words),
            Plan::Sum { groups, tail } => Steps::Sum { groups, tail: *tail, payload: self.payload },
            Plan::General => Steps::General,
        }
    }

    /// Computes the result. The function uses `scratch` as a buffer and overwrites its contents.
    #[inline]
    pub fn output(&self, slots: &Slots, phv: &Phv, payload: &[u8], scratch: &mut Vec<u8>) -> u64 {
        match &self.plan {
            Plan::Words(words) => {
                let mut bytes = [0; MAX_BYTES + 8];
                let mut at = 0;
                for word in words {
                    let n = usize::from(word.bytes);
                    bytes[at..at + 8].copy_from_slice(&(word.value(slots, 0) << (64 - 8 * n)).to_be_bytes());
                    at += n;
                }
                self.hash.of(&bytes[..at])
            }
            Plan::Sum { groups, tail } => self.sum(slots, groups, *tail, payload),
            Plan::General => self.general(slots, phv, payload, scratch),
        }
    }

    fn sum(&self, slots: &Slots, groups: &[Group], tail: Option<(FieldRef, Option<Slot>)>, payload: &[u8]) -> u64 {
        let is_valid = |valid: Option<Slot>| valid.is_none_or(|v| slots[usize::from(v)] != 0);
        let mut sum: u128 = 0;
        for group in groups {
            if !is_valid(group.valid) {
                continue;
            }
            if group.narrow {
                let term = |t: &Term| (slots[usize::from(t.slot)] & (u64::MAX >> t.m)) << t.shift;
                sum += u128::from(group.terms.iter().map(term).sum::<u64>());
            } else {
                for t in &group.terms {
                    sum += u128::from(slots[usize::from(t.slot)] & (u64::MAX >> t.m)) << t.shift;
                }
            }
        }
        if let Some((f, valid)) = tail
            && is_valid(valid)
        {
            sum += sum_varbit(slots, f);
        }
        if self.payload {
            sum += u128::from(sum_words(payload));
        }
        u64::from(!fold(sum))
    }

    #[inline(never)]
    fn general(&self, slots: &Slots, phv: &Phv, payload: &[u8], scratch: &mut Vec<u8>) -> u64 {
        scratch.clear();
        let mut w = BitWriter::new(scratch);
        for input in &self.inputs {
            match input {
                Input::Field(f, valid) => {
                    if valid.is_none_or(|v| slots[usize::from(v)] != 0) {
                        w.field(slots, *f);
                    }
                }
                Input::Constant(row, width) => w.put_row(row, *width),
                Input::Header(h) => {
                    if phv.is_valid(slots, usize::from(*h)) {
                        let at = &phv.headers[usize::from(*h)];
                        phv.plans[usize::from(at.plan)].write(slots, at.base, &mut w);
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

/// Returns the one's complement sum of a variable-length field that begins at a 16-bit boundary. The sum is not yet
/// folded to 16 bits.
pub fn sum_varbit(slots: &Slots, f: FieldRef) -> u128 {
    let bits = slots[usize::from(f.slot)] as usize;
    let shift = if bits.is_multiple_of(16) { 0 } else { 8 };
    let first = usize::from(f.data());
    slots[first..first + bits.div_ceil(64).min(f.limbs())].iter().map(|&v| u128::from(v) << shift).sum()
}

/// The maximum number of bytes that [`Plan::Words`] hashes.
const MAX_BYTES: usize = 128;

fn word_plan(inputs: &[Input], payload: bool) -> Option<Plan> {
    let field = |i: &Input| match i {
        Input::Field(f, None) if !f.varbit => Some(*f),
        _ => None,
    };
    let fields: Vec<FieldRef> = inputs.iter().map(field).collect::<Option<_>>()?;
    let bits: u32 = fields.iter().map(|f| f.width).sum();
    if payload || bits as usize > 8 * MAX_BYTES {
        return None;
    }
    words(&fields).map(Plan::Words)
}

fn sum_plan(inputs: &[Input], payload: bool) -> Option<Plan> {
    let mut groups: Vec<(Group, Vec<FieldRef>)> = Vec::new();
    let mut tail = None;
    for (i, input) in inputs.iter().enumerate() {
        match input {
            Input::Field(f, valid) if f.varbit && i + 1 == inputs.len() && !payload => tail = Some((*f, *valid)),
            Input::Field(f, valid) if !f.varbit => match groups.last_mut() {
                Some((g, fields)) if g.valid == *valid => fields.push(*f),
                _ => groups.push((Group { valid: *valid, terms: Vec::new(), narrow: false }, vec![*f])),
            },
            _ => return None,
        }
    }
    let finish = |(mut g, fields): (Group, Vec<FieldRef>)| {
        let bits: u32 = fields.iter().map(|f| f.width).sum();
        let mut end = 0;
        for f in &fields {
            end += f.width;
            let shift = ((16 - end % 16) % 16) as u8;
            for limb in 0..f.limbs() as u32 {
                let m = (64 - (f.width - 64 * limb).min(64)) as u8;
                g.terms.push(Term { slot: f.slot + limb as Slot, m, shift });
            }
        }
        // A sum of fewer than 256 terms, each of up to 56 bits, has at most 64 bits.
        g.narrow = g.terms.len() < 256 && g.terms.iter().all(|t| 64 - t.m + t.shift <= 56);
        bits.is_multiple_of(16).then_some(g)
    };
    let groups = groups.into_iter().map(finish).collect::<Option<Vec<_>>>()?;
    Some(Plan::Sum { groups, tail })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Layout;
    use proptest::prelude::*;

    fn slots() -> Box<Slots> {
        let row: Box<[u64]> = vec![0; 65_536].into_boxed_slice();
        row.try_into().unwrap()
    }

    proptest! {
        /// Compares the results of the fast plans (`Words`, `Sum`) with the result of the general plan.
        #[test]
        fn plans_agree_with_the_general_way(
            widths in proptest::collection::vec((1u32..=130, 0u16..3), 1..12),
            values in proptest::collection::vec(any::<u64>(), 60),
            valid in proptest::collection::vec(0u64..2, 3),
            tail in 0u64..=16,
            payload in proptest::option::of(proptest::collection::vec(any::<u8>(), 0..40)),
            with_tail: bool,
            with_validity: bool,
        ) {
            let mut s = slots();
            s[100..103].copy_from_slice(&valid);
            let mut inputs = Vec::new();
            let mut at = 0;
            for &(width, v) in &widths {
                let f = FieldRef { slot: at, width, signed: false, varbit: false };
                for limb in 0..f.limbs() {
                    let bits = (width - 64 * limb as u32).min(64);
                    s[usize::from(at)] = values[usize::from(at)] & (u64::MAX >> (64 - bits));
                    at += 1;
                }
                inputs.push(Input::Field(f, with_validity.then_some(100 + v)));
            }
            if with_tail {
                let f = FieldRef { slot: 110, width: 128, signed: false, varbit: true };
                s[110] = 8 * tail;
                let row = u128::from(values[50]) << 64 | u128::from(values[51]);
                let row = if tail == 16 { row } else { row & ((1 << (8 * tail)) - 1) };
                s[111] = row as u64;
                s[112] = (row >> 64) as u64;
                inputs.push(Input::Field(f, Some(100)));
            }
            let phv = Phv::new(&Layout::default());
            let bytes = payload.clone().unwrap_or_default();
            for hash in [Hash::Csum16, Hash::Crc32, Hash::Xor16] {
                let c = Calculation::new(hash, inputs.clone(), payload.is_some());
                let mut scratch = Vec::new();
                prop_assert_eq!(c.output(&s, &phv, &bytes, &mut scratch), c.general(&s, &phv, &bytes, &mut Vec::new()));
            }
        }
    }
}
