//! Expressions of the program, with every name resolved, before they are compiled to instructions.

#[cfg(test)]
pub mod random;

use std::cmp::Ordering;

use num_bigint::BigInt;

use crate::layout::FieldRef;

/// An arithmetic operation on two integers of any size.
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

/// A comparison of two integers of any size.
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
    /// Whether the comparison holds for two values in this order.
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

/// A header; of a stack's element, the index may be computed at run time.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum HeaderRef {
    Fixed(usize),
    /// Stack and index.
    Indexed(usize, Box<Expr>),
}

/// An expression. Its values are integers without bounds, as in BMv2; an assignment cuts the value to the destination's
/// width. Booleans are 0 and 1.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Expr {
    Const(BigInt),
    Bool(bool),
    /// A field or an action parameter.
    Field(FieldRef),
    /// A field of a stack's last valid element: the stack, and the field relative to its header.
    StackLast(usize, FieldRef),
    /// A field of a stack's element: the stack, the index, and the field relative to its header.
    StackIndexed(usize, Box<Expr>, FieldRef),
    /// The index of a stack's last valid element. The field is the stack's next index.
    LastIndex(FieldRef),
    Bin(BinOp, Box<Expr>, Box<Expr>),
    BitNot(Box<Expr>),
    Cmp(CmpOp, Box<Expr>, Box<Expr>),
    And(Box<Expr>, Box<Expr>),
    Or(Box<Expr>, Box<Expr>),
    Not(Box<Expr>),
    /// Whether the value is not zero.
    ToBool(Box<Expr>),
    /// The condition, the value if it holds, and the value otherwise.
    Select(Box<Expr>, Box<Expr>, Box<Expr>),
    /// The value modulo 2^n as a signed number in two's complement of n bits, where n is the second operand.
    Wrap(Box<Expr>, u32),
    /// The value, clamped to a signed integer of this many bits.
    SatSigned(Box<Expr>, u32),
    /// The value, clamped to an unsigned integer of this many bits.
    SatUnsigned(Box<Expr>, u32),
    /// Whether both headers are valid and equal in all fields.
    HeaderEq(HeaderRef, HeaderRef),
    /// Whether the same member of both unions is valid and equal in all fields.
    UnionEq(usize, usize),
    /// Whether a header of the union is valid.
    UnionValid(usize),
}

/// The target of an assignment.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Place {
    Field(FieldRef),
    StackLast(usize, FieldRef),
    StackIndexed(usize, Box<Expr>, FieldRef),
}

impl Expr {
    /// Whether the value is always 0 or 1, so that the expression can stand as a condition.
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
