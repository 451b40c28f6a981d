// Tests header unions and stacks of unions: extraction, validity, assignment, comparison, push and pop.
#include <core.p4>
#include <v1model.p4>

header head_h {
    bit<8> what;
    bit<8> count;
    bit<8> answer;
}
header short_h {
    bit<8> kind;
    bit<8> value;
}
header long_h {
    bit<8>  kind;
    bit<24> value;
}
header_union item_u {
    short_h short;
    long_h  long;
}

struct headers_t {
    head_h head;
    item_u one;
    item_u[3] items;
}
struct metadata_t { bit<8> left; }

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.head);
        meta.left = hdr.head.count;
        transition select(packet.lookahead<bit<8>>()) {
            1       : one_short;
            2       : one_long;
            default : next;
        }
    }
    state one_short {
        packet.extract(hdr.one.short);
        transition next;
    }
    state one_long {
        packet.extract(hdr.one.long);
        transition next;
    }
    state next {
        transition select(meta.left) {
            0       : accept;
            default : item;
        }
    }
    state item {
        meta.left = meta.left - 1;
        transition select(packet.lookahead<bit<8>>()) {
            1       : item_short;
            default : item_long;
        }
    }
    state item_short {
        packet.extract(hdr.items.next.short);
        transition next;
    }
    state item_long {
        packet.extract(hdr.items.next.long);
        transition next;
    }
}
control C(inout headers_t hdr, inout metadata_t meta) { apply { } }
control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        bit<8> what = hdr.head.what;
        if (what == 1) {
            hdr.one.long.setValid();
            hdr.one.long.kind = 2;
            hdr.one.long.value = 0xabcdef;
        } else if (what == 2) {
            hdr.one = hdr.items[1];
        } else if (what == 3) {
            hdr.items.pop_front(1);
        } else if (what == 4) {
            hdr.items.push_front(2);
        } else if (what == 5) {
            if (hdr.one == hdr.items[0]) { hdr.head.answer = 1; }
            else { hdr.head.answer = 2; }
        } else if (what == 6) {
            if (hdr.one.isValid()) { hdr.head.answer = 1; }
            else { hdr.head.answer = 2; }
        } else if (what == 7) {
            hdr.one.short.setInvalid();
        } else if (what == 8) {
            hdr.items[2] = hdr.items[0];
            hdr.items[0].short.setValid();
            hdr.items[0].short.kind = 1;
            hdr.items[0].short.value = 0x55;
        }
    }
}
control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) { apply { } }
control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }
V1Switch(P(), C(), I(), E(), C(), D()) main;
