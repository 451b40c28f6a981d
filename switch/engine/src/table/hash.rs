//! The hash of a key, as lookups by Rust and by machine code compute it.

/// What a key's hash begins with.
pub const SEED: u64 = 0x2545_f491_4f6c_dd1d;
/// What it is multiplied by, word by word.
pub const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// One word more in a hash.
#[inline]
pub fn mix(h: u64, v: u64) -> u64 {
    let product = u128::from(h ^ v) * u128::from(FACTOR);
    (product >> 64) as u64 ^ product as u64
}

/// A key's hash; machine code computes it too.
#[inline]
pub fn hash(key: &[u64]) -> u64 {
    key.iter().fold(SEED, |h, &v| mix(h, v))
}
