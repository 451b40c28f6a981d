// Tests statements and operators: assignment of headers, stacks and variable-length fields, push and pop, signed and
// saturating arithmetic, checksums over the payload, messages, assumptions.
#include <core.p4>
#include <v1model.p4>

header head_h {
    bit<8> what;
    /// Bit 0: the packet contains the header `left`. Bit 1: the packet contains the header `right`.
    bit<8> there;
    bit<8> count;
    bit<8> length;
}
header pair_h {
    bit<8>  a;
    bit<16> b;
}
header item_h { bit<8> value; }
header bytes_h {
    varbit<64> data;
}
header numbers_h {
    int<8>   a;
    int<8>   b;
    bit<8>   c;
    bit<8>   d;
    int<32>  e;
    bit<72>  f;
    bit<72>  g;
}
header sum_h { bit<16> sum; }

struct headers_t {
    head_h    head;
    pair_h    left;
    pair_h    right;
    item_h[3] items;
    item_h[3] others;
    bytes_h   bytes;
    bytes_h   copy;
    numbers_h numbers;
    sum_h     sum;
}
struct metadata_t { bit<8> left; }

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.head);
        meta.left = hdr.head.count;
        transition select(hdr.head.there) {
            1 &&& 1 : left;
            default : after_left;
        }
    }
    state left { packet.extract(hdr.left); transition after_left; }
    state after_left {
        transition select(hdr.head.there) {
            2 &&& 2 : right;
            default : next;
        }
    }
    state right { packet.extract(hdr.right); transition next; }
    state next {
        transition select(meta.left) {
            0       : bytes;
            default : item;
        }
    }
    state item {
        packet.extract(hdr.items.next);
        meta.left = meta.left - 1;
        transition next;
    }
    state bytes {
        packet.extract(hdr.bytes, (bit<32>)hdr.head.length * 8);
        transition select(hdr.head.what) {
            0x80 &&& 0x80 : numbers;
            default       : accept;
        }
    }
    state numbers { packet.extract(hdr.numbers); transition accept; }
}
control V(inout headers_t hdr, inout metadata_t meta) { apply { } }
control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        bit<8> what = hdr.head.what;
        if (what == 1) {
            hdr.left = hdr.right;
        } else if (what == 2) {
            hdr.others = hdr.items;
        } else if (what == 3) {
            hdr.items.push_front(1);
            hdr.items[0].setValid();
            hdr.items[0].value = 0x77;
        } else if (what == 4) {
            hdr.items.pop_front(2);
        } else if (what == 5) {
            hdr.copy = hdr.bytes;
        } else if (what == 6) {
            hdr.sum.setValid();
        } else if (what == 7) {
            log_msg("count {} of {}, signed {}", { hdr.head.count, hdr.head.there, (int<8>)hdr.head.length });
        } else if (what == 8) {
            assume(hdr.head.count != 2);
        } else if (what == 9) {
            if (hdr.left == hdr.right) { hdr.head.count = 0xee; }
        } else if (what == 10) {
            hdr.copy.setValid();
            hdr.copy.data = hdr.bytes.data;
        } else if (what == 0x81) {
            hdr.numbers.a = hdr.numbers.a |+| hdr.numbers.b;
            hdr.numbers.c = hdr.numbers.c |+| hdr.numbers.d;
            hdr.numbers.f = hdr.numbers.f |+| hdr.numbers.g;
        } else if (what == 0x82) {
            hdr.numbers.a = hdr.numbers.a |-| hdr.numbers.b;
            hdr.numbers.c = hdr.numbers.c |-| hdr.numbers.d;
            hdr.numbers.f = hdr.numbers.f |-| hdr.numbers.g;
        } else if (what == 0x83) {
            hdr.numbers.e = (int<32>)hdr.numbers.a * (int<32>)hdr.numbers.b;
            hdr.numbers.c = (bit<8>)(hdr.numbers.a >> 1);
            hdr.numbers.d = (hdr.numbers.a < hdr.numbers.b ? 8w1 : 8w0);
        } else if (what == 0x84) {
            hdr.numbers.f = hdr.numbers.f * hdr.numbers.g;
            hdr.numbers.g = hdr.numbers.g - hdr.numbers.f;
        }
    }
}
control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) { apply { } }
control U(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum_with_payload(hdr.sum.isValid(), { hdr.head.what, hdr.head.count }, hdr.sum.sum, HashAlgorithm.csum16);
    }
}
control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }
V1Switch(P(), V(), I(), E(), U(), D()) main;
