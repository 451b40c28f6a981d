//! Expressions of the program before they are compiled to instructions. Names in expressions are already resolved.

#[cfg(test)]
pub mod random;

use std::cmp::Ordering;

use num_bigint::BigInt;

use crate::layout::FieldRef;

/// An arithmetic operation, a bitwise operation or a shift, with two integers of any size as operands.
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
    /// Returns whether the comparison is true for two values that have this order.
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

/// Refers to a header, or to an element of a header stack whose index may be computed at run time.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum HeaderRef {
    Fixed(usize),
    /// The stack, and the index of the element.
    Indexed(usize, Box<Expr>),
}

/// An expression. Its values are integers without bounds, like those of BMv2; an assignment cuts the value to the
/// destination's width. Booleans are 0 and 1.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Expr {
    Const(BigInt),
    Bool(bool),
    /// A field or an action parameter.
    Field(FieldRef),
    /// A field of a stack's last valid element: the stack, and the field, whose slot is relative to the element's first
    /// slot.
    StackLast(usize, FieldRef),
    /// A field of a stack's element: the stack, the index, and the field, whose slot is relative to the element's first
    /// slot.
    StackIndexed(usize, Box<Expr>, FieldRef),
    /// The index of a stack's last valid element. The operand is the field that contains the stack's next free index.
    LastIndex(FieldRef),
    Bin(BinOp, Box<Expr>, Box<Expr>),
    BitNot(Box<Expr>),
    Cmp(CmpOp, Box<Expr>, Box<Expr>),
    And(Box<Expr>, Box<Expr>),
    Or(Box<Expr>, Box<Expr>),
    Not(Box<Expr>),
    /// True if the value is not zero.
    ToBool(Box<Expr>),
    /// A choice. The operands are the condition, the value if the condition is true, and the value if it is false.
    Select(Box<Expr>, Box<Expr>, Box<Expr>),
    /// The value modulo 2^n, read as a signed number in two's complement of n bits. The second operand is n.
    Wrap(Box<Expr>, u32),
    /// The value, clamped to the range of a signed integer. The second operand is the integer's width in bits.
    SatSigned(Box<Expr>, u32),
    /// The value, clamped to the range of an unsigned integer. The second operand is the integer's width in bits.
    SatUnsigned(Box<Expr>, u32),
    /// True if both headers are valid and all their fields are equal.
    HeaderEq(HeaderRef, HeaderRef),
    /// True if the same member is valid in both unions and all its fields are equal.
    UnionEq(usize, usize),
    /// True if any header of the union is valid.
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
    /// Whether the value is always 0 or 1, so that the expression can be used as a condition.
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
