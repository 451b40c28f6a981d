//! Compares meters over time with an exact model of BMv2's two-rate three-colour meter.

use crate::common::Switch;
use proptest::prelude::*;
use sluice_engine::MeterConfig;

/// The offset of the last byte of `answer_h.value` in a frame without options.
const VALUE: usize = 19;

/// A bucket of the model. Its tokens are added individually.
struct Bucket {
    rate: u64,
    burst: u64,
    tokens: u64,
    /// The number of the token that will be added next.
    next: u64,
}

impl Bucket {
    fn new(rate: u64, burst: u64) -> Bucket {
        Bucket { rate, burst, tokens: burst, next: 1 }
    }

    /// Adds the tokens that are due at `micros` and takes `cost` tokens, if there are enough. The n-th token is added
    /// in the first microsecond that is not before n / rate seconds. A token that does not fit into the bucket is lost.
    fn take(&mut self, micros: u64, cost: u64) -> bool {
        while self.rate > 0 && (1_000_000 * self.next).div_ceil(self.rate) <= micros {
            self.tokens = (self.tokens + 1).min(self.burst);
            self.next += 1;
        }
        let enough = self.tokens >= cost;
        if enough {
            self.tokens -= cost;
        }
        enough
    }
}

/// A model of a meter. A packet takes its tokens first from the peak bucket. These tokens remain consumed if the packet
/// is yellow. A red packet takes no tokens from the committed bucket.
struct Model {
    peak: Bucket,
    committed: Bucket,
}

impl Model {
    fn new(config: MeterConfig) -> Model {
        Model { peak: Bucket::new(config.pir, config.pburst), committed: Bucket::new(config.cir, config.cburst) }
    }

    fn colour(&mut self, micros: u64, cost: u64) -> u8 {
        if self.peak.take(micros, cost) { u8::from(!self.committed.take(micros, cost)) } else { 2 }
    }
}

fn config() -> impl Strategy<Value = MeterConfig> {
    (0u64..200_000, 0u64..200_000, 1u64..3000, 0u64..3000).prop_map(
        |(cir, rate_difference, cburst, burst_difference)| MeterConfig {
            cir,
            cburst,
            pir: cir + rate_difference,
            pburst: cburst + burst_difference,
        },
    )
}

fn colour_of(s: &mut Switch, micros: u64, what: u8, length: usize) -> u8 {
    let mut frame = vec![what, 0, 0, 0, 0, 0];
    frame.resize(length, 0);
    s.one(1000 * micros, &frame)[VALUE]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn colours_of_packets_and_bytes(
        config in config(),
        packets in proptest::collection::vec((0u64..5000, 20usize..1500), 1..200),
    ) {
        for (name, what, bytes) in [("I.rate", 5, false), ("I.byte_rate", 6, true)] {
            let mut s = Switch::new("arrays");
            let meter = s.program.meter(name).unwrap();
            s.engine.meter_write(0, meter, 0, Some(config)).unwrap();
            let mut model = Model::new(config);
            let mut micros = 0;
            for &(wait, length) in &packets {
                micros += wait;
                let cost = if bytes { length as u64 } else { 1 };
                prop_assert_eq!(colour_of(&mut s, micros, what, length), model.colour(micros, cost), "{} at {} us", name, micros);
            }
        }
    }
}
