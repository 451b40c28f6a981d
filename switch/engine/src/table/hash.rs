//! The hash of a table's key. Lookups in Rust and in machine code must compute the same hash.

/// The initial value of a key's hash. It is an arbitrary number except 0, for which a key of zeros would have the hash
/// 0.
pub const SEED: u64 = 0x2545_f491_4f6c_dd1d;
/// The factor by which each word is multiplied: 2^64 divided by the golden ratio, rounded to an odd number.
pub const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// Mixes a word into a hash.
#[inline]
pub fn mix(h: u64, v: u64) -> u64 {
    let product = u128::from(h ^ v) * u128::from(FACTOR);
    (product >> 64) as u64 ^ product as u64
}

/// Returns the hash of a key.
#[inline]
pub fn hash(key: &[u64]) -> u64 {
    key.iter().fold(SEED, |h, &v| mix(h, v))
}
