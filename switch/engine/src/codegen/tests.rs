//! Compares the results of compiled expressions with those of a reference evaluation.

use std::sync::OnceLock;

use num_bigint::BigInt;
use proptest::prelude::*;
use serde_json::Value;

use super::{Gen, Pool};
use crate::code::Op;
use crate::expr::{BinOp, Expr, Place, random};
use crate::layout::{FieldRef, Layout, Slots, mask64, sign_extend};
use crate::load::json::J;
use crate::machine::Machine;
use crate::options::Options;
use crate::program::Program;
use crate::wide::exact::{eval, write};

/// Width and signedness of the fields that the expressions read: narrow and wide, signed and unsigned.
const FIELDS: [(u32, bool); 10] = [
    (1, false),
    (8, false),
    (13, false),
    (32, false),
    (48, false),
    (64, false),
    (8, true),
    (64, true),
    (65, false),
    (128, false),
];

fn field(i: usize) -> FieldRef {
    let slot = FIELDS[..i].iter().map(|f| if f.0 > 64 { 2 } else { 1 }).sum();
    let (width, signed) = FIELDS[i];
    FieldRef { slot, width, signed, varbit: false }
}

fn leaf() -> impl Strategy<Value = Expr> {
    prop_oneof![
        4 => (0..FIELDS.len()).prop_map(|i| Expr::Field(field(i))),
        1 => any::<i8>().prop_map(|n| Expr::Const(n.into())),
        1 => any::<u64>().prop_map(|n| Expr::Const(n.into())),
        1 => any::<u128>().prop_map(|n| Expr::Const(n.into())),
        2 => (1u32..=70).prop_map(|n| Expr::Const((BigInt::from(1) << n) - 1)),
    ]
}

fn expr() -> impl Strategy<Value = Expr> {
    let amount = prop_oneof![
        (0u32..140).prop_map(|k| Expr::Const(k.into())),
        (0..7usize).prop_map(|i| {
            Expr::Bin(BinOp::And, Box::new(Expr::Field(field(i))), Box::new(Expr::Const(0x7f.into())))
        })
    ];
    random::expr(leaf(), amount, 80)
}

fn slots() -> Box<Slots> {
    let row: Box<[u64]> = vec![0; 65_536].into_boxed_slice();
    row.try_into().unwrap()
}

/// Returns a program for the machine. The tested expressions do not use the program.
fn program() -> &'static Program {
    static PROGRAM: OnceLock<Program> = OnceLock::new();
    PROGRAM.get_or_init(|| Program::load(include_bytes!("../../tests/p4/selector.json")).unwrap())
}

/// Runs the code that `make` generates, with `values` in the first slots.
fn run(values: &[u64], make: impl FnOnce(&mut Gen)) -> Box<Slots> {
    let mut layout = Layout { used: 100, ..Layout::default() };
    let mut pool = Pool::default();
    let json = Value::Null;
    let mut g = Gen::new(&mut layout, &mut pool, false, J::root(&json));
    make(&mut g);
    g.emit(Op::Return);
    let code = g.code;
    let mut s = slots();
    s[..values.len()].copy_from_slice(values);
    for &(slot, value) in &pool.init {
        s[usize::from(slot)] = value;
    }
    let p = program();
    let mut m = Machine::new(p, Options::default());
    m.wide = vec![0; pool.wide];
    m.run(p, &code, &mut s, 0, &[]).unwrap();
    s
}

/// Cuts random values to the widths of the fields.
fn fit(raw: &[u64]) -> Vec<u64> {
    let mut out = vec![0; 12];
    for (i, &(width, signed)) in FIELDS.iter().enumerate() {
        let f = field(i);
        let at = usize::from(f.slot);
        let v = raw[at] & mask64(width.min(64));
        out[at] = if signed { sign_extend(v, width) } else { v };
        if width > 64 {
            out[at + 1] = raw[at + 1] & mask64(width - 64);
        }
    }
    out
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]
    #[test]
    fn assignments_are_exact(
        e in expr(),
        raw in proptest::collection::vec(prop_oneof![Just(0u64), Just(u64::MAX), any::<u64>(), 0u64..300], 12),
        (width, signed) in prop_oneof![(1u32..=64, Just(false)), (2u32..=64, Just(true)), (65u32..=130, Just(false))],
    ) {
        let values = fit(&raw);
        let d = FieldRef { slot: 20, width, signed, varbit: false };
        let s = run(&values, |g| g.assign(&Place::Field(d), &e).unwrap());
        let mut expected = slots();
        expected[..12].copy_from_slice(&values);
        let v = eval(&e, &expected);
        write(&mut expected, d, &v);
        prop_assert_eq!(&s[..30], &expected[..30]);
    }

    /// Assigns an expression to a field that the expression may read.
    #[test]
    fn a_field_can_be_assigned_from_itself(
        e in expr(),
        raw in proptest::collection::vec(any::<u64>(), 12),
        i in 0..FIELDS.len(),
    ) {
        let values = fit(&raw);
        let s = run(&values, |g| g.assign(&Place::Field(field(i)), &e).unwrap());
        let mut expected = slots();
        expected[..12].copy_from_slice(&values);
        let v = eval(&e, &expected);
        write(&mut expected, field(i), &v);
        prop_assert_eq!(&s[..12], &expected[..12]);
    }

    /// Compiles assignments in p4c's form of `left = left << k` and of `left = word ++ zeros`. They must not need the
    /// exact arithmetic on several words.
    #[test]
    fn wide_fields_move_word_by_word(
        raw in proptest::collection::vec(any::<u64>(), 6),
        (from, to, k) in (1u32..=384, 65u32..=384, 0u32..400),
        itself in any::<bool>(),
    ) {
        let to = if itself { from.max(65) } else { to };
        let from = if itself { to } else { from };
        let a = FieldRef { slot: 0, width: from, signed: false, varbit: false };
        let d = FieldRef { slot: if itself { 0 } else { 20 }, width: to, signed: false, varbit: false };
        let mut values = raw;
        values.truncate(a.limbs());
        *values.last_mut().unwrap() &= mask64(from - 64 * (a.limbs() as u32 - 1));
        let ones = || Box::new(Expr::Const((BigInt::from(1) << to) - 1));
        let moved = Expr::Bin(BinOp::Shl, Box::new(Expr::Bin(BinOp::And, Box::new(Expr::Field(a)), ones())), Box::new(Expr::Const(k.into())));
        let e = Expr::Bin(BinOp::Or, Box::new(Expr::Bin(BinOp::And, Box::new(moved), ones())), Box::new(Expr::Const(0.into())));
        let s = run(&values, |g| {
            g.assign(&Place::Field(d), &e).unwrap();
            assert!(g.code.ext.is_empty(), "compiled to arithmetic on several words");
        });
        let mut expected = slots();
        expected[..values.len()].copy_from_slice(&values);
        let v = eval(&e, &expected);
        write(&mut expected, d, &v);
        prop_assert_eq!(&s[..30], &expected[..30]);
    }

    #[test]
    fn branches_follow_the_condition(e in expr(), raw in proptest::collection::vec(0u64..5, 12)) {
        let values = fit(&raw);
        let e = if e.is_bool() { e } else { Expr::ToBool(Box::new(e)) };
        let mark = FieldRef { slot: 20, width: 8, signed: false, varbit: false };
        let s = run(&values, |g| {
            let jumps = g.branch_unless(&e, true).unwrap();
            g.assign_field(mark, &Expr::Const(1.into())).unwrap();
            let end = g.jump();
            for at in jumps {
                g.patch_here(at);
            }
            g.assign_field(mark, &Expr::Const(2.into())).unwrap();
            g.patch_here(end);
        });
        let mut before = slots();
        before[..12].copy_from_slice(&values);
        let holds = eval(&e, &before) != BigInt::ZERO;
        prop_assert_eq!(s[20], if holds { 1 } else { 2 });
    }
}
