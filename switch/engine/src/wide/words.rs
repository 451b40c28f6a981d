//! Arithmetic on integers in rows of words. A row is a number in two's complement, least significant word first. A
//! result is cut to the length of its row, and an operand is sign-extended beyond its row.

use std::cmp::Ordering;

use super::divide::divide;
use super::scratch::Row;
use super::{DivisionResult, MAX_SHIFT};
use crate::layout::sign_extend;

/// The scratch words that contain all rows.
pub struct Words<'a>(pub &'a mut [u64]);

impl Words<'_> {
    /// Returns word `i` of a number. A word after the end of the number's row is the sign extension.
    pub fn word(&self, a: Row, i: usize) -> u64 {
        if i < a.words { self.0[a.at + i] } else { self.sign(a) }
    }

    /// Returns all ones if the number is negative, and 0 otherwise.
    fn sign(&self, a: Row) -> u64 {
        ((self.0[a.end() - 1] as i64) >> 63) as u64
    }

    pub fn is_zero(&self, a: Row) -> bool {
        self.0[a.at..a.end()].iter().all(|&v| v == 0)
    }

    /// Sets a row to a number that is not negative.
    pub fn set(&mut self, d: Row, value: &[u64]) {
        let n = value.len().min(d.words);
        self.0[d.at..d.at + n].copy_from_slice(&value[..n]);
        self.0[d.at + n..d.end()].fill(0);
    }

    pub fn copy(&mut self, d: Row, a: Row) {
        let sign = self.sign(a);
        let n = a.words.min(d.words);
        self.0.copy_within(a.at..a.at + n, d.at);
        self.0[d.at + n..d.end()].fill(sign);
    }

    /// Sign-extends the low `width` (at least 1) bits of a row to all bits of the row.
    pub fn extend(&mut self, d: Row, width: u32) {
        let top = (width - 1) / 64;
        let at = d.at + top as usize;
        if at < d.end() {
            self.0[at] = sign_extend(self.0[at], width - 64 * top);
            let sign = ((self.0[at] as i64) >> 63) as u64;
            self.0[at + 1..d.end()].fill(sign);
        }
    }

    pub fn bitwise(&mut self, d: Row, a: Row, b: Row, op: impl Fn(u64, u64) -> u64) {
        for i in 0..d.words {
            self.0[d.at + i] = op(self.word(a, i), self.word(b, i));
        }
    }

    pub fn add(&mut self, d: Row, a: Row, b: Row) {
        self.sum(d, a, b, 0);
    }

    /// Computes `d = a - b` as a + ~b + 1.
    pub fn subtract(&mut self, d: Row, a: Row, b: Row) {
        self.sum(d, a, b, u64::MAX);
    }

    /// Computes `d = a + b` if `flip` is 0, and `d = a - b` if `flip` is all ones.
    fn sum(&mut self, d: Row, a: Row, b: Row, flip: u64) {
        let mut carry = flip != 0;
        for i in 0..d.words {
            let (v, first) = self.word(a, i).overflowing_add(self.word(b, i) ^ flip);
            let (v, second) = v.overflowing_add(carry.into());
            self.0[d.at + i] = v;
            carry = first || second;
        }
    }

    pub fn multiply(&mut self, d: Row, a: Row, b: Row) {
        self.0[d.at..d.end()].fill(0);
        for i in 0..d.words {
            let x = u128::from(self.word(a, i));
            if x == 0 {
                continue;
            }
            let mut carry = 0;
            for j in 0..d.words - i {
                let at = d.at + i + j;
                let v = x * u128::from(self.word(b, j)) + u128::from(self.0[at]) + carry;
                self.0[at] = v as u64;
                carry = v >> 64;
            }
        }
    }

    /// Returns the number as the distance of a shift in bits. For a negative or too large number, the result is the
    /// maximum distance.
    pub fn amount(&self, a: Row) -> u32 {
        let low = self.0[a.at];
        let fits = low < MAX_SHIFT.into() && self.0[a.at + 1..a.end()].iter().all(|&v| v == 0);
        if fits { low as u32 } else { MAX_SHIFT }
    }

    pub fn shift_left(&mut self, d: Row, a: Row, k: u32) {
        let (words, bits) = (k as usize / 64, k % 64);
        let below = |w: &Self, i: usize, back: usize| i.checked_sub(back).map_or(0, |i| w.word(a, i));
        for i in 0..d.words {
            let (high, low) = (below(self, i, words), below(self, i, words + 1));
            self.0[d.at + i] = high << bits | low >> 1 >> (63 - bits);
        }
    }

    /// Computes an arithmetic right shift, which rounds towards minus infinity.
    pub fn shift_right(&mut self, d: Row, a: Row, k: u32) {
        let (words, bits) = (k as usize / 64, k % 64);
        for i in 0..d.words {
            let (low, high) = (self.word(a, i + words), self.word(a, i + words + 1));
            self.0[d.at + i] = low >> bits | high << 1 << (63 - bits);
        }
    }

    pub fn compare(&self, a: Row, b: Row) -> Ordering {
        // The signs are compared first, and then the words, beginning with the most significant word.
        let signs = (self.sign(b)).cmp(&self.sign(a));
        let words = (0..a.words.max(b.words)).rev().map(|i| self.word(a, i).cmp(&self.word(b, i)));
        words.fold(signs, Ordering::then)
    }

    /// Computes a division, which rounds towards zero. A remainder has the sign of the dividend. A division by zero
    /// gives 0.
    pub fn divide(&mut self, which_result: DivisionResult, d: Row, a: Row, b: Row, work: Row) {
        let (a_negative, b_negative) = (self.sign(a) != 0, self.sign(b) != 0);
        let dividend = Row { at: work.at, words: a.words + 1 };
        let divisor = Row { at: dividend.end(), words: b.words };
        self.copy(dividend, a);
        self.copy(divisor, b);
        let (u, v) = self.0[dividend.at..divisor.end()].split_at_mut(dividend.words);
        for (row, negative) in [(&mut *u, a_negative), (&mut *v, b_negative)] {
            if negative {
                negate(row);
            }
        }
        let n = v.iter().rposition(|&v| v != 0).map_or(0, |top| top + 1);
        if n == 0 {
            return self.set(d, &[]);
        }
        let split = divide(u, &mut v[..n]);
        let (from, negative) = match which_result {
            DivisionResult::Quotient => (dividend.at + split..dividend.end(), a_negative != b_negative),
            DivisionResult::Remainder => (dividend.at..dividend.at + split, a_negative),
        };
        let n = from.len().min(d.words);
        self.0.copy_within(from.start..from.start + n, d.at);
        self.0[d.at + n..d.end()].fill(0);
        if negative {
            negate(&mut self.0[d.at..d.end()]);
        }
    }
}

fn negate(row: &mut [u64]) {
    let mut carry = true;
    for v in row {
        (*v, carry) = (!*v).overflowing_add(carry.into());
    }
}
