//! Generates random expressions for tests.

use proptest::prelude::*;
use proptest::sample::select;

use super::{BinOp, CmpOp, Expr};

/// Returns a proptest strategy for expressions. `leaf` generates the operands and `amount` the shift amounts; casts
/// have up to `width` bits.
pub fn expr(
    leaf: impl Strategy<Value = Expr> + 'static,
    amount: impl Strategy<Value = Expr> + Clone + 'static,
    width: u32,
) -> impl Strategy<Value = Expr> {
    leaf.prop_recursive(5, 40, 3, move |inner| {
        use BinOp::{Add, And, Div, Mod, Mul, Or, Shl, Shr, Sub, Xor};
        let op = select(vec![Add, Sub, Mul, Div, Mod, And, And, Or, Xor]);
        let cmp = select(vec![CmpOp::Eq, CmpOp::Ne, CmpOp::Lt, CmpOp::Le, CmpOp::Gt, CmpOp::Ge]);
        let shift = select(vec![Shl, Shr]);
        let cast = select(vec![Expr::Wrap, Expr::SatSigned, Expr::SatUnsigned] as Vec<fn(Box<Expr>, u32) -> Expr>);
        let condition = prop_oneof![
            4 => (cmp, inner.clone(), inner.clone()).prop_map(|(op, a, b)| Expr::Cmp(op, Box::new(a), Box::new(b))),
            1 => inner.clone().prop_map(|a| Expr::ToBool(Box::new(a))),
        ];
        let condition = condition.prop_recursive(2, 6, 2, |c| {
            prop_oneof![
                (c.clone(), c.clone()).prop_map(|(a, b)| Expr::And(Box::new(a), Box::new(b))),
                (c.clone(), c.clone()).prop_map(|(a, b)| Expr::Or(Box::new(a), Box::new(b))),
                c.prop_map(|a| Expr::Not(Box::new(a))),
            ]
        });
        prop_oneof![
            4 => (op, inner.clone(), inner.clone()).prop_map(|(op, a, b)| Expr::Bin(op, Box::new(a), Box::new(b))),
            2 => (shift, inner.clone(), amount.clone()).prop_map(|(op, a, b)| Expr::Bin(op, Box::new(a), Box::new(b))),
            1 => inner.clone().prop_map(|a| Expr::BitNot(Box::new(a))),
            3 => (cast, inner.clone(), 1..=width).prop_map(|(cast, a, w)| cast(Box::new(a), w)),
            1 => condition.clone(),
            1 => (condition, inner.clone(), inner).prop_map(|(c, a, b)| Expr::Select(Box::new(c), Box::new(a), Box::new(b))),
        ]
    })
}
