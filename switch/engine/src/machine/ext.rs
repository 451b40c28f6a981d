//! Interprets the operations of [`Ext`], which are rare or need more than one machine word.

use super::{Machine, Stop};
use crate::code::{Element, Ext, HeaderAt, Target};
use crate::layout::{FieldRef, Slot, Slots};
use crate::phv::{Phv, StackAt};
use crate::program::Program;
use crate::trace::TraceEvent;

fn header(phv: &Phv, s: &Slots, at: HeaderAt) -> Option<usize> {
    match at {
        HeaderAt::Fixed(h) => Some(h.into()),
        HeaderAt::Indexed(stack, index) => {
            let i = usize::try_from(s[usize::from(index)]).ok()?;
            phv.stacks[usize::from(stack)].headers.get(i).map(|&h| h.into())
        }
    }
}

fn element(stack: &StackAt, s: &Slots, element: Element) -> Option<Slot> {
    match element {
        Element::Last => stack.last(s),
        Element::Index(index) => stack.element(s[usize::from(index)]),
    }
}

/// Returns whether two headers are both valid and all their fields are equal.
fn equal(phv: &Phv, s: &Slots, a: usize, b: usize) -> bool {
    let run = |h: usize| {
        let h = &phv.headers[h];
        &s[usize::from(h.base)..usize::from(h.base) + usize::from(h.slots)]
    };
    phv.is_valid(s, a) && phv.is_valid(s, b) && run(a) == run(b)
}

impl Machine {
    #[inline(never)]
    #[expect(clippy::too_many_lines, reason = "one arm an instruction")]
    pub fn ext(&mut self, p: &Program, ext: &Ext, s: &mut Slots, data: &[u8]) -> Result<(), Stop> {
        let phv = &p.phv;
        let value = |s: &Slots, slot: Slot| s[usize::from(slot)];
        match ext {
            Ext::Wide(wide) => wide.run(s, &mut self.wide),
            Ext::RowEq { d, a, b, n } => {
                let row = |at: Slot| usize::from(at)..usize::from(at) + usize::from(*n);
                s[usize::from(*d)] = u64::from(s[row(*a)] == s[row(*b)]);
            }
            Ext::CopyVarbit { d, a } => copy_varbit(s, *d, *a),
            Ext::LoadElement { stack, element: e, field, d } => {
                let (d, n) = (usize::from(*d), field.slots());
                match element(&phv.stacks[usize::from(*stack)], s, *e) {
                    Some(base) => {
                        let from = usize::from(field.offset(base).slot);
                        s.copy_within(from..from + n, d);
                    }
                    None => s[d..d + n].fill(0),
                }
            }
            Ext::StoreElement { stack, element: e, field, a } => {
                if let Some(base) = element(&phv.stacks[usize::from(*stack)], s, *e) {
                    let (to, a) = (usize::from(field.offset(base).slot), usize::from(*a));
                    s.copy_within(a..a + field.slots(), to);
                }
            }
            // For an empty stack, `next` is 0 and the result is all ones in 32 bits.
            Ext::LastIndex { d, next } => s[usize::from(*d)] = value(s, *next).wrapping_sub(1) & 0xffff_ffff,
            Ext::HeaderEq { d, a, b } => {
                let same = header(phv, s, *a).zip(header(phv, s, *b)).is_some_and(|(a, b)| equal(phv, s, a, b));
                s[usize::from(*d)] = u64::from(same);
            }
            Ext::UnionEq { d, a, b } => {
                let same = a.iter().zip(b).any(|(&a, &b)| equal(phv, s, a.into(), b.into()));
                s[usize::from(*d)] = u64::from(same);
            }
            Ext::SetValid { header: h, valid } => match header(phv, s, *h) {
                Some(h) if *valid => self.set_valid(p, s, h),
                Some(h) => self.set_invalid(p, s, h),
                None => {}
            },
            Ext::AssignHeader { d, a } => {
                if let Some((d, a)) = header(phv, s, *d).zip(header(phv, s, *a)) {
                    assign_header(phv, s, d, a);
                }
            }
            Ext::AssignHeaders { pairs, next } => {
                for &(d, a) in pairs {
                    assign_header(phv, s, d.into(), a.into());
                }
                if let Some((d, a)) = next {
                    s[usize::from(*d)] = value(s, *a);
                }
            }
            Ext::Push { stack, count } => {
                let stack = &phv.stacks[usize::from(*stack)];
                push(phv, s, single(stack), stack.next, value(s, *count));
            }
            Ext::Pop { stack, count } => {
                let stack = &phv.stacks[usize::from(*stack)];
                pop(phv, s, single(stack), stack.next, value(s, *count));
            }
            Ext::PushUnion { stack, count } => {
                let stack = &phv.union_stacks[usize::from(*stack)];
                push(phv, s, &stack.unions, stack.next, value(s, *count));
            }
            Ext::PopUnion { stack, count } => {
                let stack = &phv.union_stacks[usize::from(*stack)];
                pop(phv, s, &stack.unions, stack.next, value(s, *count));
            }
            Ext::RegisterRead { register, d, index } => {
                if let Some(cell) = self.state.registers[usize::from(*register)].row(value(s, *index)) {
                    let at = usize::from(d.slot);
                    s[at..at + cell.len()].copy_from_slice(cell);
                }
            }
            Ext::RegisterWrite { register, index, a } => {
                if let Some(cell) = self.state.registers[usize::from(*register)].row_mut(value(s, *index)) {
                    let at = usize::from(a.slot);
                    cell.copy_from_slice(&s[at..at + cell.len()]);
                }
            }
            Ext::Hash { calculation, d, base, max } => {
                let payload = data.get(self.position..).unwrap_or(&[]);
                let hash = p.objects.calculations[usize::from(*calculation)].output(s, phv, payload, &mut self.scratch);
                // BMv2 treats a maximum of 0 as 1.
                s[usize::from(*d)] = value(s, *base).wrapping_add(hash % value(s, *max).max(1));
            }
            Ext::Random { d, low, high } => {
                let (low, high) = (value(s, *low), value(s, *high));
                if low <= high {
                    s[usize::from(*d)] = self.rng.between(low, high);
                }
            }
            Ext::Truncate { length } => {
                self.limit = self.limit.min(usize::try_from(value(s, *length)).unwrap_or(usize::MAX))
            }
            Ext::CloneIngress { session, fields } | Ext::CloneEgress { session, fields } => {
                let session = value(s, *session) as u32;
                self.request(|r| r.clone = Some((session, *fields)));
            }
            Ext::Resubmit { fields } => self.request(|r| r.resubmit = Some(*fields)),
            Ext::Recirculate { fields } => self.request(|r| r.recirculate = Some(*fields)),
            Ext::Digest { digest } => self.request(|r| r.digest = Some(*digest)),
            Ext::Assert { a } => {
                if value(s, *a) == 0 {
                    return Err(Stop::Assertion);
                }
            }
            Ext::Log { format, args } => {
                if self.trace.is_some() {
                    let text = log_text(s, format, args);
                    self.note(|| TraceEvent::Log(text));
                }
            }
            Ext::ExtractTo { target, length } => self.extract_to(p, s, *target, length.map(|l| value(s, l)), data)?,
            Ext::Lookahead { offset, width, d } => {
                let at = usize::from(d.slot);
                self.lookahead(p, data, *offset, *width, &mut s[at..at + d.limbs()])?;
            }
            Ext::Advance { bits } => {
                let bits = value(s, *bits);
                if bits % 8 != 0 {
                    return Err(Stop::Parser(p.errors.parser_invalid_argument));
                }
                if bits / 8 > (data.len() - self.position) as u64 {
                    return Err(Stop::Parser(p.errors.packet_too_short));
                }
                self.position += (bits / 8) as usize;
            }
            Ext::Verify { condition, error } => {
                if value(s, *condition) == 0 {
                    return Err(Stop::Parser(value(s, *error)));
                }
            }
            Ext::NeedElement { stack } => {
                if phv.stacks[usize::from(*stack)].last(s).is_none() {
                    return Err(Stop::Parser(p.errors.stack_out_of_bounds));
                }
            }
        }
        Ok(())
    }

    fn extract_to(
        &mut self,
        p: &Program,
        s: &mut Slots,
        target: Target,
        length: Option<u64>,
        data: &[u8],
    ) -> Result<(), Stop> {
        let phv = &p.phv;
        let full = Stop::Parser(p.errors.stack_out_of_bounds);
        let at = |next: Slot, s: &Slots| usize::try_from(s[usize::from(next)]).unwrap_or(usize::MAX);
        let (h, next) = match target {
            Target::Header(h) => (h, None),
            Target::Stack(stack) => {
                let stack = &phv.stacks[usize::from(stack)];
                (*stack.headers.get(at(stack.next, s)).ok_or(full)?, Some(stack.next))
            }
            Target::UnionStack(stack, member) => {
                let stack = &phv.union_stacks[usize::from(stack)];
                let headers = stack.unions.get(at(stack.next, s)).ok_or(full)?;
                (headers[usize::from(member)], Some(stack.next))
            }
        };
        let at_run = &phv.headers[usize::from(h)];
        let plan = &phv.plans[usize::from(at_run.plan)];
        let bits = match length {
            None => 0,
            Some(l) if l % 8 != 0 => return Err(Stop::Parser(p.errors.parser_invalid_argument)),
            // A negative length is read as an unsigned number, which is larger than any packet.
            Some(l) => usize::try_from(l).unwrap_or(usize::MAX),
        };
        let rest = &data[self.position..];
        let bytes = plan.fixed_bytes.saturating_add(bits / 8);
        if rest.len() < bytes {
            return Err(Stop::Parser(p.errors.packet_too_short));
        }
        if plan.max_bytes != 0 && bytes > plan.max_bytes {
            return Err(Stop::Parser(p.errors.header_too_short));
        }
        plan.extract(s, at_run.base, &rest[..bytes.max((plan.fixed_bytes + 8).min(rest.len()))], bits);
        self.position += bytes;
        phv.set_valid(s, h.into());
        if let Some(next) = next {
            s[usize::from(next)] += 1;
        }
        Ok(())
    }
}

fn copy_varbit(s: &mut Slots, d: FieldRef, a: FieldRef) {
    let bits = s[usize::from(a.slot)].min(d.width.into());
    let n = a.limbs().min(d.limbs());
    let (to, from) = (usize::from(d.data()), usize::from(a.data()));
    s.copy_within(from..from + n, to);
    s[usize::from(d.slot)] = bits;
}

/// Copies a header with its validity. If the source is invalid, no fields are copied.
fn assign_header(phv: &Phv, s: &mut Slots, d: usize, a: usize) {
    if phv.is_valid(s, a) {
        phv.copy(s, d, a);
        phv.set_valid(s, d);
    } else {
        s[usize::from(phv.headers[d].valid)] = 0;
    }
}

/// Returns the elements of a header stack, each as a list with one header. An element of a union stack is a list of the
/// union's headers, so `push` and `pop` process header stacks and union stacks alike.
fn single(stack: &StackAt) -> &[[u16; 1]] {
    stack.headers.as_chunks().0
}

/// Copies all headers of the stack element `a`, including their validity, to the element `d`.
fn move_element(phv: &Phv, s: &mut Slots, d: &[u16], a: &[u16]) {
    for (&d, &a) in d.iter().zip(a) {
        let (to, from) = (&phv.headers[usize::from(d)], &phv.headers[usize::from(a)]);
        let first = usize::from(from.base);
        s.copy_within(first..first + usize::from(from.slots), to.base.into());
    }
}

fn invalidate(phv: &Phv, s: &mut Slots, element: &[u16]) {
    for &h in element {
        s[usize::from(phv.headers[usize::from(h)].valid)] = 0;
    }
}

/// Implements P4_16's `push_front`: moves all elements up by `count` positions and invalidates the new first elements.
fn push(phv: &Phv, s: &mut Slots, elements: &[impl AsRef<[u16]>], next: Slot, count: u64) {
    let n = elements.len();
    let count = usize::try_from(count).unwrap_or(n).min(n);
    for i in (count..n).rev() {
        move_element(phv, s, elements[i].as_ref(), elements[i - count].as_ref());
    }
    for element in &elements[..count] {
        invalidate(phv, s, element.as_ref());
    }
    let slot = &mut s[usize::from(next)];
    *slot = (*slot + count as u64).min(n as u64);
}

/// Implements P4_16's `pop_front`: moves all elements down by `count` positions and invalidates the freed last
/// elements.
fn pop(phv: &Phv, s: &mut Slots, elements: &[impl AsRef<[u16]>], next: Slot, count: u64) {
    let n = elements.len();
    let count = usize::try_from(count).unwrap_or(n).min(n);
    for i in 0..n - count {
        move_element(phv, s, elements[i].as_ref(), elements[i + count].as_ref());
    }
    for element in &elements[n - count..] {
        invalidate(phv, s, element.as_ref());
    }
    let slot = &mut s[usize::from(next)];
    *slot = slot.saturating_sub(count as u64);
}

/// Returns the text of a `log_msg`, in which each `{...}` of the format is replaced by the next value. If there are too
/// few values, the remaining `{...}` are kept.
fn log_text(s: &Slots, format: &str, args: &[(FieldRef, bool)]) -> String {
    let mut values = args.iter().map(|(f, _)| f.exact(s).to_string());
    let mut out = String::new();
    let mut rest = format;
    while let Some(open) = rest.find('{') {
        let Some(close) = rest[open..].find('}') else { break };
        out.push_str(&rest[..open]);
        out.push_str(&values.next().unwrap_or_else(|| rest[open..=open + close].into()));
        rest = &rest[open + close + 1..];
    }
    out + rest
}
