//! Unsigned division of numbers in words, least significant word first (Knuth, The Art of Computer Programming, vol. 2,
//! section 4.3.1, algorithm D).

/// Divides `u` by `v` in place. The last word of `u` must be 0, and the last word of `v` must not be 0. The remainder
/// is stored in the low words of `u` and the quotient in the other words of `u`; `v` is overwritten. Returns the number
/// of the remainder's words.
pub fn divide(u: &mut [u64], v: &mut [u64]) -> usize {
    let n = v.len();
    if u.len() <= n {
        return u.len();
    }
    let shift = v[n - 1].leading_zeros();
    shift_left(v, shift);
    shift_left(u, shift);
    for j in (0..u.len() - n).rev() {
        // This step makes the dividend's highest word 0. The quotient's digit is stored in this word.
        u[j + n] = digit(&mut u[j..=j + n], v);
    }
    shift_right(&mut u[..n], shift);
    n
}

/// Subtracts `v` from `u` as many times as possible, and returns this number, which is less than 2^64. The highest bit
/// of `v` must be set, and `u` must be one word longer than `v`.
fn digit(u: &mut [u64], v: &[u64]) -> u64 {
    let n = v.len();
    let top = u128::from(u[n]) << 64 | u128::from(u[n - 1]);
    // The estimate is larger than the correct digit by at most two.
    let mut q = u64::try_from(top / u128::from(v[n - 1])).unwrap_or(u64::MAX);
    let mut borrow = 0;
    for (x, &y) in u.iter_mut().zip(v) {
        let product = u128::from(q) * u128::from(y) + u128::from(borrow);
        let (rest, under) = x.overflowing_sub(product as u64);
        *x = rest;
        borrow = (product >> 64) as u64 + u64::from(under);
    }
    let (rest, mut negative) = u[n].overflowing_sub(borrow);
    u[n] = rest;
    while negative {
        q -= 1;
        let mut carry = false;
        for (x, &y) in u.iter_mut().zip(v) {
            let (sum, first) = x.overflowing_add(y);
            let (sum, second) = sum.overflowing_add(carry.into());
            *x = sum;
            carry = first || second;
        }
        let (rest, over) = u[n].overflowing_add(carry.into());
        u[n] = rest;
        negative = !over;
    }
    q
}

/// Shifts a number left by `k` bits, where `k` is less than 64.
fn shift_left(row: &mut [u64], k: u32) {
    let mut low = 0;
    for v in row {
        (*v, low) = (*v << k | low >> 1 >> (63 - k), *v);
    }
}

fn shift_right(row: &mut [u64], k: u32) {
    let mut high = 0;
    for v in row.iter_mut().rev() {
        (*v, high) = (*v >> k | high << 1 << (63 - k), *v);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use num_bigint::BigUint;
    use proptest::prelude::*;

    fn number(row: &[u64]) -> BigUint {
        BigUint::new(row.iter().flat_map(|&v| [v as u32, (v >> 32) as u32]).collect())
    }

    fn check(dividend: &[u64], divisor: &[u64]) {
        let (mut u, mut v) = ([dividend, &[0]].concat(), divisor.to_vec());
        let split = divide(&mut u, &mut v);
        let (remainder, quotient) = u.split_at(split);
        let (a, b) = (number(dividend), number(divisor));
        assert_eq!((number(quotient), number(remainder)), (&a / &b, &a % &b), "{dividend:x?} / {divisor:x?}");
    }

    /// Divides numbers for which the estimated digit is too large by one, too large by two, or too large for a word.
    #[test]
    fn estimates_are_corrected() {
        let (half, all) = (1 << 63, u64::MAX);
        check(&[0, 0, half, half - 1], &[1, 0, half]);
        check(&[3, 0, half], &[1, 0, 1 << 61]);
        check(&[0, all - 1, half], &[all, half]);
        check(&[0, 0, all - 1, all - 1], &[all, all, all - 1]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(5000))]
        #[test]
        fn quotient_and_remainder_are_right(
            dividend in proptest::collection::vec(edge(), 1..8),
            divisor in proptest::collection::vec(edge(), 1..5),
        ) {
            let n = divisor.iter().rposition(|&v| v != 0).map_or(0, |top| top + 1);
            prop_assume!(n > 0);
            check(&dividend, &divisor[..n]);
        }
    }

    fn edge() -> impl Strategy<Value = u64> {
        prop_oneof![
            Just(0),
            Just(1),
            Just(u64::MAX),
            Just(u64::MAX - 1),
            Just(1 << 63),
            Just((1 << 63) - 1),
            any::<u64>()
        ]
    }
}
