//! Compiles primitives: the statements of actions, and those that parser states and the deparser may contain.

use super::expr::Scope;
use super::json::{J, Result};
use crate::code::{Ext, Op};
use crate::codegen::Gen;
use crate::expr::{Expr, HeaderRef, Place};
use crate::layout::{FieldRef, Layout};
use crate::program::Objects;

/// The objects and fields to which primitives refer.
pub struct Context<'a> {
    pub objects: &'a Objects,
    /// A copy of the layout, because the code generator adds slots to the original while primitives are compiled.
    pub layout: &'a Layout,
    pub params: &'a [FieldRef],
    /// The slot that contains the number of the drop port.
    pub drop_port: u16,
}

impl Context<'_> {
    fn scope(&self) -> Scope<'_> {
        Scope { layout: self.layout, params: self.params }
    }

    /// Compiles a primitive that is not a jump.
    #[expect(clippy::too_many_lines, reason = "one arm a primitive of BMv2's JSON")]
    pub fn primitive(&self, g: &mut Gen, j: &J) -> Result<()> {
        let op_j = j.get("op")?;
        let op = op_j.as_str()?;
        let args = j.list("parameters")?;
        let need = |n: usize| {
            if args.len() == n {
                Ok(())
            } else {
                Err(j.error(format!("'{op}' takes {n} parameters, {} are given", args.len())))
            }
        };
        let scope = self.scope();
        match op {
            "assign" | "modify_field" => {
                need(2)?;
                g.assign(&scope.place(&args[0])?, &scope.expr(&args[1])?)
            }
            "assign_VL" => {
                need(2)?;
                match (scope.place(&args[0])?, scope.expr(&args[1])?) {
                    (Place::Field(d), Expr::Field(a)) if d.varbit && a.varbit => {
                        g.ext(Ext::CopyVarbit { d, a });
                        Ok(())
                    }
                    _ => Err(j.error("two variable-length fields are expected")),
                }
            }
            "assign_header" => {
                need(2)?;
                let ((d, td), (a, ta)) = (scope.header_ref(&args[0])?, scope.header_ref(&args[1])?);
                if td != ta {
                    return Err(j.error("the two headers are of different types"));
                }
                let (d, a) = (g.header_at(&d)?, g.header_at(&a)?);
                g.ext(Ext::AssignHeader { d, a });
                Ok(())
            }
            "assign_union" | "assign_header_stack" | "assign_union_stack" => {
                need(2)?;
                self.assign_headers(g, op, &args)
            }
            "add_header" | "remove_header" => {
                need(1)?;
                let valid = op == "add_header";
                match scope.header_ref(&args[0])?.0 {
                    HeaderRef::Fixed(h) if valid => g.emit(Op::SetValid { header: h as u16 }),
                    HeaderRef::Fixed(h) => g.emit(Op::SetInvalid { header: h as u16 }),
                    h @ HeaderRef::Indexed(..) => {
                        let header = g.header_at(&h)?;
                        g.ext(Ext::SetValid { header, valid });
                    }
                }
                Ok(())
            }
            "push" | "pop" => {
                need(2)?;
                self.push_pop(g, op == "push", &args)
            }
            "mark_to_drop" => {
                need(1)?;
                let (HeaderRef::Fixed(h), _) = scope.header_ref(&args[0])? else {
                    return Err(args[0].error("the standard metadata is expected"));
                };
                let spec = self
                    .layout
                    .field(h, "egress_spec")
                    .ok_or_else(|| args[0].error("this header has no field 'egress_spec'"))?;
                g.emit(Op::Mov { m: (64 - spec.width.min(64)) as u8, d: spec.slot, a: self.drop_port });
                if let Some(group) = self.layout.field(h, "mcast_grp") {
                    g.emit(Op::Zero { d: group.slot, n: 1 });
                }
                Ok(())
            }
            "drop" => {
                need(0)?;
                let spec = self
                    .layout
                    .target_field("standard_metadata", "egress_spec")
                    .ok_or_else(|| j.error("standard_metadata.egress_spec is missing"))?;
                g.emit(Op::Mov { m: (64 - spec.width.min(64)) as u8, d: spec.slot, a: self.drop_port });
                if let Some(group) = self.layout.target_field("intrinsic_metadata", "mcast_grp") {
                    g.emit(Op::Zero { d: group.slot, n: 1 });
                }
                Ok(())
            }
            "no_op" => Ok(()),
            "exit" => {
                g.emit(Op::Exit);
                Ok(())
            }
            "count" => {
                need(2)?;
                let counter = self.objects.find(&args[0], "counter_array", &self.objects.counter_by_name)?;
                let index = g.index(&scope.expr(&args[1])?)?;
                g.emit(Op::Count { counter, index });
                Ok(())
            }
            "execute_meter" => {
                need(3)?;
                let meter = self.objects.find(&args[0], "meter_array", &self.objects.meter_by_name)?;
                let index = g.index(&scope.expr(&args[1])?)?;
                self.result(g, &args[2], 2, |d| Op::Meter { meter, d, index })
            }
            "register_read" => {
                need(3)?;
                let register = self.objects.find(&args[1], "register_array", &self.objects.register_by_name)?;
                let width = self.objects.registers[register as usize].width;
                let index = g.index(&scope.expr(&args[2])?)?;
                if width <= 64 {
                    return self.result(g, &args[0], width, |d| Op::RegisterRead { register, d, index });
                }
                let like = FieldRef { slot: 0, width, signed: false, varbit: false };
                let place = scope.place(&args[0])?;
                let t = g.temp_row(like)?;
                self.preload(g, &place, t)?;
                g.ext(Ext::RegisterRead { register, d: t, index });
                g.assign(&place, &Expr::Field(t))
            }
            "register_write" => {
                need(3)?;
                let register = self.objects.find(&args[0], "register_array", &self.objects.register_by_name)?;
                let width = self.objects.registers[register as usize].width;
                let index = g.index(&scope.expr(&args[1])?)?;
                let value = scope.expr(&args[2])?;
                if width <= 64 {
                    let a = g.masked(&value, width, None)?.slot;
                    g.emit(Op::RegisterWrite { register, index, a });
                } else {
                    let a = g.as_field(&value, FieldRef { slot: 0, width, signed: false, varbit: false })?;
                    g.ext(Ext::RegisterWrite { register, index, a });
                }
                Ok(())
            }
            "modify_field_with_hash_based_offset" => {
                need(4)?;
                let calculation = self.objects.find(&args[2], "calculation", &self.objects.calculation_by_name)?;
                let base = g.value(&scope.expr(&args[1])?, None)?.slot;
                let max = g.value(&scope.expr(&args[3])?, None)?.slot;
                let place = scope.place(&args[0])?;
                let d = g.temp()?;
                g.ext(Ext::Hash { calculation, d, base, max });
                g.assign(&place, &word(d))
            }
            "modify_field_rng_uniform" => {
                need(3)?;
                let low = g.value(&scope.expr(&args[1])?, None)?.slot;
                let high = g.value(&scope.expr(&args[2])?, None)?.slot;
                let place = scope.place(&args[0])?;
                let d = g.temp()?;
                self.preload(g, &place, FieldRef { slot: d, width: 64, signed: false, varbit: false })?;
                g.ext(Ext::Random { d, low, high });
                g.assign(&place, &word(d))
            }
            "truncate" => {
                need(1)?;
                let length = g.value(&scope.expr(&args[0])?, None)?.slot;
                g.ext(Ext::Truncate { length });
                Ok(())
            }
            "clone_ingress_pkt_to_egress" | "clone_egress_pkt_to_egress" => {
                need(2)?;
                let session = g.value(&scope.expr(&args[0])?, None)?.slot;
                let fields = self.objects.field_list(&args[1])?;
                g.ext(if op.starts_with("clone_i") {
                    Ext::CloneIngress { session, fields }
                } else {
                    Ext::CloneEgress { session, fields }
                });
                Ok(())
            }
            "resubmit" | "recirculate" => {
                need(1)?;
                let fields = self.objects.field_list(&args[0])?;
                g.ext(if op == "resubmit" { Ext::Resubmit { fields } } else { Ext::Recirculate { fields } });
                Ok(())
            }
            "generate_digest" => {
                need(2)?;
                let digest = self.objects.digest(&args[1])?;
                g.ext(Ext::Digest { digest });
                Ok(())
            }
            "assert" | "assume" => {
                need(1)?;
                let a = g.boolean(&scope.condition(&args[0])?, None)?.slot;
                g.ext(Ext::Assert { a });
                Ok(())
            }
            "log_msg" => self.log(g, j, &args),
            other => Err(op_j.unknown(format!("the primitive '{other}' is not supported"))),
        }
    }

    /// Compiles an instruction that computes a result of `width` bits, and assigns the result to `target`. `op` builds
    /// the instruction from its destination slot. If the index of the array cell that the instruction accesses is out
    /// of range, `target` keeps its value.
    fn result(&self, g: &mut Gen, target: &J, width: u32, op: impl Fn(u16) -> Op) -> Result<()> {
        let place = self.scope().place(target)?;
        if let Place::Field(f) = place
            && f.narrow()
            && !f.signed
            && f.width >= width
        {
            g.emit(op(f.slot));
            return Ok(());
        }
        let d = g.temp()?;
        self.preload(g, &place, FieldRef { slot: d, width: 64, signed: false, varbit: false })?;
        g.emit(op(d));
        g.assign(&place, &word(d))
    }

    /// Loads the target's current value into the slot `t`. An instruction whose index is out of range writes nothing to
    /// `t`, and the assignment of `t` then leaves the target unchanged.
    fn preload(&self, g: &mut Gen, place: &Place, t: FieldRef) -> Result<()> {
        let current = match place {
            Place::Field(f) => Expr::Field(*f),
            Place::StackLast(s, f) => Expr::StackLast(*s, *f),
            Place::StackIndexed(s, i, f) => Expr::StackIndexed(*s, i.clone(), *f),
        };
        g.assign_field(t, &current)
    }

    fn assign_headers(&self, g: &mut Gen, op: &str, args: &[J]) -> Result<()> {
        let scope = self.scope();
        let value = |i: usize| args[i].get("value");
        let headers = |unions: &[usize]| -> Vec<usize> {
            unions.iter().flat_map(|&u| self.layout.unions[u].headers.clone()).collect()
        };
        let (to, from, next) = match op {
            "assign_union" => (headers(&[scope.union(&value(0)?)?]), headers(&[scope.union(&value(1)?)?]), None),
            "assign_header_stack" => {
                let (d, a) = (scope.stack(&value(0)?)?, scope.stack(&value(1)?)?);
                let (d, a) = (&self.layout.stacks[d], &self.layout.stacks[a]);
                (d.headers.clone(), a.headers.clone(), Some((d.next, a.next)))
            }
            _ => {
                let (d, a) = (scope.union_stack(&value(0)?)?, scope.union_stack(&value(1)?)?);
                let (d, a) = (&self.layout.union_stacks[d], &self.layout.union_stacks[a]);
                (headers(&d.unions), headers(&a.unions), Some((d.next, a.next)))
            }
        };
        let types = |hs: &[usize]| hs.iter().map(|&h| self.layout.headers[h].header_type).collect::<Vec<_>>();
        if types(&to) != types(&from) {
            return Err(args[0].error("the two sides are of different types"));
        }
        let pairs = to.iter().zip(&from).map(|(&d, &a)| (d as u16, a as u16)).collect();
        g.ext(Ext::AssignHeaders { pairs, next });
        Ok(())
    }

    fn push_pop(&self, g: &mut Gen, push: bool, args: &[J]) -> Result<()> {
        let scope = self.scope();
        let count = g.value(&scope.expr(&args[1])?, None)?.slot;
        let ext = match args[0].str("type")? {
            "header_stack" => {
                let stack = scope.stack(&args[0].get("value")?)? as u16;
                if push { Ext::Push { stack, count } } else { Ext::Pop { stack, count } }
            }
            "header_union_stack" => {
                let stack = scope.union_stack(&args[0].get("value")?)? as u16;
                if push { Ext::PushUnion { stack, count } } else { Ext::PopUnion { stack, count } }
            }
            other => return Err(args[0].error(format!("'{other}' is no header stack"))),
        };
        g.ext(ext);
        Ok(())
    }

    fn log(&self, g: &mut Gen, j: &J, args: &[J]) -> Result<()> {
        let [format, vector] = args else {
            return Err(j.error("'log_msg' takes a format and a vector of values"));
        };
        let scope = self.scope();
        let mut slots = Vec::new();
        let values = vector.get("value")?;
        let values = if values.value.is_array() { values.items()? } else { Vec::new() };
        for v in &values {
            let e = scope.expr(v)?;
            let f = match &e {
                Expr::Field(f) if !f.varbit => *f,
                _ => g.as_field(&e, FieldRef { slot: 0, width: 128, signed: true, varbit: false })?,
            };
            slots.push((f, e.is_bool()));
        }
        let format = match format.value.get("value") {
            Some(_) => format.str("value")?,
            None => format.as_str()?,
        };
        g.ext(Ext::Log { format: format.to_string(), args: slots });
        Ok(())
    }
}

fn word(slot: u16) -> Expr {
    Expr::Field(FieldRef { slot, width: 64, signed: false, varbit: false })
}
