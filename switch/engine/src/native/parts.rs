//! Builds the functions of machine code, one for each stage: parser, checksums to verify, ingress, egress, deparser.

use std::collections::HashSet;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::I64;
use cranelift_codegen::ir::{InstBuilder, Value};

use super::abi::{DONE, Frame};
use super::emit::Fun;
use super::reach::{For, Reach};
use crate::layout::{Slot, mask64};
use crate::machine::Machine;

/// A stage of a packet's processing. Machine code contains a function for each stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    Parser,
    /// The verification of checksums, after the parser. The function returns whether a checksum was wrong.
    Verify,
    Ingress,
    Egress,
    /// The deparser. The function stores the length of the headers in the frame.
    Deparser,
}

/// All stages, by number.
pub const STAGES: [Stage; 5] = [Stage::Parser, Stage::Verify, Stage::Ingress, Stage::Egress, Stage::Deparser];

/// Returns the key of a stage's function in [`super::emit::Plan::calls`].
pub fn name(stage: Stage) -> &'static str {
    match stage {
        Stage::Parser => "parser, a stage",
        Stage::Verify => "verify, a stage",
        Stage::Ingress => "ingress, a stage",
        Stage::Egress => "egress, a stage",
        Stage::Deparser => "deparser, a stage",
    }
}

impl Fun<'_, '_> {
    /// Emits the function of the parser, of ingress or of egress.
    pub fn main(mut self, parser: bool, reach: &Reach) -> HashSet<Slot> {
        if parser {
            let position = self.b.declare_var(I64);
            let v = self.machine_word(std::mem::offset_of!(Machine, position));
            self.b.def_var(position, v);
            self.position = Some(position);
        }
        // Each of these stages has a single start.
        if let Some(start) = reach.order.first() {
            self.jump(self.blocks[start]);
        }
        self.places(reach);
        self.finish()
    }

    /// Emits the function that verifies checksums. The function returns whether a checksum is wrong.
    pub fn verify(mut self, reach: &Reach) -> HashSet<Slot> {
        let wrong = self.b.declare_var(I64);
        let zero = self.number(0);
        self.b.def_var(wrong, zero);
        for &i in &self.p.verify {
            let field = self.p.checksums[i].field;
            self.with_checksum(i, |f, sum| {
                let stated = f.get(field.slot);
                let differs = f.compare(IntCC::NotEqual, sum, stated);
                let before = f.b.use_var(wrong);
                let v = f.b.ins().bor(before, differs);
                f.b.def_var(wrong, v);
            });
        }
        let wrong = self.b.use_var(wrong);
        self.b.ins().return_(&[wrong]);
        self.places(reach);
        self.finish()
    }

    /// Emits the function that updates checksums, runs the deparser's primitives, writes the headers, and stores the
    /// headers' length in the frame.
    pub fn deparser(mut self, reach: &Reach) -> HashSet<Slot> {
        for &i in &self.p.update {
            let field = self.p.checksums[i].field;
            self.with_checksum(i, |f, sum| {
                let mask = mask64(field.width);
                let sum = if mask == u64::MAX { sum } else { f.b.ins().band_imm(sum, mask as i64) };
                f.set(field.slot, sum);
            });
            self.forget(&[field.slot]);
        }
        if let Some(pc) = self.p.code.deparser {
            self.run(For::Deparser, pc);
        }
        let length = self.headers();
        self.set_frame_word(std::mem::offset_of!(Frame, head_length), length);
        let done = self.number(DONE as u64);
        self.b.ins().return_(&[done]);
        self.places(reach);
        self.finish()
    }

    /// Emits code that computes a checksum and passes it to `then`. The code runs only if the checksum's header is
    /// valid and the checksum's condition is true.
    fn with_checksum(&mut self, checksum: usize, then: impl FnOnce(&mut Self, Value)) {
        let c = &self.p.checksums[checksum];
        let (start, slot) = self.p.code.conditions[checksum];
        let on = self.b.create_block();
        if let Some(valid) = c.valid {
            let valid = self.get(valid);
            let absent = self.is_zero(valid);
            self.branch_off(absent, on);
        }
        if let Some(pc) = start {
            self.run(For::Condition(checksum as u16), pc);
        }
        let before = self.known.clone();
        let holds = self.get(slot);
        let fails = self.is_zero(holds);
        self.branch_off(fails, on);
        let sum = self.calculation(c.calculation);
        then(self, sum);
        self.jump(on);
        self.b.switch_to_block(on);
        self.known = before;
        if start.is_some() {
            self.known.clear();
        }
    }
}
