//! Compiles the conditions of branches. A comparison and its jump become one instruction, and operands that cannot
//! change the result are not evaluated.

use super::{Gen, Result, Val};
use crate::code::{Near, Op, Pc};
use crate::expr::{CmpOp, Expr};

/// Indices of jump instructions whose targets are set later.
pub type Jumps = Vec<usize>;

impl Gen<'_, '_> {
    /// Emits code that falls through if the condition's value is `when`, and jumps otherwise. Returns the emitted
    /// jumps.
    pub fn branch_unless(&mut self, e: &Expr, when: bool) -> Result<Jumps> {
        match e {
            Expr::Not(a) => self.branch_unless(a, !when),
            Expr::Bool(b) => Ok(if *b == when { Vec::new() } else { vec![self.jump()] }),
            // The code may jump as soon as one operand is not `when`, because the condition is then not `when` either.
            Expr::And(a, b) if when => self.both(a, b, true),
            Expr::Or(a, b) if !when => self.both(a, b, false),
            Expr::And(a, b) => self.either(a, b, false),
            Expr::Or(a, b) => self.either(a, b, true),
            Expr::Cmp(op, a, b) => {
                let (x, y) = (self.value(a, None)?, self.value(b, None)?);
                match fused(*op, x, y, !when) {
                    Some(op) => {
                        self.emit(op);
                        Ok(vec![self.code.ops.len() - 1])
                    }
                    None => self.plain(e, when),
                }
            }
            _ => self.plain(e, when),
        }
    }

    fn both(&mut self, a: &Expr, b: &Expr, when: bool) -> Result<Jumps> {
        let mut jumps = self.branch_unless(a, when)?;
        let mark = self.recorded.len();
        jumps.extend(self.branch_unless(b, when)?);
        self.forget(mark);
        Ok(jumps)
    }

    fn either(&mut self, a: &Expr, b: &Expr, when: bool) -> Result<Jumps> {
        let enough = self.branch_unless(a, !when)?;
        let mark = self.recorded.len();
        let jumps = self.branch_unless(b, when)?;
        self.forget(mark);
        for at in enough {
            self.patch_here(at);
        }
        Ok(jumps)
    }

    fn plain(&mut self, e: &Expr, when: bool) -> Result<Jumps> {
        let a = self.boolean(e, None)?.slot;
        let to: Pc = 0;
        self.emit(if when { Op::JumpIfZero { a, to } } else { Op::JumpIfNotZero { a, to } });
        Ok(vec![self.code.ops.len() - 1])
    }
}

/// Returns the instruction that jumps if the truth value of `x op y` is `holds`. Returns `None` if 64-bit arithmetic
/// cannot compare `x` and `y` exactly.
fn fused(op: CmpOp, x: Val, y: Val, holds: bool) -> Option<Op> {
    let unsigned = x.is_u64() && y.is_u64();
    let signed = x.is_i64() && y.is_i64();
    if !unsigned && !signed {
        return None;
    }
    let to = Near::new(0)?;
    let (a, b) = (x.slot, y.slot);
    let op = match (op, holds) {
        (op, true) => op,
        (CmpOp::Eq, false) => CmpOp::Ne,
        (CmpOp::Ne, false) => CmpOp::Eq,
        (CmpOp::Lt, false) => CmpOp::Ge,
        (CmpOp::Le, false) => CmpOp::Gt,
        (CmpOp::Gt, false) => CmpOp::Le,
        (CmpOp::Ge, false) => CmpOp::Lt,
    };
    Some(match (op, unsigned) {
        (CmpOp::Eq, _) => Op::JumpEq { to, a, b },
        (CmpOp::Ne, _) => Op::JumpNe { to, a, b },
        (CmpOp::Lt, true) => Op::JumpLtU { to, a, b },
        (CmpOp::Le, true) => Op::JumpLeU { to, a, b },
        (CmpOp::Gt, true) => Op::JumpLtU { to, a: b, b: a },
        (CmpOp::Ge, true) => Op::JumpLeU { to, a: b, b: a },
        (CmpOp::Lt, false) => Op::JumpLtS { to, a, b },
        (CmpOp::Le, false) => Op::JumpLeS { to, a, b },
        (CmpOp::Gt, false) => Op::JumpLtS { to, a: b, b: a },
        (CmpOp::Ge, false) => Op::JumpLeS { to, a: b, b: a },
    })
}
