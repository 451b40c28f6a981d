//! The random number generator of `random()`. It is not taken from a library, because a seed must produce the same
//! packets in every later version.

/// A SplitMix64 generator (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014).
#[derive(Clone)]
pub struct Rng(u64);

impl Rng {
    pub fn new(seed: u64) -> Rng {
        Rng(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// Returns a random number that is uniformly distributed over `low..=high`. `low` must not be larger than `high`.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        let span = high - low;
        if span == u64::MAX {
            return self.next();
        }
        // Reject values in the incomplete last interval, so that all results are equally likely.
        let n = span + 1;
        let limit = u64::MAX - (u64::MAX % n + 1) % n;
        loop {
            let v = self.next();
            if v <= limit {
                return low + v % n;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_comes_about_equally_often() {
        let mut rng = Rng::new(7);
        let mut counts = [0; 6];
        for _ in 0..60_000 {
            counts[(rng.between(10, 15) - 10) as usize] += 1;
        }
        assert!(counts.iter().all(|n| (9_500..10_500).contains(n)), "{counts:?}");
        assert_eq!(rng.between(3, 3), 3);
        rng.between(0, u64::MAX);
    }
}
