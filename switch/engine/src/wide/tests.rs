//! Compares compiled expressions and their exact evaluation with each other and with values that were computed by hand.

use num_bigint::{BigInt, Sign};
use proptest::prelude::*;

use super::Wide;
use super::exact::{eval, write};
use crate::expr::{BinOp, CmpOp, Expr, random};
use crate::layout::{FieldRef, Slots};

/// For each computation: the width and the signedness of the fields of both operands and of the result, then the
/// operator, the operands and the result. The result of a comparison has one bit in any case.
#[rustfmt::skip]
const VALUES: [(u32, bool, &str, &str, &str, &str); 205] = [
    (1, false, "+", "1", "1", "0"),
    (1, false, "-", "0", "1", "1"),
    (1, false, "*", "1", "1", "1"),
    (1, false, "/", "1", "1", "1"),
    (1, false, "%", "1", "1", "0"),
    (1, false, "&", "1", "0", "0"),
    (1, false, "|", "1", "0", "1"),
    (1, false, "^", "1", "1", "0"),
    (1, false, "<<", "1", "1", "0"),
    (1, false, ">>", "1", "1", "0"),
    (1, false, "~", "0", "0", "1"),
    (1, false, "|+|", "1", "1", "1"),
    (1, false, "|-|", "0", "1", "0"),
    (1, false, "<", "0", "1", "1"),
    (1, false, "==", "1", "1", "1"),
    (1, false, "min", "1", "0", "0"),
    (1, true, "+", "-1", "-1", "0"),
    (1, true, "-", "0", "-1", "-1"),
    (1, true, "*", "-1", "-1", "-1"),
    (1, true, "~", "0", "0", "-1"),
    (1, true, "|+|", "-1", "-1", "-1"),
    (1, true, "|-|", "0", "-1", "0"),
    (1, true, "<", "-1", "0", "1"),
    (1, true, ">>", "-1", "0", "-1"),
    (8, false, "+", "ff", "2", "1"),
    (8, false, "-", "1", "2", "ff"),
    (8, false, "*", "10", "11", "10"),
    (8, false, "/", "c8", "7", "1c"),
    (8, false, "%", "c8", "7", "4"),
    (8, false, "/", "c8", "0", "0"),
    (8, false, "%", "c8", "0", "0"),
    (8, false, "&", "f0", "3c", "30"),
    (8, false, "|", "f0", "c", "fc"),
    (8, false, "^", "ff", "f", "f0"),
    (8, false, "<<", "81", "1", "2"),
    (8, false, "<<", "81", "8", "0"),
    (8, false, ">>", "81", "1", "40"),
    (8, false, ">>", "81", "ff", "0"),
    (8, false, "~", "5a", "0", "a5"),
    (8, false, "|+|", "c8", "37", "ff"),
    (8, false, "|+|", "c8", "38", "ff"),
    (8, false, "|-|", "5", "6", "0"),
    (8, false, "|-|", "6", "5", "1"),
    (8, false, "==", "5", "5", "1"),
    (8, false, "!=", "5", "5", "0"),
    (8, false, "<", "5", "5", "0"),
    (8, false, "<=", "5", "5", "1"),
    (8, false, ">", "ff", "1", "1"),
    (8, false, ">=", "1", "ff", "0"),
    (8, false, "and", "4", "0", "0"),
    (8, false, "or", "4", "0", "1"),
    (8, false, "not", "4", "0", "0"),
    (8, false, "min", "ff", "1", "1"),
    (8, false, "int", "80", "0", "80"),
    (8, true, "+", "7f", "1", "-80"),
    (8, true, "-", "-80", "1", "7f"),
    (8, true, "*", "-80", "-1", "-80"),
    (8, true, "/", "-7", "2", "-3"),
    (8, true, "%", "-7", "2", "-1"),
    (8, true, "&", "-1", "f", "f"),
    (8, true, "|", "-80", "1", "-7f"),
    (8, true, "^", "-1", "f", "-10"),
    (8, true, "<<", "40", "1", "-80"),
    (8, true, ">>", "-80", "1", "-40"),
    (8, true, ">>", "-1", "7", "-1"),
    (8, true, "~", "7f", "0", "-80"),
    (8, true, "|+|", "7f", "1", "7f"),
    (8, true, "|+|", "-3", "-4", "-7"),
    (8, true, "|+|", "-80", "-1", "-80"),
    (8, true, "|-|", "-80", "1", "-80"),
    (8, true, "|-|", "7f", "-1", "7f"),
    (8, true, "|-|", "3", "-4", "7"),
    (8, true, "<", "-1", "0", "1"),
    (8, true, ">", "-1", "0", "0"),
    (8, true, "<=", "-80", "7f", "1"),
    (8, true, ">=", "-80", "7f", "0"),
    (8, true, "min", "-1", "1", "-1"),
    (8, true, "int", "-80", "0", "-80"),
    (32, false, "+", "ffffffff", "1", "0"),
    (32, false, "-", "0", "1", "ffffffff"),
    (32, false, "*", "10000", "10000", "0"),
    (32, false, "*", "10001", "10001", "20001"),
    (32, false, "/", "ffffffff", "10000", "ffff"),
    (32, false, "%", "ffffffff", "10000", "ffff"),
    (32, false, "&", "ffffffff", "ff00ff00", "ff00ff00"),
    (32, false, "|", "ffff0000", "ff", "ffff00ff"),
    (32, false, "^", "ffff0000", "ffffffff", "ffff"),
    (32, false, "<<", "80000001", "1", "2"),
    (32, false, ">>", "80000001", "1f", "1"),
    (32, false, "~", "12345678", "0", "edcba987"),
    (32, false, "|+|", "80000000", "80000000", "ffffffff"),
    (32, false, "|-|", "1", "2", "0"),
    (32, false, "<", "7fffffff", "80000000", "1"),
    (32, true, "+", "7fffffff", "1", "-80000000"),
    (32, true, "-", "-80000000", "1", "7fffffff"),
    (32, true, "*", "-10000", "8000", "-80000000"),
    (32, true, "/", "-80000000", "-1", "-80000000"),
    (32, true, "%", "-5", "3", "-2"),
    (32, true, "~", "0", "0", "-1"),
    (32, true, "|+|", "7fffffff", "7fffffff", "7fffffff"),
    (32, true, "|-|", "-80000000", "7fffffff", "-80000000"),
    (32, true, ">>", "-80000000", "1f", "-1"),
    (32, true, "<", "7fffffff", "-80000000", "0"),
    (64, false, "+", "ffffffffffffffff", "ffffffffffffffff", "fffffffffffffffe"),
    (64, false, "-", "0", "ffffffffffffffff", "1"),
    (64, false, "*", "ffffffffffffffff", "ffffffffffffffff", "1"),
    (64, false, "/", "ffffffffffffffff", "3", "5555555555555555"),
    (64, false, "%", "ffffffffffffffff", "10", "f"),
    (64, false, "&", "ffffffffffffffff", "8000000000000000", "8000000000000000"),
    (64, false, "|", "8000000000000000", "1", "8000000000000001"),
    (64, false, "^", "ffffffffffffffff", "aaaaaaaaaaaaaaaa", "5555555555555555"),
    (64, false, "<<", "1", "3f", "8000000000000000"),
    (64, false, "<<", "1", "40", "0"),
    (64, false, ">>", "8000000000000000", "3f", "1"),
    (64, false, "~", "0", "0", "ffffffffffffffff"),
    (64, false, "|+|", "ffffffffffffffff", "1", "ffffffffffffffff"),
    (64, false, "|-|", "0", "1", "0"),
    (64, false, "<", "7fffffffffffffff", "8000000000000000", "1"),
    (64, true, "+", "7fffffffffffffff", "1", "-8000000000000000"),
    (64, true, "-", "-8000000000000000", "1", "7fffffffffffffff"),
    (64, true, "*", "-8000000000000000", "-1", "-8000000000000000"),
    (64, true, "/", "-8000000000000000", "2", "-4000000000000000"),
    (64, true, "~", "7fffffffffffffff", "0", "-8000000000000000"),
    (64, true, "|+|", "7fffffffffffffff", "1", "7fffffffffffffff"),
    (64, true, "|-|", "-8000000000000000", "1", "-8000000000000000"),
    (64, true, ">>", "-8000000000000000", "3f", "-1"),
    (64, true, "<", "-8000000000000000", "7fffffffffffffff", "1"),
    (65, false, "+", "1ffffffffffffffff", "1", "0"),
    (65, false, "+", "ffffffffffffffff", "1", "10000000000000000"),
    (65, false, "-", "0", "1", "1ffffffffffffffff"),
    (65, false, "*", "10000000000000000", "2", "0"),
    (65, false, "*", "100000000", "100000000", "10000000000000000"),
    (65, false, "/", "10000000000000000", "2", "8000000000000000"),
    (65, false, "%", "10000000000000000", "3", "1"),
    (65, false, "&", "1ffffffffffffffff", "10000000000000000", "10000000000000000"),
    (65, false, "|", "10000000000000000", "1", "10000000000000001"),
    (65, false, "^", "1ffffffffffffffff", "ffffffffffffffff", "10000000000000000"),
    (65, false, "<<", "1", "40", "10000000000000000"),
    (65, false, "<<", "1", "41", "0"),
    (65, false, ">>", "10000000000000000", "40", "1"),
    (65, false, "~", "0", "0", "1ffffffffffffffff"),
    (65, false, "|+|", "1ffffffffffffffff", "1", "1ffffffffffffffff"),
    (65, false, "|-|", "1", "10000000000000000", "0"),
    (65, false, "<", "ffffffffffffffff", "10000000000000000", "1"),
    (65, false, "==", "10000000000000000", "0", "0"),
    (65, true, "+", "ffffffffffffffff", "1", "-10000000000000000"),
    (65, true, "-", "-10000000000000000", "1", "ffffffffffffffff"),
    (65, true, "*", "-10000000000000000", "-1", "-10000000000000000"),
    (65, true, "/", "-10000000000000000", "2", "-8000000000000000"),
    (65, true, "%", "-10000000000000000", "3", "-1"),
    (65, true, "~", "ffffffffffffffff", "0", "-10000000000000000"),
    (65, true, "|+|", "ffffffffffffffff", "ffffffffffffffff", "ffffffffffffffff"),
    (65, true, "|-|", "-10000000000000000", "1", "-10000000000000000"),
    (65, true, ">>", "-10000000000000000", "40", "-1"),
    (65, true, "<", "-10000000000000000", "ffffffffffffffff", "1"),
    (128, false, "+", "ffffffffffffffffffffffffffffffff", "2", "1"),
    (128, false, "-", "0", "ffffffffffffffffffffffffffffffff", "1"),
    (128, false, "*", "10000000000000000", "10000000000000000", "0"),
    (128, false, "*", "ffffffffffffffff", "ffffffffffffffff", "fffffffffffffffe0000000000000001"),
    (128, false, "/", "ffffffffffffffffffffffffffffffff", "5", "33333333333333333333333333333333"),
    (128, false, "%", "ffffffffffffffffffffffffffffffff", "10000000000000000", "ffffffffffffffff"),
    (128, false, "&", "ffffffffffffffffffffffffffffffff", "ffffffffffffffff0000000000000000", "ffffffffffffffff0000000000000000"),
    (128, false, "|", "ffffffffffffffff0000000000000000", "ffffffffffffffff", "ffffffffffffffffffffffffffffffff"),
    (128, false, "^", "ffffffffffffffffffffffffffffffff", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "55555555555555555555555555555555"),
    (128, false, "<<", "1", "7f", "80000000000000000000000000000000"),
    (128, false, "<<", "1", "80", "0"),
    (128, false, ">>", "80000000000000000000000000000000", "7f", "1"),
    (128, false, "~", "0", "0", "ffffffffffffffffffffffffffffffff"),
    (128, false, "|+|", "80000000000000000000000000000000", "80000000000000000000000000000000", "ffffffffffffffffffffffffffffffff"),
    (128, false, "|-|", "fffffffffffffffffffffffffffffffe", "ffffffffffffffffffffffffffffffff", "0"),
    (128, false, ">", "80000000000000000000000000000000", "7fffffffffffffffffffffffffffffff", "1"),
    (128, true, "+", "7fffffffffffffffffffffffffffffff", "1", "-80000000000000000000000000000000"),
    (128, true, "-", "-80000000000000000000000000000000", "1", "7fffffffffffffffffffffffffffffff"),
    (128, true, "*", "-80000000000000000000000000000000", "-1", "-80000000000000000000000000000000"),
    (128, true, "/", "-80000000000000000000000000000000", "10", "-8000000000000000000000000000000"),
    (128, true, "~", "-1", "0", "0"),
    (128, true, "|+|", "7fffffffffffffffffffffffffffffff", "1", "7fffffffffffffffffffffffffffffff"),
    (128, true, "|-|", "-80000000000000000000000000000000", "7fffffffffffffffffffffffffffffff", "-80000000000000000000000000000000"),
    (128, true, ">>", "-80000000000000000000000000000000", "7f", "-1"),
    (128, true, ">", "8", "-80000000000000000000000000000000", "1"),
    (200, false, "+", "ffffffffffffffffffffffffffffffffffffffffffffffffff", "1", "0"),
    (200, false, "-", "0", "1", "ffffffffffffffffffffffffffffffffffffffffffffffffff"),
    (200, false, "*", "10000000000000000000000000", "10000000000000000000000000", "0"),
    (200, false, "*", "1000000000000000000000000", "10000000000000000000000000", "10000000000000000000000000000000000000000000000000"),
    (200, false, "/", "ffffffffffffffffffffffffffffffffffffffffffffffffff", "3", "55555555555555555555555555555555555555555555555555"),
    (200, false, "%", "10000000000000000000000000000000000000000000000000", "10000000000000000000000001", "f000000000000000000000001"),
    (200, false, "&", "ffffffffffffffffffffffffffffffffffffffffffffffffff", "f0000000000000000000000000000000000000000000000000", "f0000000000000000000000000000000000000000000000000"),
    (200, false, "|", "80000000000000000000000000000000000000000000000000", "1", "80000000000000000000000000000000000000000000000001"),
    (200, false, "^", "ffffffffffffffffffffffffffffffffffffffffffffffffff", "cccccccccccccccccccccccccccccccccccccccccccccccccc", "33333333333333333333333333333333333333333333333333"),
    (200, false, "<<", "1", "c7", "80000000000000000000000000000000000000000000000000"),
    (200, false, "<<", "1", "c8", "0"),
    (200, false, ">>", "80000000000000000000000000000000000000000000000000", "c7", "1"),
    (200, false, "~", "0", "0", "ffffffffffffffffffffffffffffffffffffffffffffffffff"),
    (200, false, "|+|", "ffffffffffffffffffffffffffffffffffffffffffffffffff", "1", "ffffffffffffffffffffffffffffffffffffffffffffffffff"),
    (200, false, "|-|", "0", "ffffffffffffffffffffffffffffffffffffffffffffffffff", "0"),
    (200, false, "<", "7fffffffffffffffffffffffffffffffffffffffffffffffff", "80000000000000000000000000000000000000000000000000", "1"),
    (200, true, "+", "7fffffffffffffffffffffffffffffffffffffffffffffffff", "1", "-80000000000000000000000000000000000000000000000000"),
    (200, true, "-", "-80000000000000000000000000000000000000000000000000", "1", "7fffffffffffffffffffffffffffffffffffffffffffffffff"),
    (200, true, "*", "-80000000000000000000000000000000000000000000000000", "-1", "-80000000000000000000000000000000000000000000000000"),
    (200, true, "/", "-80000000000000000000000000000000000000000000000000", "-2", "40000000000000000000000000000000000000000000000000"),
    (200, true, "~", "7fffffffffffffffffffffffffffffffffffffffffffffffff", "0", "-80000000000000000000000000000000000000000000000000"),
    (200, true, "|+|", "7fffffffffffffffffffffffffffffffffffffffffffffffff", "7fffffffffffffffffffffffffffffffffffffffffffffffff", "7fffffffffffffffffffffffffffffffffffffffffffffffff"),
    (200, true, "|-|", "-80000000000000000000000000000000000000000000000000", "1", "-80000000000000000000000000000000000000000000000000"),
    (200, true, ">>", "-80000000000000000000000000000000000000000000000000", "c7", "-1"),
    (200, true, "<", "-80000000000000000000000000000000000000000000000000", "0", "1"),
];

fn number(text: &str) -> BigInt {
    BigInt::parse_bytes(text.as_bytes(), 16).unwrap_or_else(|| panic!("{text}"))
}

fn zeros() -> Box<Slots> {
    vec![0; 65_536].into_boxed_slice().try_into().unwrap()
}

/// Runs a compiled assignment with arbitrary values in the scratch words.
fn run(e: &Expr, d: FieldRef, slots: &mut Slots) {
    let wide = Wide::new(e, d).unwrap();
    wide.run(slots, &mut vec![0xabcd_ef01_2345_6789; wide.scratch]);
}

/// Returns the expression for an operator of a program, and whether the expression's result is a truth value.
fn expression(op: &str, a: Expr, b: Expr, width: u32, signed: bool) -> (Expr, bool) {
    let (a, b) = (Box::new(a), Box::new(b));
    let saturated = |e: Expr| {
        let e = Box::new(e);
        if signed { Expr::SatSigned(e, width) } else { Expr::SatUnsigned(e, width) }
    };
    let value = |e: Expr| (e, false);
    let truth = |e: Expr| (e, true);
    match op {
        "+" => value(Expr::Bin(BinOp::Add, a, b)),
        "-" => value(Expr::Bin(BinOp::Sub, a, b)),
        "*" => value(Expr::Bin(BinOp::Mul, a, b)),
        "/" => value(Expr::Bin(BinOp::Div, a, b)),
        "%" => value(Expr::Bin(BinOp::Mod, a, b)),
        "&" => value(Expr::Bin(BinOp::And, a, b)),
        "|" => value(Expr::Bin(BinOp::Or, a, b)),
        "^" => value(Expr::Bin(BinOp::Xor, a, b)),
        "<<" => value(Expr::Bin(BinOp::Shl, a, b)),
        ">>" => value(Expr::Bin(BinOp::Shr, a, b)),
        "~" => value(Expr::BitNot(a)),
        "|+|" => value(saturated(Expr::Bin(BinOp::Add, a, b))),
        "|-|" => value(saturated(Expr::Bin(BinOp::Sub, a, b))),
        "int" => value(Expr::Wrap(a, width)),
        "min" => value(Expr::Select(Box::new(Expr::Cmp(CmpOp::Lt, a.clone(), b.clone())), a, b)),
        "==" => truth(Expr::Cmp(CmpOp::Eq, a, b)),
        "!=" => truth(Expr::Cmp(CmpOp::Ne, a, b)),
        "<" => truth(Expr::Cmp(CmpOp::Lt, a, b)),
        "<=" => truth(Expr::Cmp(CmpOp::Le, a, b)),
        ">" => truth(Expr::Cmp(CmpOp::Gt, a, b)),
        ">=" => truth(Expr::Cmp(CmpOp::Ge, a, b)),
        "and" => truth(Expr::And(Box::new(Expr::ToBool(a)), Box::new(Expr::ToBool(b)))),
        "or" => truth(Expr::Or(Box::new(Expr::ToBool(a)), Box::new(Expr::ToBool(b)))),
        "not" => truth(Expr::Not(Box::new(Expr::ToBool(a)))),
        other => panic!("{other}"),
    }
}

#[test]
fn operators_give_the_values_worked_out_by_hand() {
    for row @ (width, signed, op, a, b, result) in VALUES {
        let mut slots = zeros();
        let at = |slot| FieldRef { slot, width, signed, varbit: false };
        let (a_at, b_at, mut d) = (at(10), at(20), at(30));
        write(&mut slots, a_at, &number(a));
        write(&mut slots, b_at, &number(b));
        assert_eq!(a_at.exact(&slots), number(a), "{row:?}: a");
        // The distance of a shift may be too large for the field `b`; then it is a constant in the expression.
        let fits = b_at.exact(&slots) == number(b);
        assert!(fits || ["<<", ">>"].contains(&op), "{row:?}: b");
        let b = if fits { Expr::Field(b_at) } else { Expr::Const(number(b)) };
        let (e, truth) = expression(op, Expr::Field(a_at), b, width, signed);
        if truth {
            d = FieldRef { width: 1, signed: false, ..d };
        }
        let mut expected = slots.clone();
        let v = eval(&e, &slots);
        write(&mut expected, d, &v);
        assert_eq!(d.exact(&expected), number(result), "{row:?}");
        // No words after the destination are written.
        assert!(expected[30 + d.limbs()..].iter().all(|&v| v == 0), "{row:?}");
        run(&e, d, &mut slots);
        assert_eq!(slots, expected, "{row:?}");
    }
}

/// Casts values to a type of another width and sign: the value wraps, or is clamped to the bounds of the type.
#[test]
fn casts_between_signed_and_unsigned() {
    let cast = |make: fn(Box<Expr>, u32) -> Expr, value: &str, width: u32| {
        let mut slots = zeros();
        let e = make(Box::new(Expr::Const(number(value))), width);
        let v = eval(&e, &slots);
        // The destination has one bit more than the cast's width, so that the sign of the result is visible.
        let d = FieldRef { slot: 30, width: width + 1, signed: true, varbit: false };
        run(&e, d, &mut slots);
        assert_eq!(d.exact(&slots), v, "{value} to {width}");
        v
    };
    for (value, width, wrapped, signed, unsigned) in [
        ("1", 1, "-1", "0", "1"),
        ("-2", 1, "0", "-1", "0"),
        ("80", 8, "-80", "7f", "80"),
        ("17f", 8, "7f", "7f", "ff"),
        ("-81", 8, "7f", "-80", "0"),
        ("80000000", 32, "-80000000", "7fffffff", "80000000"),
        ("8000000000000000", 64, "-8000000000000000", "7fffffffffffffff", "8000000000000000"),
        ("-8000000000000001", 64, "7fffffffffffffff", "-8000000000000000", "0"),
        ("10000000000000000", 65, "-10000000000000000", "ffffffffffffffff", "10000000000000000"),
        ("20000000000000000", 65, "0", "ffffffffffffffff", "1ffffffffffffffff"),
        (
            "ffffffffffffffffffffffffffffffff",
            128,
            "-1",
            "7fffffffffffffffffffffffffffffff",
            "ffffffffffffffffffffffffffffffff",
        ),
    ] {
        assert_eq!(cast(Expr::Wrap, value, width), number(wrapped), "{value} wrapped to {width}");
        assert_eq!(cast(Expr::SatSigned, value, width), number(signed), "{value} clamped to int<{width}>");
        assert_eq!(cast(Expr::SatUnsigned, value, width), number(unsigned), "{value} clamped to bit<{width}>");
    }
}

/// Generates words that are likely to reveal errors in carries and signs.
fn word() -> impl Strategy<Value = u64> {
    prop_oneof![2 => Just(0), 2 => Just(u64::MAX), 1 => Just(1 << 63), 1 => 0u64..300, 3 => any::<u64>()]
}

fn number_of(words: Vec<u64>, negative: bool) -> BigInt {
    let digits = words.into_iter().flat_map(|v| [v as u32, (v >> 32) as u32]).collect();
    BigInt::new(if negative { Sign::Minus } else { Sign::Plus }, digits)
}

/// Generates fields of any width and signedness, with values.
fn fields() -> impl Strategy<Value = Vec<(FieldRef, BigInt)>> {
    let width = prop_oneof![1u32..=70, 120u32..=136, 1u32..=512];
    let words = proptest::collection::vec(word(), 8);
    proptest::collection::vec((width, any::<bool>(), words), 1..6).prop_map(|fields| {
        let at = |(i, (width, signed, words)): (u16, _)| {
            (FieldRef { slot: 100 + 10 * i, width, signed, varbit: false }, number_of(words, false))
        };
        (0..).zip(fields).map(at).collect()
    })
}

/// Generates an expression over the fields.
fn expression_of(fields: &[(FieldRef, BigInt)]) -> impl Strategy<Value = Expr> + use<> {
    let field = proptest::sample::select(fields.iter().map(|f| Expr::Field(f.0)).collect::<Vec<_>>());
    let constant = prop_oneof![
        (proptest::collection::vec(word(), 0..5), any::<bool>()).prop_map(|(w, negative)| number_of(w, negative)),
        (1u32..=300, -1i32..=1).prop_map(|(n, less)| (BigInt::from(1) << n) + less),
        (1u32..=300).prop_map(|n| -(BigInt::from(1) << n)),
    ];
    let leaf = prop_oneof![3 => field.clone(), 2 => constant.prop_map(Expr::Const)];
    let small = |e: Expr| Expr::Bin(BinOp::And, Box::new(e), Box::new(Expr::Const(0x1ff.into())));
    let amount = prop_oneof![
        8 => (0u32..600).prop_map(|k| Expr::Const(k.into())),
        8 => field.clone().prop_map(small),
        // Any shift amount, including negative amounts and amounts larger than an operand's width in bits.
        1 => field,
        1 => any::<i64>().prop_map(|k| Expr::Const(k.into())),
    ];
    random::expr(leaf, amount, 512)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 5000, max_global_rejects: 5000, ..ProptestConfig::default() })]
    #[test]
    fn compiled_expressions_are_exact(
        (fields, e) in fields().prop_flat_map(|fields| {
            let e = expression_of(&fields);
            (Just(fields), e)
        }),
        width in prop_oneof![1u32..=512, Just(64), Just(128), Just(4000)],
        signed: bool,
    ) {
        let d = FieldRef { slot: 30, width, signed, varbit: false };
        // Skip expressions that the compiler refuses: sums and products of values shifted by the maximum distance.
        let wide = Wide::new(&e, d);
        prop_assume!(wide.is_ok());
        let mut slots = zeros();
        for (f, value) in &fields {
            write(&mut slots, *f, value);
        }
        let mut expected = slots.clone();
        let v = eval(&e, &slots);
        write(&mut expected, d, &v);
        run(&e, d, &mut slots);
        prop_assert!(slots == expected, "{:x} instead of {:x}", d.exact(&slots), d.exact(&expected));
    }
}

/// Computes with the smallest and the largest values of fields whose widths are near multiples of 64 bits. The results
/// must be exact, which shows that the bounds of values suffice.
#[test]
fn extremes_fit_their_rows() {
    use BinOp::{Add, And, Div, Mod, Mul, Or, Sub, Xor};
    let extremes = |f: FieldRef| match (BigInt::from(1) << (f.width - u32::from(f.signed)), f.signed) {
        (top, true) => [-&top, top - 1],
        (top, false) => [BigInt::ZERO, top - 1],
    };
    let at = |slot, width, signed| FieldRef { slot, width, signed, varbit: false };
    let widths = [1, 2, 31, 32, 33, 34, 63, 64, 65, 66, 127, 128, 129];
    let kinds = widths.into_iter().flat_map(|w| [(w, false), (w, true)]);
    let d = at(30, 300, true);
    let mut slots = zeros();
    for ((w, s), (v, t)) in kinds.clone().flat_map(|a| kinds.clone().map(move |b| (a, b))) {
        let (a, b) = (at(10, w, s), at(20, v, t));
        let field = |f| Box::new(Expr::Field(f));
        let binary = [Add, Sub, Mul, Div, Mod, And, Or, Xor].map(|op| Expr::Bin(op, field(a), field(b)));
        let expressions = binary.into_iter().flat_map(|e| [Expr::BitNot(Box::new(e.clone())), e]);
        for e in expressions {
            let wide = Wide::new(&e, d).unwrap();
            let mut scratch = vec![0; wide.scratch];
            for (x, y) in extremes(a).into_iter().flat_map(|x| extremes(b).map(|y| (x.clone(), y))) {
                write(&mut slots, a, &x);
                write(&mut slots, b, &y);
                wide.run(&mut slots, &mut scratch);
                assert_eq!(d.exact(&slots), eval(&e, &slots), "{e:?} of {x} and {y}");
            }
        }
    }
}

#[test]
fn a_value_that_may_become_too_wide_is_refused() {
    let field = |slot, width| Expr::Field(FieldRef { slot, width, signed: false, varbit: false });
    let shifted = |by| Expr::Bin(BinOp::Shl, Box::new(field(10, 512)), Box::new(field(20, by)));
    let product = |a, b| Expr::Bin(BinOp::Mul, Box::new(a), Box::new(b));
    let positive = |e| Expr::Cmp(CmpOp::Gt, Box::new(e), Box::new(Expr::Const(BigInt::ZERO)));
    let d = FieldRef { slot: 30, width: 8, signed: false, varbit: false };
    let product_of_two = || product(shifted(64), shifted(64));
    assert!(Wide::new(&positive(product_of_two()), d).is_ok());
    let product_of_four = || product(product_of_two(), product_of_two());
    assert!(Wide::new(&positive(product_of_four()), d).is_err());
    // Only the low bits are wanted, so a small number of scratch words suffices.
    assert!(Wide::new(&product_of_four(), d).unwrap().scratch < 10);
    // A shift amount of eight bits is at most 255, so the shifted values need few words.
    assert!(Wide::new(&positive(product(shifted(8), shifted(8))), d).unwrap().scratch < 200);
}
