//! The fast path: one function that processes a packet completely. It sets the initial values of the slots, and runs
//! parser, checksums, ingress, egress and deparser.
//!
//! The function returns early if a stage fails (parser error, failed assertion, too many backward jumps), if the packet
//! is dropped or multicast, or if a clone, a digest or another pass is requested. It always returns after ingress if
//! the program reads a port's backlog. The status contains the last stage, and Rust (`crate::pipeline`) continues from
//! there.

use std::collections::HashSet;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value};

use super::abi::{DONE, Frame, PAST_EGRESS, PAST_INGRESS, SENT};
use super::emit::Fun;
use super::fresh;
use super::parts::{Stage, name};
use crate::code::Ext;
use crate::layout::{Cell, Slot};
use crate::machine::{FUEL, Machine, Requests};
use crate::program::Program;

/// Properties of the program that determine which code the fast path contains.
pub struct FastPath<'a> {
    /// The slots that the function must initialize; `None` if the caller initializes all slots.
    pub fresh: Option<&'a [Slot]>,
    /// The slots that any code of the program may read. The function writes values of the standard metadata only to
    /// these slots.
    pub read: &'a HashSet<Slot>,
    /// Whether the checksum verification (`verify`) and the egress stage (`egress`) have any code.
    pub verify: bool,
    pub egress: bool,
    /// Whether the program reads the backlog of a port (the number of waiting frames, or their waiting time). Rust must
    /// query the backlog before egress.
    pub backlog: bool,
}

/// Returns whether the program can request a clone, a digest or another pass of the packet.
fn can_request(p: &Program) -> bool {
    let requests = |e: &Ext| {
        matches!(
            e,
            Ext::CloneIngress { .. }
                | Ext::CloneEgress { .. }
                | Ext::Resubmit { .. }
                | Ext::Recirculate { .. }
                | Ext::Digest { .. }
        )
    };
    p.code.ext.iter().any(requests)
}

impl Fun<'_, '_> {
    /// Emits the code of the fast path.
    pub fn fast_path(mut self, fast_path: &FastPath) {
        let st = &self.p.standard;
        if let Some(needed) = fast_path.fresh {
            fresh::stores(&mut self.b, self.slots, needed, &self.p.phv.fresh);
        }
        let port = self.frame_word(std::mem::offset_of!(Frame, port));
        self.set_standard(fast_path, st.ingress_port, port);
        let micros = self.frame_word(std::mem::offset_of!(Frame, micros));
        self.set_standard(fast_path, st.ingress_timestamp, micros);
        let length = self.frame_word(std::mem::offset_of!(Frame, length));
        self.set_standard(fast_path, st.packet_length, length);
        self.stage(Stage::Parser, 0);
        let no_error = self.number(self.p.errors.no_error);
        self.set_standard(fast_path, st.parser_error, no_error);
        if fast_path.read.contains(&st.checksum_error.slot) {
            let wrong =
                if fast_path.verify { self.call(name(Stage::Verify), &[self.frame])[0] } else { self.number(0) };
            self.set_standard(fast_path, st.checksum_error, wrong);
        }
        self.stage(Stage::Ingress, PAST_INGRESS);
        if fast_path.backlog {
            let rest = self.number((PAST_INGRESS + DONE) as u64);
            self.b.ins().return_(&[rest]);
            self.finish();
            return;
        }
        let requests = can_request(self.p);
        if requests {
            self.leave_if_requested(PAST_INGRESS);
        }
        if let Some(slot) = st.mcast_grp.filter(|slot| fast_path.read.contains(slot)) {
            let group = self.get(slot);
            self.leave_if(group, PAST_INGRESS);
        }
        let (spec, drop) = (self.get(st.egress_spec.slot), self.get(st.drop_port));
        let dropped = self.b.ins().icmp(IntCC::Equal, spec, drop);
        self.leave_if(dropped, PAST_INGRESS);
        self.before_egress(fast_path, spec, drop);
        if fast_path.egress {
            self.stage(Stage::Egress, PAST_EGRESS);
            if requests {
                self.leave_if_requested(PAST_EGRESS);
            }
            let spec = self.get(st.egress_spec.slot);
            let dropped = self.b.ins().icmp(IntCC::Equal, spec, drop);
            self.leave_if(dropped, PAST_EGRESS);
        }
        if self.p.code.deparser.is_some() {
            self.stage(Stage::Deparser, PAST_EGRESS);
        } else {
            self.call(name(Stage::Deparser), &[self.frame]);
        }
        let sent = self.number(SENT as u64);
        self.b.ins().return_(&[sent]);
        self.finish();
    }

    /// Emits code that sets the standard metadata between ingress and egress, for a packet whose egress port is `spec`.
    fn before_egress(&mut self, fast_path: &FastPath, spec: Value, drop: Value) {
        let st = &self.p.standard;
        let port = self.b.ins().band_imm(spec, i64::from(u32::MAX));
        self.set_frame_word(std::mem::offset_of!(Frame, port), port);
        self.set_standard(fast_path, st.egress_port, port);
        let micros = self.frame_word(std::mem::offset_of!(Frame, micros));
        self.set_standard(fast_path, st.egress_timestamp, micros);
        self.set_standard(fast_path, st.enq_timestamp, micros);
        let zero = self.number(0);
        self.set_standard(fast_path, st.instance_type, zero);
        let no_drop = self.b.ins().iadd_imm(drop, 1);
        self.set_standard(fast_path, st.egress_spec, no_drop);
        let length = self.machine_word(std::mem::offset_of!(Machine, packet_length));
        self.set_standard(fast_path, st.packet_length, length);
        // From here on `data` in the frame refers to the bytes after the parsed headers, because parsing has ended.
        let parsed = self.machine_word(std::mem::offset_of!(Machine, position));
        self.set_frame_word(std::mem::offset_of!(Frame, parsed), parsed);
        let data = self.frame_word(std::mem::offset_of!(Frame, data));
        let data = self.b.ins().iadd(data, parsed);
        self.set_frame_word(std::mem::offset_of!(Frame, data), data);
        let length = self.frame_word(std::mem::offset_of!(Frame, length));
        let length = self.b.ins().isub(length, parsed);
        self.set_frame_word(std::mem::offset_of!(Frame, length), length);
        self.set_machine_word(std::mem::offset_of!(Machine, position), zero);
    }

    /// Writes a value to a field of the standard metadata, if the program reads this field anywhere.
    fn set_standard(&mut self, fast_path: &FastPath, cell: Cell, v: Value) {
        if fast_path.read.contains(&cell.slot) {
            let v = self.cut(v, cell.mask().leading_zeros() as u8);
            self.set(cell.slot, v);
        }
    }

    /// Emits a call of a stage's function. If the stage does not end with `DONE`, the fast path returns the stage's
    /// status plus `past`.
    fn stage(&mut self, stage: Stage, past: i64) {
        let fuel = self.number(FUEL.into());
        self.b.ins().istore32(super::emit::trusted(), fuel, self.machine, std::mem::offset_of!(Machine, fuel) as i32);
        let status = self.call(name(stage), &[self.frame])[0];
        self.known.clear();
        let (stop, on) = (self.b.create_block(), self.b.create_block());
        self.branch(status, stop, on);
        self.b.set_cold_block(stop);
        self.b.switch_to_block(stop);
        let status = self.b.ins().iadd_imm(status, past);
        self.b.ins().return_(&[status]);
        self.b.switch_to_block(on);
    }

    /// Emits a return to Rust for the case that the stage has requested a clone, a digest or another pass.
    fn leave_if_requested(&mut self, past: i64) {
        let at = std::mem::offset_of!(Machine, requests) + std::mem::offset_of!(Requests, pending);
        let pending = self.machine_word(at);
        self.leave_if(pending, past);
    }

    fn leave_if(&mut self, condition: Value, past: i64) {
        let end = self.end(past + DONE);
        self.branch_off(condition, end);
    }
}
