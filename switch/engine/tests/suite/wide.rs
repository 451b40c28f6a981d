//! Tests the arithmetic of a compiled program on fields of more than 64 bits.

use crate::common::{Switch, json};
use num_bigint::{BigInt, BigUint, Sign};
use serde_json::Value;
use sluice_engine::Program;

/// A packet of the program `wide.p4`.
#[derive(Clone, Default, PartialEq, Debug)]
struct Packet {
    what: u8,
    by: u8,
    a: u128,
    b: u128,
    c: BigInt,
    d: BigInt,
    /// The value of a field with 72 bits.
    e: u128,
    f: u8,
    /// The values of two fields with 96 bits each.
    items: [u128; 2],
}

/// Returns the value modulo 2^200, read as a signed number of 200 bits in two's complement.
fn int200(v: &BigInt) -> BigInt {
    let modulus = BigInt::from(1) << 200;
    let low: BigInt = v & (&modulus - 1);
    if low.bit(199) { low - modulus } else { low }
}

fn clamped(v: &BigInt) -> BigInt {
    let half = BigInt::from(1) << 199;
    v.clamp(&-&half, &(&half - 1)).clone()
}

impl Packet {
    fn bytes(&self) -> Vec<u8> {
        let signed = |v: &BigInt| {
            let low: BigInt = v & ((BigInt::from(1) << 200) - 1);
            let bytes = low.to_bytes_be().1;
            [vec![0; 25 - bytes.len()], bytes].concat()
        };
        [
            &[self.what, self.by][..],
            &self.a.to_be_bytes(),
            &self.b.to_be_bytes(),
            &signed(&self.c),
            &signed(&self.d),
            &self.e.to_be_bytes()[7..],
            &[self.f],
            &self.items[0].to_be_bytes()[4..],
            &self.items[1].to_be_bytes()[4..],
            b"payload",
        ]
        .concat()
    }

    /// Returns the packet that results from the program's statement with the number `what`.
    fn after(&self) -> Packet {
        let Packet { what, by, a, b, ref c, ref d, e, .. } = *self;
        let mut p = self.clone();
        match what {
            0 => (p.a, p.c) = (a.wrapping_add(b), int200(&(c + d))),
            1 => (p.a, p.c) = (a.wrapping_sub(b), int200(&(c - d))),
            2 => (p.a, p.c) = (a.wrapping_mul(b), int200(&(c * d))),
            3 => (p.a, p.c) = (a.saturating_add(b), clamped(&(c + d))),
            4 => (p.a, p.c) = (a.saturating_sub(b), clamped(&(c - d))),
            5 => (p.a, p.c) = (a.checked_shl(by.into()).unwrap_or(0), int200(&(c << by))),
            6 => (p.a, p.c) = (a.checked_shr(by.into()).unwrap_or(0), c >> by),
            7 => (p.a, p.c) = (!a & (b | e), int200(&((-c - 1) ^ (d & int200(&-c))))),
            8 => (p.a, p.c) = (a.abs_diff(b), int200(&if c < d { d - c } else { c - d })),
            9 => {
                let unsigned = |v: &BigInt| v & ((BigInt::from(1) << 200) - 1);
                p.e = (a >> 28) & ((1 << 72) - 1);
                p.f = u8::from(a > b) | u8::from(c > d) << 1 | u8::from(unsigned(c) >= unsigned(d)) << 2;
            }
            10 => (p.a, p.c) = (a & !(((1 << 72) - 1) << 36) | e << 36, BigInt::from(b as i128)),
            11 => {
                p.f = a.wrapping_add(b).checked_shr(by.into()).unwrap_or(0) as u8;
                p.e = (e + e * u128::from(by)) & ((1 << 72) - 1);
            }
            12 => {
                let item = self.items.get(usize::from(by)).copied().unwrap_or(0);
                p.items[1] = (item * 3 + self.items[0]) & ((1 << 96) - 1);
            }
            13 => p.a = if self.items[0] == self.items[1] { a.wrapping_add(b) } else { a.wrapping_sub(b) },
            _ => {}
        }
        p
    }
}

/// Returns random bytes. In many cases all bytes are zeros or all are ones, so that carries extend over many words.
fn bytes(n: usize, seed: &mut u64) -> Vec<u8> {
    let mut next = || {
        *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*seed >> 33) as u8
    };
    let (kind, same) = (next() % 4, [0, 0xff][usize::from(next() % 2)]);
    (0..n).map(|i| if kind == 0 || kind == 1 && i > 0 { same } else { next() }).collect()
}

fn packet(what: u8, seed: &mut u64) -> Packet {
    let mut unsigned = |n| BigUint::from_bytes_be(&bytes(n, seed));
    let mut small = |n| u128::try_from(unsigned(n)).unwrap();
    let (by, f) = (small(1) as u8, small(1) as u8);
    let (a, b, e, first, second) = (small(16), small(16), small(9), small(12), small(12));
    let mut signed = || int200(&BigInt::from_biguint(Sign::Plus, unsigned(25)));
    let (c, d) = (signed(), signed());
    let second = if f % 2 == 0 { first } else { second };
    let by = if what == 12 { by % 4 } else { by };
    Packet { what, by, a, b, c, d, e, f, items: [first, second] }
}

#[test]
fn every_statement_gives_the_expected_packet() {
    for mut s in Switch::both("wide") {
        let mut seed = 1;
        for what in 0..14 {
            for _ in 0..300 {
                let before = packet(what, &mut seed);
                assert_eq!(s.one(0, &before.bytes()), before.after().bytes(), "{before:x?}");
            }
        }
    }
}

/// Returns the program with `change` applied to all operations of one operator.
fn changed(op: &str, change: impl Fn(&mut Value)) -> Value {
    fn walk(v: &mut Value, op: &str, change: &dyn Fn(&mut Value)) {
        match v {
            Value::Array(items) => items.iter_mut().for_each(|v| walk(v, op, change)),
            Value::Object(map) => map.values_mut().for_each(|v| walk(v, op, change)),
            _ => {}
        }
        if v["op"] == op {
            change(v);
        }
    }
    let mut program: Value = serde_json::from_slice(&json("wide")).unwrap();
    walk(&mut program, op, &change);
    program
}

/// Division rounds towards zero, and division by zero gives 0. The test puts the division into the program's JSON,
/// because p4c refuses a divisor that is not constant, which BMv2 supports.
#[test]
fn division_rounds_towards_zero_and_by_zero_gives_0() {
    let program = changed("*", |v| v["op"] = "/".into());
    for mut s in Switch::both_of(&program) {
        let mut seed = 1;
        for i in 0..600 {
            let mut before = packet(2, &mut seed);
            // The divisors have different numbers of bits.
            before.b >>= i % 128;
            before.d = &before.d >> (i % 200);
            let mut after = before.clone();
            after.a = before.a.checked_div(before.b).unwrap_or(0);
            after.c = if before.d == BigInt::ZERO { BigInt::ZERO } else { int200(&(&before.c / &before.d)) };
            assert_eq!(s.one(0, &before.bytes()), after.bytes(), "{before:x?}");
        }
    }
}

/// A 128-bit value that is shifted by another field may have 131,200 bits. The loader must accept a product of three
/// such values, and refuse a product of four.
#[test]
fn a_program_whose_values_may_become_too_wide_is_refused() {
    let field = |name| serde_json::json!({"type": "field", "value": ["numbers", name]});
    let binary = |op, left: &Value, right: &Value| {
        let value = serde_json::json!({"op": op, "left": left, "right": right});
        serde_json::json!({"type": "expression", "value": value})
    };
    let shifted = binary("<<", &field("a"), &field("b"));
    let load = |factors| {
        let product = (1..factors).fold(shifted.clone(), |p, _| binary("*", &p, &shifted));
        let program = changed(">", |v| v["left"] = product.clone());
        Program::load(&serde_json::to_vec(&program).unwrap()).map(|_| ()).map_err(|e| e.to_string())
    };
    assert_eq!(load(3), Ok(()));
    let refused = load(4).unwrap_err();
    assert!(refused.contains("the expression has a value that may take more than 524288 bits"), "{refused}");
}
