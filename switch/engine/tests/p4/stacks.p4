// Accesses header stacks with an index that is known only at run time.
#include <core.p4>
#include <v1model.p4>

header head_h {
    bit<8> count;
    bit<8> index;
    bit<8> valid;
    bit<8> value;
}
header element_h { bit<8> value; }

struct headers_t {
    head_h head;
    element_h[3] stack;
}
struct metadata_t { bit<8> left; }

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.head);
        meta.left = hdr.head.count;
        transition next;
    }
    state next {
        transition select(meta.left) {
            0       : accept;
            default : element;
        }
    }
    state element {
        packet.extract(hdr.stack.next);
        meta.left = meta.left - 1;
        transition next;
    }
}
control C(inout headers_t hdr, inout metadata_t meta) { apply { } }
control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        hdr.head.valid = 0;
        if (hdr.stack[hdr.head.index].isValid()) {
            hdr.head.valid = 1;
        }
        hdr.head.value = hdr.stack[hdr.head.index].value;
    }
}
control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) { apply { } }
control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }
V1Switch(P(), C(), I(), E(), C(), D()) main;
