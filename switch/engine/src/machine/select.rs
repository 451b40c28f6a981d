//! Selects the next parser state by the transition of the current state.

use super::{Machine, Stop};
use crate::bits;
use crate::code::{Case, Code, KeyPart, Pc, Select};
use crate::layout::{FieldRef, Slots};
use crate::phv::low;
use crate::program::Program;

/// A transition key of up to this many fields of one word each is built on the stack; other keys are built in
/// [`Machine::key`].
const MAX_FIELDS: usize = 4;

impl Machine {
    fn key_part(&self, p: &Program, s: &Slots, key_part: KeyPart, data: &[u8], row: &mut Vec<u64>) -> Result<(), Stop> {
        let field = |f: FieldRef, row: &mut Vec<u64>| {
            if f.limbs() == 1 {
                row.push(low(s, f.slot, f.width));
            } else {
                row.extend_from_slice(&s[usize::from(f.slot)..usize::from(f.slot) + f.limbs()]);
            }
        };
        match key_part {
            KeyPart::Field(f) => field(f, row),
            KeyPart::StackLast { stack, field: f } => {
                let base =
                    p.phv.stacks[usize::from(stack)].last(s).ok_or(Stop::Parser(p.errors.stack_out_of_bounds))?;
                field(f.offset(base), row);
            }
            KeyPart::UnionStackLast { stack, member, field: f } => {
                let u = &p.phv.union_stacks[usize::from(stack)];
                let last = usize::try_from(s[usize::from(u.next)].wrapping_sub(1)).ok();
                let headers = last.and_then(|i| u.unions.get(i)).ok_or(Stop::Parser(p.errors.stack_out_of_bounds))?;
                let base = p.phv.headers[usize::from(headers[usize::from(member)])].base;
                field(f.offset(base), row);
            }
            KeyPart::Lookahead { offset, width } => {
                let first = row.len();
                row.resize(first + crate::layout::limbs(width), 0);
                self.lookahead(p, data, offset, width, &mut row[first..])?;
            }
        }
        Ok(())
    }

    /// Reads `width` bits of the packet, which begin `offset` bits after the parser's position, into `row`.
    pub fn lookahead(&self, p: &Program, data: &[u8], offset: u32, width: u32, row: &mut [u64]) -> Result<(), Stop> {
        let rest = &data[self.position..];
        if rest.len() * 8 < (offset + width) as usize {
            return Err(Stop::Parser(p.errors.packet_too_short));
        }
        bits::read(rest, offset as usize, width as usize, row);
        Ok(())
    }

    /// Returns the address of the next parser state.
    #[inline(never)]
    pub fn select(&mut self, p: &Program, code: &Code, s: &Slots, index: usize, data: &[u8]) -> Result<Pc, Stop> {
        let select = &code.selects[index];
        let Some(small) = &select.small else {
            return self.select_slowly(p, select, s, data);
        };
        let v = match select.parts[0] {
            KeyPart::Field(f) => s[usize::from(f.slot)],
            KeyPart::Lookahead { offset, width } => {
                let mut row = [0];
                self.lookahead(p, data, offset, width, &mut row)?;
                row[0]
            }
            _ => 0,
        };
        Ok(small.iter().find(|c| v & c.1 == c.0).map_or(select.default, |c| c.2))
    }

    /// Returns the next state if the key has up to [`MAX_FIELDS`] fields of one word each and no case is a value set.
    /// Otherwise returns `None`.
    fn select_fields(&self, select: &Select, s: &Slots) -> Option<Pc> {
        let mut row = [0; MAX_FIELDS];
        for (word, key_part) in row.iter_mut().zip(&select.parts) {
            let KeyPart::Field(f) = key_part else { return None };
            if f.limbs() > 1 {
                return None;
            }
            *word = low(s, f.slot, f.width);
        }
        for case in &select.cases {
            let Case::Value { value, mask, to } = case else { return None };
            if row.iter().zip(mask).zip(value).all(|((k, m), v)| k & m == *v) {
                return Some(*to);
            }
        }
        Some(select.default)
    }

    fn select_slowly(&mut self, p: &Program, select: &Select, s: &Slots, data: &[u8]) -> Result<Pc, Stop> {
        if select.parts.len() <= MAX_FIELDS
            && let Some(to) = self.select_fields(select, s)
        {
            return Ok(to);
        }
        let mut row = std::mem::take(&mut self.key);
        row.clear();
        let to = self.select_row(p, select, s, data, &mut row);
        self.key = row;
        to
    }

    /// Returns the next state for a key of any kind. The function fills `row`, which must be empty, with the complete
    /// key.
    fn select_row(
        &mut self,
        p: &Program,
        select: &Select,
        s: &Slots,
        data: &[u8],
        row: &mut Vec<u64>,
    ) -> Result<Pc, Stop> {
        for &key_part in &select.parts {
            self.key_part(p, s, key_part, data, row)?;
        }
        for case in &select.cases {
            match case {
                Case::Value { value, mask, to } => {
                    if row.iter().zip(mask).zip(value).all(|((k, m), v)| k & m == *v) {
                        return Ok(*to);
                    }
                }
                Case::ValueSet { set, to } => {
                    if self.in_value_set(usize::from(*set), &select.parts, row) {
                        return Ok(*to);
                    }
                }
            }
        }
        Ok(select.default)
    }

    fn in_value_set(&mut self, set: usize, parts: &[KeyPart], row: &[u64]) -> bool {
        if self.value_sets[set].is_empty() {
            return false;
        }
        let total: u32 = parts.iter().map(|p| p.width()).sum();
        let key = &mut self.scratch;
        key.clear();
        let mut w = bits::BitWriter::new(key);
        w.put(0, (8 - total % 8) % 8);
        let mut at = 0;
        for key_part in parts {
            w.put_row(&row[at..], key_part.width());
            at += crate::layout::limbs(key_part.width());
        }
        w.finish();
        self.value_sets[set]
            .iter()
            .any(|(value, mask)| key.iter().zip(mask).zip(value).all(|((k, m), v)| k & m == v & m))
    }
}
