//! BMv2's two-rate three-colour meter, colour-blind.
//!
//! The peak bucket is asked first: too few tokens there is red; then the committed one: too few is yellow. A packet that the
//! peak bucket let pass has paid it even when the committed one turns it yellow. Tokens come in whole numbers, computed from one
//! origin, so that nothing drifts. Unlike BMv2, writing the configuration a meter already has leaves its buckets alone.

use crate::control::MeterConfig;

/// Colours as v1model numbers them.
pub const GREEN: u64 = 0;
pub const YELLOW: u64 = 1;
pub const RED: u64 = 2;

#[derive(Debug, Clone, Copy, Default)]
struct Bucket {
    /// Tokens per microsecond.
    rate: f64,
    burst: u64,
    tokens: u64,
    /// Tokens handed out since the origin.
    given: u64,
}

impl Bucket {
    fn new(rate_per_second: u64, burst: u64) -> Bucket {
        Bucket { rate: rate_per_second as f64 / 1e6, burst, tokens: burst, given: 0 }
    }

    fn take(&mut self, micros: u64, cost: u64) -> bool {
        let given = (micros as f64 * self.rate) as u64;
        self.tokens = self.tokens.saturating_add(given.saturating_sub(self.given)).min(self.burst);
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
pub struct Meter(Option<Configured>);

impl Meter {
    pub fn config(&self) -> Option<MeterConfig> {
        self.0.map(|c| c.config)
    }

    /// `now`: nanoseconds.
    pub fn configure(&mut self, now: u64, config: Option<MeterConfig>) {
        if self.config() != config {
            self.0 = config.map(|config| Configured {
                config,
                origin: now / 1000,
                peak: Bucket::new(config.pir, config.pburst),
                committed: Bucket::new(config.cir, config.cburst),
            });
        }
    }

    /// The colour of a packet that costs so many tokens.
    pub fn execute(&mut self, now: u64, cost: u64) -> u64 {
        let Some(c) = &mut self.0 else { return GREEN };
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
        assert_eq!(m.execute(0, 1), GREEN);
        let config = MeterConfig { cir: 1, cburst: 2, pir: 2, pburst: 4 };
        m.configure(0, Some(config));
        let colours: Vec<_> = (0..6).map(|_| m.execute(0, 1)).collect();
        assert_eq!(colours, [GREEN, GREEN, YELLOW, YELLOW, RED, RED]);
        // after a second: two peak tokens, one committed
        let colours: Vec<_> = (0..3).map(|_| m.execute(SECOND, 1)).collect();
        assert_eq!(colours, [GREEN, YELLOW, RED]);
        // the same configuration does not refill, another one does
        m.configure(SECOND, Some(config));
        assert_eq!(m.execute(SECOND, 1), RED);
        m.configure(SECOND, Some(MeterConfig { cir: 2, ..config }));
        assert_eq!(m.execute(SECOND, 1), GREEN);
        m.configure(SECOND, None);
        assert_eq!(m.execute(SECOND, 1_000_000), GREEN);
    }

    #[test]
    fn a_bucket_never_holds_more_than_its_burst() {
        let mut m = Meter::default();
        m.configure(0, Some(MeterConfig { cir: 1_000, cburst: 3, pir: 1_000, pburst: 3 }));
        let green = (0..10).filter(|_| m.execute(3600 * SECOND, 1) == GREEN).count();
        assert_eq!(green, 3);
    }

    #[test]
    fn an_all_zero_configuration_is_always_red() {
        let mut m = Meter::default();
        m.configure(0, Some(MeterConfig { cir: 0, cburst: 0, pir: 0, pburst: 0 }));
        assert_eq!(m.execute(SECOND, 1), RED);
    }
}
