//! Converts JSON expressions and parameters to [`Expr`], [`Place`] and [`HeaderRef`].

use std::collections::HashMap;

use num_bigint::BigInt;
use num_bigint::Sign;

use super::json::{J, Result};
use crate::expr::{BinOp, CmpOp, Expr, HeaderRef, Place};
use crate::layout::{FieldRef, Layout};

/// The maximum width in bits to which an expression may cast a value. It is also the maximum width of a field.
const MAX_WIDTH: u32 = 1 << 16;

/// The names to which an expression can refer.
pub struct Scope<'a> {
    pub layout: &'a Layout,
    /// The parameters of the action. JSON values of the types `runtime_data` and `local` refer to them by index.
    pub params: &'a [FieldRef],
}

fn find(j: &J, name: &str, names: &HashMap<String, usize>, kind: &str) -> Result<usize> {
    names.get(name).copied().ok_or_else(|| j.error(format!("there is no {kind} '{name}'")))
}

fn unary(op: fn(Box<Expr>) -> Expr, e: Expr) -> Expr {
    op(Box::new(e))
}

impl Scope<'_> {
    pub fn header(&self, j: &J) -> Result<usize> {
        find(j, j.as_str()?, &self.layout.header_by_name, "header")
    }

    pub fn stack(&self, j: &J) -> Result<usize> {
        find(j, j.as_str()?, &self.layout.stack_by_name, "header stack")
    }

    pub fn union(&self, j: &J) -> Result<usize> {
        find(j, j.as_str()?, &self.layout.union_by_name, "header union")
    }

    pub fn union_stack(&self, j: &J) -> Result<usize> {
        find(j, j.as_str()?, &self.layout.union_stack_by_name, "header union stack")
    }

    /// Reads a reference to a field, `[header, field]`.
    pub fn field(&self, j: &J) -> Result<FieldRef> {
        let (header, field) = j.as_pair()?;
        let h = find(j, header, &self.layout.header_by_name, "header")?;
        self.layout.field(h, field).ok_or_else(|| j.error(format!("header '{header}' has no field '{field}'")))
    }

    /// Reads `[stack, field]`. Returns the stack, and the field with a slot number relative to its header's first slot.
    pub fn stack_field(&self, j: &J) -> Result<(usize, FieldRef)> {
        let stack = self.stack(&j.at(0)?)?;
        let field = j.at(1)?.as_str()?;
        Ok((stack, self.type_field(j, self.layout.stacks[stack].header_type, field)?))
    }

    /// Returns the field of a header type that has the name `field`, or an error if there is no such field.
    pub fn type_field(&self, j: &J, header_type: usize, field: &str) -> Result<FieldRef> {
        let name = &self.layout.types[header_type].name;
        let field_ref = self.layout.type_field(header_type, field);
        field_ref.ok_or_else(|| j.error(format!("header type '{name}' has no field '{field}'")))
    }

    /// Returns an expression for a field, or for the validity, of a stack element. The JSON contains the element as a
    /// `dereference_header_stack`, which computes the element's index at run time.
    fn element_field(&self, dereference: &J, name: &str) -> Result<Expr> {
        let stack = self.stack(&dereference.get("left")?.get("value")?)?;
        let header_type = self.layout.stacks[stack].header_type;
        let field = self.type_field(dereference, header_type, name)?;
        let index = self.expr(&dereference.get("right")?)?;
        Ok(Expr::StackIndexed(stack, Box::new(index), field))
    }

    fn param(&self, j: &J) -> Result<FieldRef> {
        let index = j.as_u32()? as usize;
        self.params.get(index).copied().ok_or_else(|| j.error(format!("the action has no parameter {index}")))
    }

    /// Reads a value, which the JSON contains as `{type, value}`.
    pub fn expr(&self, j: &J) -> Result<Expr> {
        let value = j.get("value")?;
        match j.str("type")? {
            "expression" if value.opt("op").is_some() => self.operation(&value),
            "expression" => self.expr(&value),
            // For `hdr.stack[i].isValid()`, p4c writes an expression for the element in the place of the header's name.
            "field" if value.at(0)?.value.is_object() => {
                let op = value.at(0)?;
                if op.str("op")? != "dereference_header_stack" {
                    return Err(op.error("an element of a header stack is expected"));
                }
                self.element_field(&op, value.at(1)?.as_str()?)
            }
            "field" => Ok(Expr::Field(self.field(&value)?)),
            "hexstr" => Ok(Expr::Const(value.as_hex()?)),
            "bool" => Ok(Expr::Bool(value.as_bool()?)),
            "local" | "runtime_data" => Ok(Expr::Field(self.param(&value)?)),
            "stack_field" => self.stack_field(&value).map(|(s, f)| Expr::StackLast(s, f)),
            other => Err(j.unknown(format!("'{other}' is not supported as a value"))),
        }
    }

    /// Reads a condition and returns a boolean expression.
    pub fn condition(&self, j: &J) -> Result<Expr> {
        let e = self.expr(j)?;
        // Some older JSON contains an integer where a boolean is expected. BMv2 accepts such JSON.
        Ok(if e.is_bool() { e } else { unary(Expr::ToBool, e) })
    }

    #[expect(clippy::too_many_lines, reason = "one arm an operator of BMv2's JSON")]
    fn operation(&self, j: &J) -> Result<Expr> {
        let op_j = j.get("op")?;
        let op = op_j.as_str()?;
        let left = || self.expr(&j.get("left")?);
        let right = || self.expr(&j.get("right")?);
        let bool_of = |e: Expr| if e.is_bool() { e } else { unary(Expr::ToBool, e) };
        let width = |e: Expr| match e {
            Expr::Const(n) if n.sign() == Sign::Plus && n <= BigInt::from(MAX_WIDTH) => {
                Ok(u32::try_from(&n).unwrap_or(MAX_WIDTH))
            }
            _ => Err(j.error(format!("the width must be a constant of 1 to {MAX_WIDTH}"))),
        };
        let binary = |op: BinOp| -> Result<Expr> {
            let l = if j.opt("left").is_none() { Expr::Const(BigInt::ZERO) } else { left()? };
            Ok(Expr::Bin(op, Box::new(l), Box::new(right()?)))
        };
        let compare = |op: CmpOp| -> Result<Expr> { Ok(Expr::Cmp(op, Box::new(left()?), Box::new(right()?))) };
        Ok(match op {
            "+" => binary(BinOp::Add)?,
            "-" => binary(BinOp::Sub)?,
            "*" => binary(BinOp::Mul)?,
            "/" => binary(BinOp::Div)?,
            "%" => binary(BinOp::Mod)?,
            "&" => binary(BinOp::And)?,
            "|" => binary(BinOp::Or)?,
            "^" => binary(BinOp::Xor)?,
            "<<" => binary(BinOp::Shl)?,
            ">>" => binary(BinOp::Shr)?,
            "~" => unary(Expr::BitNot, right()?),
            "==" | "!=" => {
                let equal = self.equal(j)?;
                match (op, equal) {
                    ("!=", Expr::Cmp(_, a, b)) => Expr::Cmp(CmpOp::Ne, a, b),
                    ("!=", e) => unary(Expr::Not, e),
                    (_, e) => e,
                }
            }
            "<" => compare(CmpOp::Lt)?,
            "<=" => compare(CmpOp::Le)?,
            ">" => compare(CmpOp::Gt)?,
            ">=" => compare(CmpOp::Ge)?,
            "and" => Expr::And(Box::new(bool_of(left()?)), Box::new(bool_of(right()?))),
            "or" => Expr::Or(Box::new(bool_of(left()?)), Box::new(bool_of(right()?))),
            "not" => unary(Expr::Not, bool_of(right()?)),
            "d2b" => unary(Expr::ToBool, right()?),
            "b2d" => right()?,
            "valid" => {
                let h = self.header(&j.get("right")?.get("value")?)?;
                let valid = FieldRef { slot: self.layout.headers[h].valid, width: 1, signed: false, varbit: false };
                unary(Expr::ToBool, Expr::Field(valid))
            }
            "valid_union" => Expr::UnionValid(self.union(&j.get("right")?.get("value")?)?),
            "?" => {
                let condition = bool_of(self.expr(&j.get("cond")?)?);
                Expr::Select(Box::new(condition), Box::new(left()?), Box::new(right()?))
            }
            "two_comp_mod" => Expr::Wrap(Box::new(left()?), width(right()?)?),
            "sat_cast" => Expr::SatSigned(Box::new(left()?), width(right()?)?),
            "usat_cast" => Expr::SatUnsigned(Box::new(left()?), width(right()?)?),
            "last_stack_index" => {
                let stack = self.stack(&j.get("right")?.get("value")?)?;
                let next = self.next_field(stack);
                Expr::LastIndex(next)
            }
            "size_stack" => {
                let stack = self.stack(&j.get("right")?.get("value")?)?;
                Expr::Field(self.next_field(stack))
            }
            "access_field" => {
                let (header, header_type) = self.header_ref(&j.get("left")?)?;
                let index = j.get("right")?.as_u32()? as usize;
                let header_type = &self.layout.types[header_type];
                let f = header_type.fields.get(index);
                let f =
                    f.ok_or_else(|| j.error(format!("header type '{}' has no field {index}", header_type.name)))?.field;
                match header {
                    HeaderRef::Fixed(h) => Expr::Field(f.offset(self.layout.headers[h].base)),
                    HeaderRef::Indexed(stack, i) => Expr::StackIndexed(stack, i, f),
                }
            }
            other => return Err(op_j.unknown(format!("the operator '{other}' is not supported here"))),
        })
    }

    fn next_field(&self, stack: usize) -> FieldRef {
        FieldRef { slot: self.layout.stacks[stack].next, width: 32, signed: false, varbit: false }
    }

    fn equal(&self, j: &J) -> Result<Expr> {
        let (l, r) = (j.get("left")?, j.get("right")?);
        let kind = |j: &J| -> Result<&str> {
            let mut j = j.clone();
            loop {
                let (t, v) = (j.str("type")?, j.get("value")?);
                match t {
                    "expression" if v.opt("op").is_none() => j = v,
                    "expression" if v.str("op")? == "dereference_header_stack" => return Ok("header"),
                    "header" => return Ok("header"),
                    "header_union" => return Ok("header union"),
                    "header_stack" | "header_union_stack" => return Ok("stack"),
                    _ => return Ok("data"),
                }
            }
        };
        match (kind(&l)?, kind(&r)?) {
            ("header", "header") => {
                let ((a, ta), (b, tb)) = (self.header_ref(&l)?, self.header_ref(&r)?);
                if ta != tb {
                    return Err(j.error("headers of different types are compared"));
                }
                Ok(Expr::HeaderEq(a, b))
            }
            ("header union", "header union") => {
                let (a, b) = (self.union(&l.get("value")?)?, self.union(&r.get("value")?)?);
                if self.layout.unions[a].union_type != self.layout.unions[b].union_type {
                    return Err(j.error("header unions of different types are compared"));
                }
                Ok(Expr::UnionEq(a, b))
            }
            ("data", "data") => Ok(Expr::Cmp(CmpOp::Eq, Box::new(self.expr(&l)?), Box::new(self.expr(&r)?))),
            ("stack", "stack") => {
                Err(j.refused("header stacks cannot be compared", "compare their elements one by one"))
            }
            (left, right) => Err(j.error(format!("a {left} is compared with a {right}"))),
        }
    }

    /// Reads a reference to a header. Returns the header and the index of its type.
    pub fn header_ref(&self, j: &J) -> Result<(HeaderRef, usize)> {
        let value = j.get("value")?;
        match j.str("type")? {
            "header" => {
                let h = self.header(&value)?;
                Ok((HeaderRef::Fixed(h), self.layout.headers[h].header_type))
            }
            "expression" if value.opt("op").is_none() => self.header_ref(&value),
            "expression" if value.opt("op").is_some() && value.str("op")? == "dereference_header_stack" => {
                let stack = self.stack(&value.get("left")?.get("value")?)?;
                let index = self.expr(&value.get("right")?)?;
                Ok((HeaderRef::Indexed(stack, Box::new(index)), self.layout.stacks[stack].header_type))
            }
            other => Err(j.unknown(format!("'{other}' is not supported as a header"))),
        }
    }

    /// Reads the target of an assignment.
    pub fn place(&self, j: &J) -> Result<Place> {
        match self.expr(j)? {
            Expr::Field(f) if j.str("type")? != "runtime_data" => Ok(Place::Field(f)),
            Expr::StackLast(s, f) => Ok(Place::StackLast(s, f)),
            Expr::StackIndexed(s, i, f) => Ok(Place::StackIndexed(s, i, f)),
            _ => Err(j.error("nothing can be assigned to this, because it is not a field")),
        }
    }
}
