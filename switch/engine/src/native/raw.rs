//! Stores words of headers as they were received. A word whose fields do not change can then be deparsed without
//! combining its fields again. A field that only machine code reads is extracted from its word each time it is read.
//!
//! Each word of a header ([`crate::phv::Word`]) has its own slot after the headers' slots. Machine code writes this
//! slot when it extracts the header, and clears the slot when an invalid header becomes valid.

use std::collections::{HashMap, HashSet};

use cranelift_codegen::ir::{InstBuilder, Value};

use super::emit::Fun;
use super::reach::{is_plain, touched};
use crate::calc::{Steps, Term};
use crate::code::{Ext, KeyPart, Op, Target};
use crate::layout::Slot;
use crate::optimize::effects;
use crate::phv::Word;
use crate::program::Program;

/// A word of a header as it was received.
#[derive(Debug, Clone, Copy)]
pub struct RawWord {
    pub slot: Slot,
    /// The bits of the fields that never change after extraction. If the mask is 0, the word is not stored.
    pub mask: u64,
}

/// A field that is stored only as a part of its word, and has no slot of its own.
#[derive(Debug, Clone, Copy)]
struct PackedField {
    word: Slot,
    shift: u8,
    m: u8,
}

/// The words of all headers of a program as they were received.
#[derive(Default)]
pub struct Raw {
    /// The words of each header, by the header's number.
    words: HashMap<u16, Vec<RawWord>>,
    /// The fields that are stored only as parts of their words, by slot.
    packed: HashMap<Slot, PackedField>,
}

impl Raw {
    pub fn new(p: &Program) -> Raw {
        let (used_by_rust, written, read) = (used_by_rust(p), written(p), read_by_rust(p));
        let stacked: HashSet<u16> = p.phv.stacks.iter().flat_map(|s| &s.headers).copied().collect();
        let mut raw = Raw::default();
        for (i, h) in (0u16..).zip(&p.phv.headers) {
            let plan = &p.phv.plans[usize::from(h.plan)];
            let (Some(first), Some(words)) = (h.raw, plan.words()) else { continue };
            let slots = h.base..=h.valid;
            let mut in_union = p.phv.union_stacks.iter().flat_map(|u| &u.unions).flatten();
            let independent = h.union_others.is_empty() && !stacked.contains(&i) && !in_union.any(|&o| o == i);
            if !independent || plan.varbit.is_some() || slots.clone().any(|slot| used_by_rust.contains(&slot)) {
                continue;
            }
            let mut raw_words = Vec::new();
            for (word, slot) in words.iter().zip(first..) {
                let mut mask = 0;
                for word_field in word.fields() {
                    let field = h.base + word_field.slot;
                    if word_field.signed || written.contains(&field) {
                        continue;
                    }
                    mask |= u64::MAX >> word_field.m << word_field.shift;
                    if !read.contains(&field) {
                        raw.packed.insert(field, PackedField { word: slot, shift: word_field.shift, m: word_field.m });
                    }
                }
                raw_words.push(RawWord { slot, mask });
            }
            raw.words.insert(i, raw_words);
        }
        raw
    }

    /// Returns whether a slot is never accessed, because its field is stored only in a word or because its word is not
    /// stored.
    pub fn unused(&self, slot: Slot) -> bool {
        self.packed.contains_key(&slot) || self.words.values().flatten().any(|w| w.slot == slot && w.mask == 0)
    }

    /// Returns the words of a header. The result is empty if no words of the header are stored.
    pub fn words(&self, header: u16) -> &[RawWord] {
        self.words.get(&header).map_or(&[], Vec::as_slice)
    }

    /// Returns the slots of the words, with the words' widths in bits.
    pub fn widths<'a>(&'a self, p: &'a Program) -> impl Iterator<Item = (Slot, u8)> + 'a {
        self.words.iter().flat_map(|(&header, raw)| {
            let plan = &p.phv.plans[usize::from(p.phv.headers[usize::from(header)].plan)];
            raw.iter().zip(plan.words().unwrap_or_default()).map(|(r, w)| (r.slot, 8 * w.bytes))
        })
    }
}

/// Returns the slots that Rust may read or write when it executes instructions for machine code.
fn used_by_rust(p: &Program) -> HashSet<Slot> {
    let mut all: HashSet<Slot> = p.objects.carried_slots().collect();
    all.extend(p.objects.meter_targets.iter().flatten().map(|f| f.slot));
    for ext in &p.code.ext {
        if let Ext::ExtractTo { target: Target::Header(h), .. } = ext {
            all.extend(&p.world.headers[usize::from(*h)]);
        }
        match ext {
            Ext::Hash { .. } | Ext::Verify { .. } | Ext::LastIndex { .. } | Ext::Assert { .. } | Ext::Log { .. } => {}
            other => all.extend(touched(p, other)),
        }
    }
    all
}

/// Returns the slots that instructions and the update of checksums write. Instructions that extract a header or change
/// its validity are left out.
fn written(p: &Program) -> HashSet<Slot> {
    let is_header_op = |op: &Op| matches!(op, Op::Extract { .. } | Op::SetValid { .. } | Op::SetInvalid { .. });
    let ops = p.code.ops.iter().filter(|op| !is_header_op(op));
    let mut all: HashSet<Slot> = ops.flat_map(|&op| effects::of(op, &p.code, &p.world).writes).collect();
    all.extend(p.update.iter().map(|&i| p.checksums[i].field.slot));
    all
}

/// Returns the slots that Rust may read for hashes, checksums, selectors and transitions.
fn read_by_rust(p: &Program) -> HashSet<Slot> {
    let mut all: HashSet<Slot> = HashSet::new();
    for ext in &p.code.ext {
        if let Ext::Hash { calculation, .. } = ext
            && !matches!(p.objects.calculations[usize::from(*calculation)].steps(), Steps::Words(..))
        {
            all.extend(&p.world.calculations[usize::from(*calculation)]);
        }
    }
    for selector in p.profiles.iter().filter_map(|profile| profile.selector.as_ref()) {
        if !matches!(selector.steps(), Steps::Words(..)) {
            all.extend(selector.slots(&p.world.headers));
        }
    }
    for c in &p.checksums {
        if !matches!(p.objects.calculations[c.calculation].steps(), Steps::Sum { .. }) {
            all.extend(&p.world.calculations[c.calculation]);
        }
    }
    for select in p.code.selects.iter().filter(|s| !is_plain(s)) {
        for key_part in &select.parts {
            if let KeyPart::Field(f) = key_part {
                all.extend((0..f.slots() as Slot).map(|i| f.slot + i));
            }
        }
    }
    all
}

impl Fun<'_, '_> {
    /// Extracts a field from its word. Returns `None` if the field has its own slot.
    pub fn unpack(&mut self, slot: Slot) -> Option<Value> {
        let PackedField { word, shift, m } = *self.plan.raw.packed.get(&slot)?;
        let v = self.get(word);
        let bits = self.bits(v).saturating_sub(shift.into());
        let v = if shift == 0 { v } else { self.b.ins().ushr_imm(v, i64::from(shift)) };
        self.has_bits(v, bits);
        let v = self.cut(v, m);
        self.known.insert(slot, v);
        Some(v)
    }

    /// Returns whether a field is stored only in its word. The caller is about to change the field, so the function
    /// removes the field's known value.
    pub fn is_packed(&mut self, slot: Slot) -> bool {
        let packed = self.plan.raw.packed.contains_key(&slot);
        if packed {
            self.known.remove(&slot);
        }
        packed
    }

    /// Combines a word of a header from the word as it was received and the fields that may have changed.
    pub fn header_word(&mut self, base: Slot, word: &Word, raw: Option<RawWord>) -> Value {
        let Some(raw) = raw.filter(|raw| raw.mask != 0) else { return self.word(base, word) };
        let v = self.get(raw.slot);
        let mut v = self.masked(v, raw.mask);
        for word_field in word.fields() {
            if raw.mask >> word_field.shift & 1 == 0 {
                let field = self.get(base.wrapping_add(word_field.slot));
                let field = if word_field.signed { self.cut(field, word_field.m) } else { field };
                let field = if word_field.shift == 0 {
                    field
                } else {
                    self.b.ins().ishl_imm(field, i64::from(word_field.shift))
                };
                v = self.b.ins().bor(v, field);
            }
        }
        v
    }

    /// Splits the terms of an Internet checksum into two lists. The first list contains words that each replace several
    /// terms, with the bits of the word to add. The second list contains the remaining terms.
    pub fn summed(&self, terms: &[Term]) -> (Vec<(Slot, u64)>, Vec<Term>) {
        /// A word must replace at least this number of terms. Otherwise, the terms are added individually.
        const MIN_FIELDS: usize = 3;
        let mut remaining = terms.to_vec();
        let mut words = Vec::new();
        let mut headers: Vec<&u16> = self.plan.raw.words.keys().collect();
        headers.sort_unstable();
        for &header in headers {
            let h = &self.p.phv.headers[usize::from(header)];
            let plan = &self.p.phv.plans[usize::from(h.plan)];
            for (raw, word) in self.plan.raw.words(header).iter().zip(plan.words().unwrap_or_default()) {
                let unchanged: Vec<_> = word.fields().iter().filter(|field| raw.mask >> field.shift & 1 == 1).collect();
                let at = |field: &&&crate::phv::WordField| {
                    let slot = h.base + field.slot;
                    let same = |t: &Term| t.slot == slot && t.m == field.m && t.shift % 16 == field.shift % 16;
                    remaining.iter().position(same)
                };
                let positions: Vec<usize> = unchanged.iter().filter_map(|field| at(&field)).collect();
                if positions.len() < MIN_FIELDS || positions.len() < unchanged.len() {
                    continue;
                }
                words.push((raw.slot, raw.mask));
                let mut i = 0;
                remaining.retain(|_| {
                    i += 1;
                    !positions.contains(&(i - 1))
                });
            }
        }
        (words, remaining)
    }
}
