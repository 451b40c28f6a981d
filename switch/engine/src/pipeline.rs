//! Processes a frame by parser, ingress, traffic manager, egress and deparser, in the order of BMv2's `simple_switch`.
//!
//! Each pass of a packet through these stages runs to its end without waiting. The engine has no queues: the queueing
//! metadata describes the queues of the caller's ports.

use crate::bits::to_bytes;
use crate::code::Code;
use crate::control::Digest;
use crate::layout::{FieldRef, Slots, mask64};
use crate::machine::{Machine, Requests, Stop};
use crate::machine_code::MachineCode;
use crate::native::{Progress, Stage};
use crate::phv::Head;
use crate::program::{DigestId, DigestPart, Program};
use crate::queue::{Start, Work};
use crate::sink::{Backlog, Sink};
use crate::trace::TraceEvent;

/// Values of `standard_metadata.instance_type`, with the numbers that BMv2 assigns.
mod instance {
    pub const NORMAL: u64 = 0;
    pub const INGRESS_CLONE: u64 = 1;
    pub const EGRESS_CLONE: u64 = 2;
    pub const RECIRCULATED: u64 = 4;
    pub const REPLICATED: u64 = 5;
    pub const RESUBMITTED: u64 = 6;
}

/// Runs all passes of one frame through the pipeline: the first pass, and the passes after resubmission, recirculation
/// or cloning. Contains references to the engine's state that the passes use.
pub struct Pass<'a> {
    pub p: &'a Program,
    /// The machine code of `p`. If it is `None`, `code` is interpreted.
    pub native: Option<&'a MachineCode>,
    pub code: &'a Code,
    pub s: &'a mut Slots,
    pub m: &'a mut Machine,
    pub head: &'a mut Head,
    /// The frame's ingress port.
    pub port: u32,
    /// The number of passes that have been made after the first pass, to compare with `Options::max_passes`.
    pub budget: u32,
}

impl Pass<'_> {
    /// Processes the frame: runs its first pass, and then all passes that the queue contains for the packet and its
    /// clones.
    pub fn frame(&mut self, frame: &[u8], out: &mut impl Sink) {
        // `max_passes` further passes are allowed, and one more buffer is needed for a pass that is refused.
        self.m.queue.begin((self.m.options.max_passes as usize).saturating_add(1));
        self.ingress(frame, instance::NORMAL, (&[], &[]), out);
        while let Some(work) = self.m.queue.take() {
            self.budget += 1;
            if self.budget > self.m.options.max_passes {
                self.m.drops.too_many_passes += 1 + self.m.queue.len() as u64;
                let most = self.m.options.max_passes;
                self.m.note(|| TraceEvent::Drop(format!("more than {most} further passes")));
                self.m.queue.give_back(work);
                return;
            }
            self.further_pass(&work, out);
            self.m.queue.give_back(work);
        }
    }

    /// Runs one of the passes that follow the frame's first pass.
    #[cold]
    fn further_pass(&mut self, work: &Work, out: &mut impl Sink) {
        match work.start {
            Start::Ingress { kind, fields } => {
                let fields = &self.p.objects.field_lists[usize::from(fields)];
                self.ingress(&work.bytes, kind, (fields, &work.words), out);
            }
            Start::Egress { port, length, frame_length } => {
                self.s[..work.words.len()].copy_from_slice(&work.words);
                (self.m.packet_length, self.m.frame_length, self.m.position) = (length, frame_length, 0);
                self.m.limit = usize::MAX;
                self.egress(port, &work.bytes, out);
            }
        }
    }

    /// Sets the slots to the initial values of a packet.
    fn fresh(&mut self) {
        match self.native {
            Some(native) => native.fresh(self.p, self.s),
            None => self.p.phv.start(self.s),
        }
    }

    /// Runs one pass, beginning with the parser. `carried` contains the fields that keep their values from the previous
    /// pass, and the words of these fields.
    fn ingress(&mut self, frame: &[u8], kind: u64, carried: (&[FieldRef], &[u64]), out: &mut impl Sink) {
        self.m.packet_length = frame.len() as u64;
        self.m.frame_length = frame.len() as u64;
        self.m.position = 0;
        self.m.limit = usize::MAX;
        self.m.requests = Requests::default();
        if let Some(native) = self.native
            && kind == instance::NORMAL
        {
            return self.fast_path(native, frame, out);
        }
        let st = &self.p.standard;
        self.fresh();
        if kind == instance::NORMAL {
            st.ingress_port.set(self.s, self.port.into());
            st.ingress_timestamp.set(self.s, self.m.now / 1000);
        }
        restore_fields(self.s, carried.0, carried.1);
        st.packet_length.set(self.s, frame.len() as u64);
        st.instance_type.set(self.s, kind);
        let port = self.port;
        self.m.note_start(|| TraceEvent::Ingress { port, instance_type: kind as u32, length: frame.len() });
        if self.parse(frame).and_then(|()| self.pipeline(Stage::Ingress, frame)).is_ok() {
            self.after_ingress(frame, out);
        }
    }

    /// Runs the fast path of machine code. Rust performs the steps that the fast path did not reach.
    fn fast_path(&mut self, native: &MachineCode, frame: &[u8], out: &mut impl Sink) {
        match native.fast_path(self.p, self.m, self.s, self.head, frame, self.port) {
            Progress::Deparsed { port, parsed } => self.emit(port, &frame[parsed..], None, out),
            Progress::Egress { port, parsed, ended } => {
                if ended.or_else(|stop| self.abort(stop)).is_ok() {
                    self.after_egress(port, &frame[parsed..], out);
                }
            }
            Progress::Ingress(ended) => {
                if ended.or_else(|stop| self.abort(stop)).is_ok() {
                    self.after_ingress(frame, out);
                }
            }
            Progress::Parser(stop) => {
                let parsed = self.parsed(Err(stop), frame);
                if parsed.and_then(|()| self.pipeline(Stage::Ingress, frame)).is_ok() {
                    self.after_ingress(frame, out);
                }
            }
        }
    }

    /// Runs the parser, verifies the checksums, and writes the results to the metadata. Returns an error if the packet
    /// is dropped because of a failed assertion.
    fn parse(&mut self, frame: &[u8]) -> Result<(), ()> {
        self.m.position = 0;
        self.m.refuel();
        let ran = self.run(Stage::Parser, frame);
        self.parsed(ran, frame)
    }

    /// Performs the steps after the parser: writes the parser's error, if any, to the metadata and verifies the
    /// checksums. Returns an error if the packet is dropped because of a failed assertion.
    fn parsed(&mut self, ran: Result<(), Stop>, frame: &[u8]) -> Result<(), ()> {
        let error = match ran {
            Ok(()) => self.p.errors.no_error,
            Err(Stop::Parser(error)) => error,
            Err(Stop::Fuel) => self.p.errors.parser_timeout,
            Err(Stop::Assertion) => return self.abort(Stop::Assertion),
        };
        if error != self.p.errors.no_error && self.m.trace.is_some() {
            let name = self.p.errors.names.get(&error).cloned().unwrap_or_else(|| error.to_string());
            self.m.note(|| TraceEvent::ParserError(name));
        }
        let st = &self.p.standard;
        st.parser_error.set(self.s, error);
        let wrong = self.verify(frame);
        self.p.standard.checksum_error.set(self.s, wrong.into());
        Ok(())
    }

    /// Returns whether any checksum is wrong.
    fn verify(&mut self, frame: &[u8]) -> bool {
        if let Some(native) = self.native {
            if !native.is_nonempty(Stage::Verify) {
                return false;
            }
            let wrong = native.run(Stage::Verify, self.p, self.m, self.s, self.head, frame);
            return wrong.is_ok_and(|wrong| wrong != 0);
        }
        let mut wrong = false;
        for &i in &self.p.verify {
            let c = &self.p.checksums[i];
            if c.valid.is_some_and(|v| self.s[usize::from(v)] == 0) || !self.condition(i) {
                continue;
            }
            let payload = &frame[self.m.position..];
            let sum =
                self.p.objects.calculations[c.calculation].output(self.s, &self.p.phv, payload, &mut self.m.scratch);
            if sum != self.s[usize::from(c.field.slot)] {
                wrong = true;
                self.m.note(|| TraceEvent::ChecksumError(c.name.clone()));
            }
        }
        wrong
    }

    /// Returns whether a checksum's condition is true.
    fn condition(&mut self, checksum: usize) -> bool {
        let (start, slot) = self.code.conditions[checksum];
        let ran = start.is_none_or(|start| self.m.run(self.p, self.code, self.s, start, &[]).is_ok());
        ran && self.s[usize::from(slot)] != 0
    }

    /// Runs the instructions of the parser, of ingress or of egress.
    fn run(&mut self, stage: Stage, data: &[u8]) -> Result<(), Stop> {
        if let Some(native) = self.native {
            return native.run(stage, self.p, self.m, self.s, self.head, data).map(|_| ());
        }
        let start = match stage {
            Stage::Parser => self.code.parser,
            Stage::Egress => self.code.egress,
            _ => self.code.ingress,
        };
        self.m.run(self.p, self.code, self.s, start, data)
    }

    fn pipeline(&mut self, stage: Stage, data: &[u8]) -> Result<(), ()> {
        if self.native.is_some_and(|native| !native.is_nonempty(stage)) {
            return Ok(());
        }
        self.m.refuel();
        let result = self.run(stage, data);
        self.m.requests.exit = false;
        result.or_else(|stop| self.abort(stop))
    }

    #[cold]
    fn abort(&mut self, stop: Stop) -> Result<(), ()> {
        let (count, text) = match stop {
            Stop::Assertion => (&mut self.m.drops.assertions, "assert or assume failed"),
            Stop::Fuel | Stop::Parser(_) => (&mut self.m.drops.endless_loops, "a loop that would not end"),
        };
        *count += 1;
        self.m.requests = Requests::default();
        self.m.note(|| TraceEvent::Drop(text.into()));
        Err(())
    }

    fn after_ingress(&mut self, frame: &[u8], out: &mut impl Sink) {
        let st = &self.p.standard;
        let mut recirculate = None;
        if self.m.requests.any() {
            let requests = std::mem::take(&mut self.m.requests);
            if self.carry_out(requests, frame, out) {
                return;
            }
            recirculate = requests.recirculate;
        }
        let group = st.mcast_grp.map_or(0, |slot| self.s[usize::from(slot)]);
        if group != 0 {
            st.instance_type.set(self.s, instance::REPLICATED);
            self.multicast(group as u32, &frame[self.m.position..], out);
            return;
        }
        let spec = self.s[usize::from(st.egress_spec.slot)];
        if spec == u64::from(self.m.options.drop_port) {
            self.m.drops.ingress += 1;
            self.m.note_drop_port(self.p, self.s, "ingress");
            return;
        }
        st.instance_type.set(self.s, instance::NORMAL);
        // A recirculation that ingress requested applies to the packet, but not to its copies. BMv2 behaves in this way
        // too.
        if recirculate.is_some() {
            self.m.request(|r| r.recirculate = recirculate);
        }
        self.egress(spec as u32, &frame[self.m.position..], out);
    }

    /// Performs the requests of ingress, except recirculation. Returns true if the packet is resubmitted, which ends
    /// this pass.
    #[cold]
    fn carry_out(&mut self, requests: Requests, frame: &[u8], out: &mut impl Sink) -> bool {
        if let Some((session, fields)) = requests.clone {
            self.ingress_clone(session, fields, frame, out);
        }
        if let Some(digest) = requests.digest {
            self.digest(digest);
        }
        if let Some(fields) = requests.resubmit {
            let work = self.m.queue.add(Start::Ingress { kind: instance::RESUBMITTED, fields });
            save_fields(self.s, &self.p.objects.field_lists[usize::from(fields)], &mut work.words);
            work.bytes.extend_from_slice(frame);
        }
        requests.resubmit.is_some()
    }

    fn ingress_clone(&mut self, session: u32, fields: u16, frame: &[u8], out: &mut impl Sink) {
        let Some(config) = self.m.clones.get(&session) else {
            self.m.drops.unknown_clone_session += 1;
            self.m.note(|| TraceEvent::Drop(format!("clone session {session} does not exist")));
            return;
        };
        let (replicas, limit) = (config.replicas.len(), limit(config.packet_length_bytes));
        let fields = &self.p.objects.field_lists[usize::from(fields)];
        // `values` has three sections: all values of the packet, the words of the field list's fields, and all values
        // of a clone.
        let mut values = std::mem::take(&mut self.m.values);
        let size = self.p.phv.fresh.len();
        values.clear();
        values.extend_from_slice(&self.s[..size]);
        save_fields(self.s, fields, &mut values);
        let parsed = values.len();
        let before = (self.m.packet_length, self.m.position, self.m.limit, self.m.drop_port);
        let st = &self.p.standard;
        self.fresh();
        st.ingress_port.set(self.s, self.port.into());
        if self.parse(frame).is_ok() {
            self.p.phv.reset_metadata(self.s);
            restore_fields(self.s, fields, &values[size..parsed]);
            st.instance_type.set(self.s, instance::INGRESS_CLONE);
            self.m.packet_length = frame.len() as u64;
            values.extend_from_slice(&self.s[..size]);
            let position = self.m.position;
            for i in 0..replicas {
                let r = self.m.clones[&session].replicas[i];
                self.s[..size].copy_from_slice(&values[parsed..]);
                (self.m.packet_length, self.m.position) = (frame.len() as u64, position);
                self.m.limit = limit;
                st.egress_rid.set(self.s, r.instance.into());
                self.egress(r.port, &frame[position..], out);
            }
        }
        self.s[..size].copy_from_slice(&values[..size]);
        (self.m.packet_length, self.m.position, self.m.limit, self.m.drop_port) = before;
        self.m.requests = Requests::default();
        self.m.values = values;
    }

    fn multicast(&mut self, group: u32, payload: &[u8], out: &mut impl Sink) {
        let replicas = self.m.multicast.get(&group).map_or(0, Vec::len);
        if replicas == 0 {
            self.m.drops.empty_multicast += 1;
            self.m.note(|| TraceEvent::Drop(format!("multicast group {group} has no replicas")));
        }
        let mut values = std::mem::take(&mut self.m.values);
        values.clear();
        values.extend_from_slice(&self.s[..self.p.phv.fresh.len()]);
        let original = (self.m.packet_length, self.m.limit);
        for i in 0..replicas {
            let r = &self.m.multicast[&group][i];
            let (port, instance) = (r.port, r.instance);
            self.s[..values.len()].copy_from_slice(&values);
            (self.m.packet_length, self.m.limit) = original;
            self.p.standard.egress_rid.set(self.s, instance.into());
            self.egress(port, payload, out);
        }
        self.m.values = values;
    }

    #[cold]
    fn digest(&mut self, digest: u16) {
        let id = DigestId(digest.into());
        if !self.m.digest_configs.contains_key(&id.0) {
            return;
        }
        if self.m.digests.len() >= self.m.options.max_digests {
            self.m.drops.digests_lost += 1;
            let most = self.m.options.max_digests;
            self.m.note(|| TraceEvent::Drop(format!("digest message: {most} wait already")));
            return;
        }
        let bytes = |field: &DigestPart| match field {
            DigestPart::Field(f) => to_bytes(self.s, *f),
            DigestPart::Constant(c) => c.clone(),
        };
        let fields = self.p.objects.digest_parts[usize::from(digest)].iter().map(bytes).collect();
        self.m.digests.push_back(Digest { digest: id, time: self.m.now, fields });
    }

    fn egress(&mut self, port: u32, payload: &[u8], out: &mut impl Sink) {
        let st = &self.p.standard;
        let micros = self.m.now / 1000;
        st.egress_timestamp.set(self.s, micros);
        st.enq_timestamp.set(self.s, micros);
        let reads_backlog = self.native.is_none_or(MachineCode::reads_backlog);
        let Backlog { packets, wait_us } = if reads_backlog { out.backlog(port) } else { Backlog::default() };
        st.enq_qdepth.set(self.s, packets.into());
        st.deq_qdepth.set(self.s, packets.into());
        st.deq_timedelta.set(self.s, wait_us.into());
        st.egress_port.set(self.s, port.into());
        st.egress_spec.set(self.s, u64::from(self.m.options.drop_port) + 1);
        st.packet_length.set(self.s, self.m.packet_length);
        self.m.note_start(|| TraceEvent::Egress { port });
        // From here on the machine parses no more bytes, and `payload` contains all remaining bytes of the frame.
        self.m.position = 0;
        if self.pipeline(Stage::Egress, payload).is_ok() {
            self.after_egress(port, payload, out);
        }
    }

    fn after_egress(&mut self, port: u32, payload: &[u8], out: &mut impl Sink) {
        let st = &self.p.standard;
        let mut requests = Requests::default();
        if self.m.requests.any() {
            requests = std::mem::take(&mut self.m.requests);
        }
        if requests.clone.is_some() {
            self.m.leaving.clear();
            self.m.leaving.extend_from_slice(&self.s[..self.p.phv.fresh.len()]);
        }
        if self.s[usize::from(st.egress_spec.slot)] == u64::from(self.m.options.drop_port) {
            self.m.drops.egress += 1;
            self.m.note_drop_port(self.p, self.s, "egress");
        } else {
            self.deparse(port, payload, requests.recirculate, out);
        }
        if let Some((session, fields)) = requests.clone {
            self.egress_clones(session, fields, payload);
        }
    }

    /// Queues clones of the packet in the state that it has at the end of egress.
    #[cold]
    fn egress_clones(&mut self, session: u32, fields: u16, payload: &[u8]) {
        let Some(config) = self.m.clones.get(&session) else {
            self.m.drops.unknown_clone_session += 1;
            self.m.note(|| TraceEvent::Drop(format!("clone session {session} does not exist")));
            return;
        };
        let size = self.m.leaving.len();
        self.s[..size].copy_from_slice(&self.m.leaving);
        let fields = &self.p.objects.field_lists[usize::from(fields)];
        save_fields(self.s, fields, &mut self.m.leaving);
        let st = &self.p.standard;
        self.p.phv.reset_metadata(self.s);
        restore_fields(self.s, fields, &self.m.leaving[size..]);
        st.instance_type.set(self.s, instance::EGRESS_CLONE);
        let cloned_bytes = match limit(config.packet_length_bytes) {
            usize::MAX => payload.len(),
            n => n.saturating_sub(self.head_length()).min(payload.len()),
        };
        let (length, frame_length) = (self.m.packet_length, self.m.frame_length);
        for r in &config.replicas {
            st.egress_rid.set(self.s, r.instance.into());
            let work = self.m.queue.add(Start::Egress { port: r.port, length, frame_length });
            work.words.extend_from_slice(&self.s[..size]);
            work.bytes.extend_from_slice(&payload[..cloned_bytes]);
        }
    }

    /// Returns the number of bytes that the valid headers would occupy if they were written now.
    fn head_length(&self) -> usize {
        let phv = &self.p.phv;
        self.p
            .order
            .iter()
            .filter(|&&h| phv.is_valid(self.s, h.into()))
            .map(|&h| phv.header_bytes(self.s, h.into()))
            .sum()
    }

    fn deparse(&mut self, port: u32, payload: &[u8], recirculate: Option<u16>, out: &mut impl Sink) {
        let written = match self.native {
            Some(native) => native
                .run(Stage::Deparser, self.p, self.m, self.s, self.head, payload)
                .map(|length| self.head.cut(length as usize)),
            None => self.write_head(payload),
        };
        if written.or_else(|stop| self.abort(stop)).is_err() {
            return;
        }
        self.emit(port, payload, recirculate, out);
    }

    /// Passes the headers and the payload to the sink, or queues them for recirculation.
    fn emit(&mut self, port: u32, payload: &[u8], recirculate: Option<u16>, out: &mut impl Sink) {
        let head_length = self.head.bytes().len().min(self.m.limit);
        let head = &self.head.bytes()[..head_length];
        let payload = &payload[..payload.len().min(self.m.limit - head_length)];
        if let Some(fields) = recirculate {
            let work = self.m.queue.add(Start::Ingress { kind: instance::RECIRCULATED, fields });
            save_fields(self.s, &self.p.objects.field_lists[usize::from(fields)], &mut work.words);
            work.bytes.extend_from_slice(head);
            work.bytes.extend_from_slice(payload);
            return;
        }
        self.m.drops.emitted += 1;
        self.m.note(|| TraceEvent::Emit { port, length: head.len() + payload.len() });
        out.emit(port, head, payload);
    }

    /// Updates checksums, runs the deparser's primitives and writes the valid headers into the header buffer. Returns
    /// an error if the primitives end early.
    fn write_head(&mut self, payload: &[u8]) -> Result<(), Stop> {
        let p = self.p;
        for &i in &p.update {
            let c = &p.checksums[i];
            if c.valid.is_none_or(|v| self.s[usize::from(v)] != 0) && self.condition(i) {
                let sum = p.objects.calculations[c.calculation].output(self.s, &p.phv, payload, &mut self.m.scratch);
                self.s[usize::from(c.field.slot)] = sum & mask64(c.field.width);
            }
        }
        if let Some(start) = self.code.deparser {
            self.m.run(p, self.code, self.s, start, payload)?;
        }
        self.head.clear();
        for &h in &p.order {
            let at = &p.phv.headers[usize::from(h)];
            if self.s[usize::from(at.valid)] != 0 {
                p.phv.plans[usize::from(at.plan)].deparse(self.s, at.base, self.head);
            }
        }
        Ok(())
    }
}

/// Appends the current words of the fields to `words`.
fn save_fields(s: &Slots, fields: &[FieldRef], words: &mut Vec<u64>) {
    for f in fields {
        let at = usize::from(f.slot);
        words.extend_from_slice(&s[at..at + f.slots()]);
    }
}

/// Restores the fields from the words that [`save_fields`] saved.
fn restore_fields(s: &mut Slots, fields: &[FieldRef], words: &[u64]) {
    let mut from = 0;
    for f in fields {
        let (at, n) = (usize::from(f.slot), f.slots());
        s[at..at + n].copy_from_slice(&words[from..from + n]);
        from += n;
    }
}

/// Converts the packet length of a clone session to a limit in bytes. A packet length of 0 means that there is no
/// limit.
fn limit(bytes: u32) -> usize {
    if bytes == 0 { usize::MAX } else { bytes as usize }
}
