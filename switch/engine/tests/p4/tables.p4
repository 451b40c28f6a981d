// Tests all match kinds, priorities, constant entries, direct counter and meter, idle timeouts.
#include <core.p4>
#include <v1model.p4>

header key_h {
    bit<8>   kind;
    bit<8>   exact;
    bit<32>  prefix;
    bit<12>  ternary;
    bit<4>   optional;
    bit<16>  range;
    bit<128> wide;
    int<8>   number;
}

header answer_h {
    bit<16> hit;
    bit<8>  colour;
}

struct headers_t {
    key_h    key;
    answer_h answer;
}

struct metadata_t {
    bit<2> colour;
}

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.key);
        transition accept;
    }
}

control C(inout headers_t hdr, inout metadata_t meta) { apply { } }

control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    direct_counter(CounterType.packets_and_bytes) hits;
    direct_meter<bit<2>>(MeterType.packets) rate;

    action answer(bit<16> value) { hdr.answer.hit = value; }
    action none() { hdr.answer.hit = 0xffff; }
    action counted(bit<16> value) {
        hits.count();
        rate.read(meta.colour);
        hdr.answer.hit = value;
    }
    action counted_none() {
        hits.count();
        rate.read(meta.colour);
        hdr.answer.hit = 0xffff;
    }

    table exact_t {
        key = { hdr.key.exact : exact; hdr.key.wide : exact; }
        actions = { counted; counted_none; }
        default_action = counted_none;
        counters = hits;
        meters = rate;
        support_timeout = true;
        size = 4;
    }
    table lpm_t {
        key = { hdr.key.exact : exact; hdr.key.prefix : lpm; }
        actions = { answer; none; }
        default_action = none;
        size = 20000;
    }
    table ternary_t {
        key = { hdr.key.ternary : ternary; hdr.key.optional : optional; hdr.key.number : ternary; }
        actions = { answer; none; }
        default_action = none;
        size = 20000;
    }
    table range_t {
        key = { hdr.key.range : range; hdr.key.wide : ternary; }
        actions = { answer; none; }
        const default_action = none;
    }
    table const_t {
        key = { hdr.key.ternary : ternary; hdr.key.range : range; }
        actions = { answer; none; }
        const default_action = none;
        const entries = {
            (0x100 &&& 0xf00, 10 .. 20) : answer(1);
            (0x100 &&& 0xf00, 15 .. 30) : answer(2);
            (_, _) : answer(3);
        }
    }

    apply {
        hdr.answer.setValid();
        if (hdr.key.kind == 1) { exact_t.apply(); }
        else if (hdr.key.kind == 2) { if (!lpm_t.apply().hit) { hdr.answer.hit = 0xfffe; } }
        else if (hdr.key.kind == 3) {
            switch (ternary_t.apply().action_run) {
                answer: { hdr.answer.hit = hdr.answer.hit + 0x100; }
                default: { }
            }
        }
        else if (hdr.key.kind == 4) { range_t.apply(); }
        else { const_t.apply(); }
        hdr.answer.colour = (bit<8>)meta.colour;
        hdr.key.setInvalid();
        standard.egress_spec = 1;
    }
}

control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) { apply { } }
control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }
V1Switch(P(), C(), I(), E(), C(), D()) main;
