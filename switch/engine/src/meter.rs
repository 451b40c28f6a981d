//! BMv2's two-rate three-colour meter, colour-blind.
//!
//! The peak bucket is asked first: too few tokens there is red; then the committed one: too few is yellow. A packet that the
//! peak bucket let pass has paid it even when the committed one turns it yellow. Tokens come in whole numbers, computed from one
//! origin, so that nothing drifts. Unlike BMv2, which counts in floating point, a token comes in the microsecond it is due; and
//! writing the configuration a meter already has leaves its buckets alone.

use crate::control::{CounterData, MeterConfig, MeterView};

/// Colours as v1model numbers them.
pub const GREEN: u64 = 0;
pub const YELLOW: u64 = 1;
pub const RED: u64 = 2;

#[derive(Debug, Clone, Copy, Default)]
struct Bucket {
    /// Tokens per second.
    rate: u64,
    burst: u64,
    tokens: u64,
    /// Tokens handed out since the origin.
    given: u128,
}

impl Bucket {
    fn new(rate: u64, burst: u64) -> Bucket {
        Bucket { rate, burst, tokens: burst, given: 0 }
    }

    fn take(&mut self, micros: u64, cost: u64) -> bool {
        let given = u128::from(micros) * u128::from(self.rate) / 1_000_000;
        let held = u128::from(self.tokens) + given.saturating_sub(self.given);
        self.tokens = held.min(u128::from(self.burst)) as u64;
        self.given = given;
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
    /// Microseconds; the buckets were full then.
    origin: u64,
    peak: Bucket,
    committed: Bucket,
}

/// One meter; without a configuration it is always green.
#[derive(Debug, Clone, Copy, Default)]
pub struct Meter {
    configured: Option<Configured>,
    /// What was given each colour, by [`GREEN`], [`YELLOW`] and [`RED`].
    counts: [CounterData; 3],
}

impl Meter {
    pub fn config(&self) -> Option<MeterConfig> {
        self.configured.map(|c| c.config)
    }

    /// `now`: nanoseconds.
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

    /// The configuration, and packets and bytes by colour.
    pub fn view(&self) -> MeterView {
        MeterView { config: self.config(), counts: self.counts }
    }

    /// Sets the counts by colour to zero.
    pub fn clear_counts(&mut self) {
        self.counts = <[CounterData; 3]>::default();
    }

    /// Adds what another one has counted.
    pub fn add_counts(&mut self, other: &Meter) {
        for (own, other) in self.counts.iter_mut().zip(other.counts) {
            own.add(other);
        }
    }

    /// The colour of a packet of so many bytes, which costs its bytes or (`by_bytes` unset) one token.
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
        // after a second: two peak tokens, one committed
        let colours: Vec<_> = (0..3).map(|_| m.execute(SECOND, 1, false)).collect();
        assert_eq!(colours, [GREEN, YELLOW, RED]);
        // the same configuration does not refill, another one does
        m.configure(SECOND, Some(config));
        assert_eq!(m.execute(SECOND, 1, false), RED);
        m.configure(SECOND, Some(MeterConfig { cir: 2, ..config }));
        assert_eq!(m.execute(SECOND, 1, false), GREEN);
        m.configure(SECOND, None);
        assert_eq!(m.execute(SECOND, 1_000_000, true), GREEN);
    }

    #[test]
    fn a_bucket_never_holds_more_than_its_burst() {
        let mut m = Meter::default();
        m.configure(0, Some(MeterConfig { cir: 1_000, cburst: 3, pir: 1_000, pburst: 3 }));
        let green = (0..10).filter(|_| m.execute(3600 * SECOND, 1, false) == GREEN).count();
        assert_eq!(green, 3);
    }

    /// In floating point 139,000 times 0.049 is less than 6,811, and the last token is missing.
    #[test]
    fn a_token_comes_in_the_microsecond_it_is_due() {
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
