// Builds table keys from fields of invalid headers, and from fields to which the program applies a mask.
#include <core.p4>
#include <v1model.p4>

/// Bit 0: the packet contains a key header. Bit 1: the program removes that header. Bit 2: the program writes the
/// header's fields.
header ask_h { bit<8> what; }
header key_h {
    bit<8>  small;
    bit<16> number;
    bit<32> address;
    bit<136> wide;
    int<8>  signed;
}
header answer_h {
    bit<8> exact;
    bit<8> wide;
    bit<8> counted;
    bit<8> prefix;
    bit<8> ternary;
    bit<8> range;
    bit<8> valid;
    bit<8> masked_exact;
    bit<8> masked_prefix;
    bit<8> masked_ternary;
    bit<8> masked_range;
}

struct headers_t {
    ask_h ask;
    key_h key;
    answer_h answer;
}
struct metadata_t { bit<8> free; }

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.ask);
        meta.free = 1;
        transition select(hdr.ask.what) {
            1 &&& 1 : key;
            default : accept;
        }
    }
    state key {
        packet.extract(hdr.key);
        transition accept;
    }
}
control C(inout headers_t hdr, inout metadata_t meta) { apply { } }
control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    direct_counter(CounterType.packets) hits;

    action none() { }
    action exact_is(bit<8> value) { hdr.answer.exact = value; }
    action wide_is(bit<8> value) { hdr.answer.wide = value; }
    action counted_is(bit<8> value) { hits.count(); hdr.answer.counted = value; }
    action prefix_is(bit<8> value) { hdr.answer.prefix = value; }
    action ternary_is(bit<8> value) { hdr.answer.ternary = value; }
    action range_is(bit<8> value) { hdr.answer.range = value; }
    action valid_is(bit<8> value) { hdr.answer.valid = value; }
    action masked_exact_is(bit<8> value) { hdr.answer.masked_exact = value; }
    action masked_prefix_is(bit<8> value) { hdr.answer.masked_prefix = value; }
    action masked_ternary_is(bit<8> value) { hdr.answer.masked_ternary = value; }
    action masked_range_is(bit<8> value) { hdr.answer.masked_range = value; }

    table exact_t {
        key = { meta.free : exact; hdr.key.small : exact; hdr.key.number : exact; }
        actions = { exact_is; none; }
        default_action = none;
    }
    table wide_t {
        key = { hdr.key.wide : exact; }
        actions = { wide_is; none; }
        default_action = none;
    }
    table counted_t {
        key = { hdr.key.signed : exact; }
        actions = { counted_is; none; }
        default_action = none;
        counters = hits;
    }
    table prefix_t {
        key = { hdr.key.address : lpm; }
        actions = { prefix_is; none; }
        default_action = none;
    }
    table ternary_t {
        key = { hdr.key.number : ternary; hdr.ask.what : ternary; }
        actions = { ternary_is; none; }
        default_action = none;
    }
    table range_t {
        key = { hdr.key.number : range; }
        actions = { range_is; none; }
        default_action = none;
    }
    table valid_t {
        key = { hdr.key.isValid() : exact; }
        actions = { valid_is; none; }
        default_action = none;
    }
    table masked_exact_t {
        key = { hdr.key.small & 0xf0 : exact @name("small"); }
        actions = { masked_exact_is; none; }
        default_action = none;
    }
    table masked_prefix_t {
        key = { hdr.key.address & 0xffff00ff : lpm @name("address"); }
        actions = { masked_prefix_is; none; }
        default_action = none;
    }
    table masked_ternary_t {
        key = { hdr.key.number & 0x0ff0 : ternary @name("number"); }
        actions = { masked_ternary_is; none; }
        default_action = none;
    }
    table masked_range_t {
        key = { hdr.key.number & 0x0ff0 : range @name("number"); hdr.key.wide & 0xff : range @name("wide"); }
        actions = { masked_range_is; none; }
        default_action = none;
    }

    apply {
        hdr.answer.setValid();
        if (hdr.ask.what & 2 != 0) {
            hdr.key.setInvalid();
        }
        if (hdr.ask.what & 4 != 0) {
            hdr.key.small = 9;
            hdr.key.number = 9;
            hdr.key.address = 9;
            hdr.key.wide = 9;
            hdr.key.signed = 9;
        }
        exact_t.apply();
        wide_t.apply();
        counted_t.apply();
        prefix_t.apply();
        ternary_t.apply();
        range_t.apply();
        valid_t.apply();
        masked_exact_t.apply();
        masked_prefix_t.apply();
        masked_ternary_t.apply();
        masked_range_t.apply();
        standard.egress_spec = 1;
    }
}
control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) { apply { } }
control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr.answer); } }
V1Switch(P(), C(), I(), E(), C(), D()) main;
