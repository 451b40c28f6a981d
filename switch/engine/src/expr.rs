//! Expressions with every name resolved, before they are compiled.

#[cfg(test)]
pub mod random;

use std::cmp::Ordering;

use num_bigint::BigInt;

use crate::layout::FieldRef;

/// Arithmetic on two integers of any size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BinOp {
    Add,
    Sub,
    Mul,
    Div,
    Mod,
    And,
    Or,
    Xor,
    Shl,
    Shr,
}

/// Comparison of two integers of any size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CmpOp {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

impl CmpOp {
    /// Whether two values in this order compare so.
    pub fn holds(self, order: Ordering) -> bool {
        match self {
            CmpOp::Eq => order.is_eq(),
            CmpOp::Ne => order.is_ne(),
            CmpOp::Lt => order.is_lt(),
            CmpOp::Le => order.is_le(),
            CmpOp::Gt => order.is_gt(),
            CmpOp::Ge => order.is_ge(),
        }
    }
}

/// A header, possibly one that is known only at run time.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum HeaderRef {
    Fixed(usize),
    /// Stack, index.
    Indexed(usize, Box<Expr>),
}

/// A value: integers without bounds, as in BMv2; what is assigned is cut to the destination's width. Booleans are 0 and 1.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Expr {
    Const(BigInt),
    Bool(bool),
    /// A field, or an action parameter.
    Field(FieldRef),
    /// Stack, field relative to its header: the last valid element's.
    StackLast(usize, FieldRef),
    /// Stack, index, field relative to its header.
    StackIndexed(usize, Box<Expr>, FieldRef),
    /// Slot of the stack's next index: the index of the last element.
    LastIndex(FieldRef),
    Bin(BinOp, Box<Expr>, Box<Expr>),
    BitNot(Box<Expr>),
    Cmp(CmpOp, Box<Expr>, Box<Expr>),
    And(Box<Expr>, Box<Expr>),
    Or(Box<Expr>, Box<Expr>),
    Not(Box<Expr>),
    /// Is not zero.
    ToBool(Box<Expr>),
    /// Condition, then, else.
    Select(Box<Expr>, Box<Expr>, Box<Expr>),
    /// Two's complement of so many bits.
    Wrap(Box<Expr>, u32),
    /// Clamped to a signed integer of so many bits.
    SatSigned(Box<Expr>, u32),
    /// Clamped to an unsigned integer of so many bits.
    SatUnsigned(Box<Expr>, u32),
    /// Both valid and equal in all fields.
    HeaderEq(HeaderRef, HeaderRef),
    /// The same header of both is valid, and equal in all fields.
    UnionEq(usize, usize),
    /// One of its headers is valid.
    UnionValid(usize),
}

/// A place that can be assigned.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Place {
    Field(FieldRef),
    StackLast(usize, FieldRef),
    StackIndexed(usize, Box<Expr>, FieldRef),
}

impl Expr {
    /// Is 0 or 1 and can stand as a condition.
    pub fn is_bool(&self) -> bool {
        match self {
            Expr::Bool(_)
            | Expr::Cmp(..)
            | Expr::And(..)
            | Expr::Or(..)
            | Expr::Not(_)
            | Expr::ToBool(_)
            | Expr::HeaderEq(..)
            | Expr::UnionEq(..)
            | Expr::UnionValid(_) => true,
            Expr::Select(_, a, b) => a.is_bool() && b.is_bool(),
            _ => false,
        }
    }
}
