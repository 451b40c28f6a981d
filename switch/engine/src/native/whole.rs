//! A packet's whole way in one call: start values, parser, checksums, ingress, egress, deparser.
//!
//! It goes on from part to part as long as nothing is out of the ordinary, and otherwise returns how far it came: Rust
//! (`crate::pipeline`) does the rest.

use std::collections::HashSet;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value};

use super::abi::{DONE, Frame, PAST_EGRESS, PAST_INGRESS, SENT};
use super::emit::Fun;
use super::fresh;
use super::parts::{Part, name};
use crate::code::Ext;
use crate::layout::{Cell, Slot};
use crate::machine::{FUEL, Machine, Requests};
use crate::program::Program;

/// What the function is made of, beside the program.
pub struct Way<'a> {
    /// Slots that get their start values; `None`: the caller sees to it.
    pub fresh: Option<&'a [Slot]>,
    /// Slots that somebody reads: what the architecture knows of a packet goes into these only.
    pub read: &'a HashSet<Slot>,
    /// Parts that do something.
    pub verify: bool,
    pub egress: bool,
    /// Somebody reads what waits at a port, for which Rust asks.
    pub backlog: bool,
}

/// Whether the program can ask for a clone, a digest or another pass.
fn can_ask(p: &Program) -> bool {
    let asks = |e: &Ext| {
        matches!(
            e,
            Ext::CloneIngress { .. }
                | Ext::CloneEgress { .. }
                | Ext::Resubmit { .. }
                | Ext::Recirculate { .. }
                | Ext::Digest { .. }
        )
    };
    p.code.ext.iter().any(asks)
}

impl Fun<'_, '_> {
    pub fn whole(mut self, way: &Way) {
        let st = &self.p.standard;
        if let Some(needed) = way.fresh {
            fresh::stores(&mut self.b, self.slots, needed, &self.p.phv.fresh);
        }
        let port = self.frame_word(std::mem::offset_of!(Frame, port));
        self.tell(way, st.ingress_port, port);
        let micros = self.frame_word(std::mem::offset_of!(Frame, micros));
        self.tell(way, st.ingress_timestamp, micros);
        let length = self.frame_word(std::mem::offset_of!(Frame, length));
        self.tell(way, st.packet_length, length);
        self.part(Part::Parser, 0);
        let no_error = self.number(self.p.errors.no_error);
        self.tell(way, st.parser_error, no_error);
        if way.read.contains(&st.checksum_error.slot) {
            let wrong = if way.verify { self.call(name(Part::Verify), &[self.frame])[0] } else { self.number(0) };
            self.tell(way, st.checksum_error, wrong);
        }
        self.part(Part::Ingress, PAST_INGRESS);
        if way.backlog {
            let rest = self.number((PAST_INGRESS + DONE) as u64);
            self.b.ins().return_(&[rest]);
            self.finish();
            return;
        }
        let asks = can_ask(self.p);
        if asks {
            self.unless_asked(PAST_INGRESS);
        }
        if let Some(slot) = st.mcast_grp.filter(|slot| way.read.contains(slot)) {
            let group = self.get(slot);
            self.leave_if(group, PAST_INGRESS);
        }
        let (spec, drop) = (self.get(st.egress_spec.slot), self.get(st.drop_port));
        let dropped = self.b.ins().icmp(IntCC::Equal, spec, drop);
        self.leave_if(dropped, PAST_INGRESS);
        self.before_egress(way, spec, drop);
        if way.egress {
            self.part(Part::Egress, PAST_EGRESS);
            if asks {
                self.unless_asked(PAST_EGRESS);
            }
            let spec = self.get(st.egress_spec.slot);
            let dropped = self.b.ins().icmp(IntCC::Equal, spec, drop);
            self.leave_if(dropped, PAST_EGRESS);
        }
        if self.p.code.deparser.is_some() {
            self.part(Part::Deparser, PAST_EGRESS);
        } else {
            self.call(name(Part::Deparser), &[self.frame]);
        }
        let sent = self.number(SENT as u64);
        self.b.ins().return_(&[sent]);
        self.finish();
    }

    /// What is between ingress and egress, for a packet that leaves by port `spec`.
    fn before_egress(&mut self, way: &Way, spec: Value, drop: Value) {
        let st = &self.p.standard;
        let port = self.b.ins().band_imm(spec, i64::from(u32::MAX));
        self.set_frame_word(std::mem::offset_of!(Frame, port), port);
        self.tell(way, st.egress_port, port);
        let micros = self.frame_word(std::mem::offset_of!(Frame, micros));
        self.tell(way, st.egress_timestamp, micros);
        self.tell(way, st.enq_timestamp, micros);
        let zero = self.number(0);
        self.tell(way, st.instance_type, zero);
        let other = self.b.ins().iadd_imm(drop, 1);
        self.tell(way, st.egress_spec, other);
        let length = self.machine_word(std::mem::offset_of!(Machine, packet_length));
        self.tell(way, st.packet_length, length);
        // the payload stands for the whole packet here: nothing is parsed any more
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

    /// Sets a field that the architecture knows, if anybody reads it.
    fn tell(&mut self, way: &Way, cell: Cell, v: Value) {
        if way.read.contains(&cell.slot) {
            let v = self.cut(v, cell.mask().leading_zeros() as u8);
            self.set(cell.slot, v);
        }
    }

    /// Runs a part; what it returns, unless it is done, is returned on top of `past`.
    fn part(&mut self, part: Part, past: i64) {
        let fuel = self.number(FUEL.into());
        self.b.ins().istore32(super::emit::there(), fuel, self.machine, std::mem::offset_of!(Machine, fuel) as i32);
        let status = self.call(name(part), &[self.frame])[0];
        self.known.clear();
        let (stop, on) = (self.b.create_block(), self.b.create_block());
        self.branch(status, stop, on);
        self.b.set_cold_block(stop);
        self.b.switch_to_block(stop);
        let status = self.b.ins().iadd_imm(status, past);
        self.b.ins().return_(&[status]);
        self.b.switch_to_block(on);
    }

    /// Leaves the rest to Rust if the part has asked for something.
    fn unless_asked(&mut self, past: i64) {
        let at = std::mem::offset_of!(Machine, requests) + std::mem::offset_of!(Requests, asked);
        let asked = self.machine_word(at);
        self.leave_if(asked, past);
    }

    fn leave_if(&mut self, condition: Value, past: i64) {
        let end = self.end(past + DONE);
        self.branch_off(condition, end);
    }
}
