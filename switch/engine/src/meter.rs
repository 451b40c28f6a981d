//! BMv2's two-rate three-colour meter (RFC 2698) in its colour-blind mode.
//!
//! A packet first takes its tokens from the peak bucket. If this bucket has too few tokens, the packet is red.
//! Otherwise the packet takes its tokens from the committed bucket. If the committed bucket has too few tokens, the
//! packet is yellow, and its tokens from the peak bucket remain consumed.
//!
//! Tokens are whole numbers that are computed from one origin in time, so rounding errors do not add up. BMv2 counts in
//! floating point, whereas here a token arrives exactly in the microsecond in which it is due. Unlike on BMv2, writing
//! a meter's unchanged configuration does not change its buckets.

use crate::control::{CounterData, MeterConfig, MeterView};

/// The colours, with the numbers that v1model assigns.
pub const GREEN: u64 = 0;
pub const YELLOW: u64 = 1;
pub const RED: u64 = 2;

#[derive(Debug, Clone, Copy, Default)]
struct Bucket {
    /// The number of tokens added per second.
    rate: u64,
    burst: u64,
    tokens: u64,
    /// The number of tokens that were due since [`Configured::origin`], including tokens that did not fit into the
    /// bucket.
    added: u128,
}

impl Bucket {
    fn new(rate: u64, burst: u64) -> Bucket {
        Bucket { rate, burst, tokens: burst, added: 0 }
    }

    fn take(&mut self, micros: u64, cost: u64) -> bool {
        let added = u128::from(micros) * u128::from(self.rate) / 1_000_000;
        let tokens = u128::from(self.tokens) + added.saturating_sub(self.added);
        self.tokens = tokens.min(u128::from(self.burst)) as u64;
        self.added = added;
        let enough = self.tokens >= cost;
        if enough {
            self.tokens -= cost;
        }
        enough
    }
}

#[derive(Debug, Clone, Copy)]
struct Configured {
    config: MeterConfig,
    /// The time in microseconds when the meter was configured. The buckets were full then.
    origin: u64,
    peak: Bucket,
    committed: Bucket,
}

/// A two-rate three-colour meter. Without a configuration, the meter colours every packet green.
#[derive(Debug, Clone, Copy, Default)]
pub struct Meter {
    configured: Option<Configured>,
    /// Packets and bytes of each colour. The index is [`GREEN`], [`YELLOW`] or [`RED`].
    counts: [CounterData; 3],
}

impl Meter {
    pub fn config(&self) -> Option<MeterConfig> {
        self.configured.map(|c| c.config)
    }

    /// Sets the configuration. A changed configuration fills the buckets; an unchanged configuration has no effect.
    /// `now` is the time in nanoseconds.
    pub fn configure(&mut self, now: u64, config: Option<MeterConfig>) {
        if self.config() != config {
            self.configured = config.map(|config| Configured {
                config,
                origin: now / 1000,
                peak: Bucket::new(config.pir, config.pburst),
                committed: Bucket::new(config.cir, config.cburst),
            });
        }
    }

    /// Returns the configuration, and the packets and bytes of each colour.
    pub fn view(&self) -> MeterView {
        MeterView { config: self.config(), counts: self.counts }
    }

    /// Sets the packets and bytes of each colour to zero.
    pub fn clear_counts(&mut self) {
        self.counts = <[CounterData; 3]>::default();
    }

    /// Adds the counts of another meter.
    pub fn add_counts(&mut self, other: &Meter) {
        for (own, other) in self.counts.iter_mut().zip(other.counts) {
            own.add(other);
        }
    }

    /// Returns the colour of a packet of `bytes` bytes at the time `now` in nanoseconds. The packet consumes one token
    /// for each byte, or a single token if `by_bytes` is not set.
    pub fn execute(&mut self, now: u64, bytes: u64, by_bytes: bool) -> u64 {
        let colour = self.colour(now, if by_bytes { bytes } else { 1 });
        self.counts[colour as usize].count(bytes);
        colour
    }

    fn colour(&mut self, now: u64, cost: u64) -> u64 {
        let Some(c) = &mut self.configured else { return GREEN };
        let micros = (now / 1000).saturating_sub(c.origin);
        if !c.peak.take(micros, cost) {
            RED
        } else if !c.committed.take(micros, cost) {
            YELLOW
        } else {
            GREEN
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn colours_and_refill() {
        let mut m = Meter::default();
        assert_eq!(m.execute(0, 1, false), GREEN);
        let config = MeterConfig { cir: 1, cburst: 2, pir: 2, pburst: 4 };
        m.configure(0, Some(config));
        let colours: Vec<_> = (0..6).map(|_| m.execute(0, 1, false)).collect();
        assert_eq!(colours, [GREEN, GREEN, YELLOW, YELLOW, RED, RED]);
        // After one second, two new tokens are in the peak bucket and one new token is in the committed bucket.
        let colours: Vec<_> = (0..3).map(|_| m.execute(SECOND, 1, false)).collect();
        assert_eq!(colours, [GREEN, YELLOW, RED]);
        // An unchanged configuration does not refill the buckets, but a changed configuration does.
        m.configure(SECOND, Some(config));
        assert_eq!(m.execute(SECOND, 1, false), RED);
        m.configure(SECOND, Some(MeterConfig { cir: 2, ..config }));
        assert_eq!(m.execute(SECOND, 1, false), GREEN);
        m.configure(SECOND, None);
        assert_eq!(m.execute(SECOND, 1_000_000, true), GREEN);
    }

    #[test]
    fn a_bucket_never_has_more_tokens_than_its_burst() {
        let mut m = Meter::default();
        m.configure(0, Some(MeterConfig { cir: 1_000, cburst: 3, pir: 1_000, pburst: 3 }));
        let green = (0..10).filter(|_| m.execute(3600 * SECOND, 1, false) == GREEN).count();
        assert_eq!(green, 3);
    }

    /// A token arrives in the microsecond in which it is due. In floating point, 139,000 times 0.049 is less than
    /// 6,811, so the last token would be missing.
    #[test]
    fn a_token_arrives_in_the_microsecond_it_is_due() {
        let mut m = Meter::default();
        let at = |micros: u64| 1_000 * micros;
        m.configure(0, Some(MeterConfig { cir: 49_000, cburst: 6_811, pir: 49_000, pburst: 6_811 }));
        assert_eq!(m.execute(0, 6_811, true), GREEN);
        assert_eq!(m.execute(at(138_999), 6_811, true), RED);
        assert_eq!(m.execute(at(139_000), 6_811, true), GREEN);
    }

    #[test]
    fn an_all_zero_configuration_is_always_red() {
        let mut m = Meter::default();
        m.configure(0, Some(MeterConfig { cir: 0, cburst: 0, pir: 0, pburst: 0 }));
        assert_eq!(m.execute(SECOND, 1, false), RED);
    }

    #[test]
    fn colours_are_counted_by_packets_and_bytes() {
        let mut m = Meter::default();
        m.execute(0, 60, true);
        m.configure(0, Some(MeterConfig { cir: 1, cburst: 100, pir: 1, pburst: 200 }));
        for _ in 0..3 {
            m.execute(0, 80, true);
        }
        let counts = |packets, bytes| CounterData { packets, bytes };
        assert_eq!(m.view().counts, [counts(2, 140), counts(1, 80), counts(1, 80)]);
        m.configure(0, None);
        assert_eq!(m.view().counts[0].packets, 2, "another configuration leaves the counts alone");
        m.clear_counts();
        assert_eq!(m.view().counts, [CounterData::default(); 3]);
    }
}
