//! Computes [`World`]: how a program uses its slots outside of its instructions, which the optimizer must take into
//! account.

use std::collections::HashSet;

use crate::code::Code;
use crate::codegen::Pool;
use crate::dataflow::{Slots, TableEffects, World};
use crate::layout::{FieldRef, Layout, Slot};
use crate::program::{Action, Checksum, DigestPart, Objects, Profile, Standard, Table};

/// The components of a program from which [`World`] is computed.
pub struct Parts<'a> {
    /// The layout of the headers, without temporaries and constants.
    pub layout: &'a Layout,
    /// The number of slots in use, including temporaries and constants.
    pub used: usize,
    pub pool: &'a Pool,
    pub tables: &'a [Table],
    pub profiles: &'a [Profile],
    pub actions: &'a [Action],
    pub objects: &'a Objects,
    pub standard: &'a Standard,
    pub checksums: Vec<&'a Checksum>,
    pub code: &'a Code,
}

fn slots(f: &FieldRef) -> impl Iterator<Item = Slot> + use<> {
    let first = f.slot;
    (0..f.slots() as Slot).map(move |i| first + i)
}

impl World {
    pub fn new(p: &Parts) -> World {
        let layout = p.layout;
        let occupied = |h: &crate::layout::Header| -> Vec<Slot> {
            let n = layout.types[h.header_type].slots as Slot;
            let optional = h.union_others.iter().map(|&o| layout.headers[o].valid);
            (0..n).map(|i| h.base + i).chain(optional).collect()
        };
        let headers: Vec<Vec<Slot>> = layout.headers.iter().map(occupied).collect();
        let mut constants = std::collections::HashMap::new();
        let mut values = std::collections::HashMap::new();
        for &(slot, v) in &p.pool.init {
            constants.insert(slot, v);
            values.entry(v).or_insert(slot);
        }
        World {
            used: p.used,
            constants,
            values,
            first_temporary: layout.fresh.len() as Slot,
            bits: bits(p),
            private: private(p, &headers),
            tables: p.tables.iter().map(|t| table(p, t, &headers)).collect(),
            calculations: p.objects.calculations.iter().map(|c| c.slots(&headers)).collect(),
            headers,
        }
    }
}

/// Returns the maximum number of bits of each slot's value. For an unsigned field of up to 64 bits, this is its width.
fn bits(p: &Parts) -> Vec<u8> {
    let mut bits = vec![64; p.used];
    let mut note = |f: FieldRef| {
        if f.narrow() && !f.signed {
            bits[usize::from(f.slot)] = f.width as u8;
        }
    };
    for h in &p.layout.headers {
        for f in &p.layout.types[h.header_type].fields {
            note(f.field.offset(h.base));
        }
        note(FieldRef { slot: h.valid, width: 1, signed: false, varbit: false });
    }
    p.actions.iter().flat_map(|a| &a.params).copied().for_each(note);
    bits
}

/// Returns the slots that only instructions, tables and calculations read: metadata without the standard metadata,
/// temporaries, and parameters of actions.
fn private(p: &Parts, headers: &[Vec<Slot>]) -> Slots {
    let st = p.standard;
    let mut external_reads: HashSet<Slot> = HashSet::new();
    let required = [st.ingress_port, st.packet_length, st.instance_type, st.egress_spec, st.egress_port];
    let optional = [
        st.parser_error,
        st.checksum_error,
        st.ingress_timestamp,
        st.egress_timestamp,
        st.egress_rid,
        st.enq_timestamp,
        st.enq_qdepth,
        st.deq_timedelta,
        st.deq_qdepth,
    ];
    external_reads.extend(required.iter().chain(&optional).map(|c| c.slot).chain(st.mcast_grp));
    external_reads.extend(p.objects.field_lists.iter().flatten().flat_map(slots));
    for digest_part in p.objects.digest_parts.iter().flatten() {
        if let DigestPart::Field(f) = digest_part {
            external_reads.extend(slots(f));
        }
    }
    for c in &p.checksums {
        external_reads.extend(slots(&c.field));
        external_reads.extend(p.objects.calculations[c.calculation].slots(headers));
    }
    external_reads.extend(p.code.conditions.iter().map(|c| c.1));
    let mut private = Slots::none(p.used);
    for (h, occupied) in p.layout.headers.iter().zip(headers) {
        let standard = required.iter().any(|f| occupied.contains(&f.slot));
        if h.metadata && !standard {
            occupied.iter().filter(|&&s| s != h.valid && !external_reads.contains(&s)).for_each(|&s| private.add(s));
        }
    }
    let params: Vec<Slot> = p.actions.iter().flat_map(|a| &a.params).flat_map(slots).collect();
    p.pool.temps.iter().chain(&params).filter(|s| !external_reads.contains(s)).for_each(|&s| private.add(s));
    private
}

fn table(p: &Parts, t: &Table, headers: &[Vec<Slot>]) -> TableEffects {
    let mut reads = t.key.slots();
    let mut actions = t.info.actions.clone();
    if let Some(profile) = t.info.profile {
        let profile = &p.profiles[profile.index()];
        reads.extend(profile.selector.iter().flat_map(|s| s.slots(headers)));
        // A member's action may be the copy of any table that uses the profile.
        actions.extend(profile.info.tables.iter().flat_map(|t| &p.tables[t.index()].info.actions));
    }
    actions.extend(t.default.as_ref().map(|d| d.action));
    actions.extend(t.entries.iter().map(|e| e.call.action));
    actions.extend(t.next.by_action.iter().map(|b| b.0));
    actions.sort_unstable();
    actions.dedup();
    let mut writes: Vec<Slot> = actions.iter().flat_map(|a| &p.actions[a.index()].params).flat_map(slots).collect();
    if let Some(m) = t.info.direct_meter {
        writes.extend(p.objects.meter_targets[m.index()].map(|f| f.slot));
    }
    let next = &t.next;
    let hit_miss = next.hit_miss.iter().flat_map(|h| [h.0, h.1]);
    let mut nodes: Vec<usize> =
        next.by_action.iter().map(|b| b.1).chain([next.none]).chain(hit_miss).map(|n| n as usize).collect();
    nodes.sort_unstable();
    nodes.dedup();
    TableEffects { reads, writes, actions: actions.iter().map(|a| a.index()).collect(), next: nodes }
}
