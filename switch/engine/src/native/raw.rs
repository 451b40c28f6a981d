//! Words of headers as they came in: fields that nobody changes need not be put together again, and those that nobody but machine
//! code reads are taken out where they are read.
//!
//! Each word of a header ([`crate::phv::Word`]) has a slot of its own behind the headers' slots; machine code writes it when it
//! extracts the header, and clears it when the header is made valid anew.

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

/// A word of a header that is kept as it came in.
#[derive(Debug, Clone, Copy)]
pub struct RawWord {
    pub slot: Slot,
    /// The bits of fields that nobody changes; 0: the word is not kept.
    pub kept: u64,
}

/// A field that is in no slot of its own.
#[derive(Debug, Clone, Copy)]
struct Taken {
    word: Slot,
    shift: u8,
    m: u8,
}

/// What there is of it in a program.
#[derive(Default)]
pub struct Raw {
    /// By header.
    words: HashMap<u16, Vec<RawWord>>,
    /// By slot.
    taken: HashMap<Slot, Taken>,
}

impl Raw {
    pub fn new(p: &Program) -> Raw {
        let (aloof, changed, read) = (aloof(p), changed(p), read(p));
        let stacked: HashSet<u16> = p.phv.stacks.iter().flat_map(|s| &s.headers).copied().collect();
        let mut raw = Raw::default();
        for (i, h) in (0u16..).zip(&p.phv.headers) {
            let plan = &p.phv.plans[usize::from(h.plan)];
            let (Some(first), Some(words)) = (h.raw, plan.words()) else { continue };
            let slots = h.base..=h.valid;
            let mut in_union = p.phv.union_stacks.iter().flat_map(|u| &u.unions).flatten();
            let alone = h.union_others.is_empty() && !stacked.contains(&i) && !in_union.any(|&o| o == i);
            if !alone || plan.varbit.is_some() || slots.clone().any(|slot| aloof.contains(&slot)) {
                continue;
            }
            let mut kept_words = Vec::new();
            for (word, slot) in words.iter().zip(first..) {
                let mut kept = 0;
                for part in word.parts() {
                    let field = h.base + part.slot;
                    if part.signed || changed.contains(&field) {
                        continue;
                    }
                    kept |= u64::MAX >> part.m << part.shift;
                    if !read.contains(&field) {
                        raw.taken.insert(field, Taken { word: slot, shift: part.shift, m: part.m });
                    }
                }
                kept_words.push(RawWord { slot, kept });
            }
            raw.words.insert(i, kept_words);
        }
        raw
    }

    /// Whether a slot is not used.
    pub fn unused(&self, slot: Slot) -> bool {
        self.taken.contains_key(&slot) || self.words.values().flatten().any(|w| w.slot == slot && w.kept == 0)
    }

    /// The kept words of a header, if they are kept.
    pub fn words(&self, header: u16) -> &[RawWord] {
        self.words.get(&header).map_or(&[], Vec::as_slice)
    }

    /// Bits of the words, by slot.
    pub fn widths<'a>(&'a self, p: &'a Program) -> impl Iterator<Item = (Slot, u8)> + 'a {
        self.words.iter().flat_map(|(&header, raw)| {
            let plan = &p.phv.plans[usize::from(p.phv.headers[usize::from(header)].plan)];
            raw.iter().zip(plan.words().unwrap_or_default()).map(|(r, w)| (r.slot, 8 * w.bytes))
        })
    }
}

/// Slots that Rust may read or write, of instructions that it carries out.
fn aloof(p: &Program) -> HashSet<Slot> {
    let mut all: HashSet<Slot> = p.objects.kept().collect();
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

/// Slots that some instruction writes, or a checksum.
fn changed(p: &Program) -> HashSet<Slot> {
    let whole = |op: &Op| matches!(op, Op::Extract { .. } | Op::SetValid { .. } | Op::SetInvalid { .. });
    let ops = p.code.ops.iter().filter(|op| !whole(op));
    let mut all: HashSet<Slot> = ops.flat_map(|&op| effects::of(op, &p.code, &p.world).writes).collect();
    all.extend(p.update.iter().map(|&i| p.checksums[i].field.slot));
    all
}

/// Slots that Rust may read.
fn read(p: &Program) -> HashSet<Slot> {
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
        for part in &select.parts {
            if let KeyPart::Field(f) = part {
                all.extend((0..f.slots() as Slot).map(|i| f.slot + i));
            }
        }
    }
    all
}

impl Fun<'_, '_> {
    /// The value of a field that is in no slot of its own.
    pub fn take_out(&mut self, slot: Slot) -> Option<Value> {
        let Taken { word, shift, m } = *self.plan.raw.taken.get(&slot)?;
        let v = self.get(word);
        let bits = self.bits(v).saturating_sub(shift.into());
        let v = if shift == 0 { v } else { self.b.ins().ushr_imm(v, i64::from(shift)) };
        self.has_bits(v, bits);
        let v = self.cut(v, m);
        self.known.insert(slot, v);
        Some(v)
    }

    /// Whether a field has no slot of its own; what is known of it is not true any more.
    pub fn is_taken(&mut self, slot: Slot) -> bool {
        let taken = self.plan.raw.taken.contains_key(&slot);
        if taken {
            self.known.remove(&slot);
        }
        taken
    }

    /// A word of a header out of what is kept of it and of the fields that may have been changed.
    pub fn header_word(&mut self, base: Slot, word: &Word, raw: Option<RawWord>) -> Value {
        let Some(raw) = raw.filter(|raw| raw.kept != 0) else { return self.word(base, word) };
        let v = self.get(raw.slot);
        let mut v = self.under(v, raw.kept);
        for part in word.parts() {
            if raw.kept >> part.shift & 1 == 0 {
                let field = self.get(base.wrapping_add(part.slot));
                let field = if part.signed { self.cut(field, part.m) } else { field };
                let field = if part.shift == 0 { field } else { self.b.ins().ishl_imm(field, i64::from(part.shift)) };
                v = self.b.ins().bor(v, field);
            }
        }
        v
    }

    /// Words, and their bits, that stand for terms of an Internet checksum; the terms that are left.
    pub fn summed(&self, terms: &[Term]) -> (Vec<(Slot, u64)>, Vec<Term>) {
        /// Fewer fields of a word are added one by one.
        const FEW: usize = 3;
        let mut left = terms.to_vec();
        let mut words = Vec::new();
        let mut headers: Vec<&u16> = self.plan.raw.words.keys().collect();
        headers.sort_unstable();
        for &header in headers {
            let h = &self.p.phv.headers[usize::from(header)];
            let plan = &self.p.phv.plans[usize::from(h.plan)];
            for (raw, word) in self.plan.raw.words(header).iter().zip(plan.words().unwrap_or_default()) {
                let kept: Vec<_> = word.parts().iter().filter(|part| raw.kept >> part.shift & 1 == 1).collect();
                let at = |part: &&&crate::phv::Part| {
                    let slot = h.base + part.slot;
                    let same = |t: &Term| t.slot == slot && t.m == part.m && t.shift % 16 == part.shift % 16;
                    left.iter().position(same)
                };
                let found: Vec<usize> = kept.iter().filter_map(|part| at(&part)).collect();
                if found.len() < FEW || found.len() < kept.len() {
                    continue;
                }
                words.push((raw.slot, raw.kept));
                let mut i = 0;
                left.retain(|_| {
                    i += 1;
                    !found.contains(&(i - 1))
                });
            }
        }
        (words, left)
    }
}
