//! The hash of a key, as lookups in Rust and in machine code compute it.

/// The initial value of a key's hash.
pub const SEED: u64 = 0x2545_f491_4f6c_dd1d;
/// The factor of the multiplication for each word.
pub const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// Adds a word to a hash.
#[inline]
pub fn mix(h: u64, v: u64) -> u64 {
    let product = u128::from(h ^ v) * u128::from(FACTOR);
    (product >> 64) as u64 ^ product as u64
}

/// The hash of a key.
#[inline]
pub fn hash(key: &[u64]) -> u64 {
    key.iter().fold(SEED, |h, &v| mix(h, v))
}
