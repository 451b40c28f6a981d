// An action profile with a selector, which two tables share, and an action profile without a selector.
#include <core.p4>
#include <v1model.p4>

header key_h {
    bit<8>  service;
    bit<32> source;
    bit<16> port;
}

struct headers_t { key_h key; }
struct metadata_t { }

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.key);
        transition accept;
    }
}

control C(inout headers_t hdr, inout metadata_t meta) { apply { } }

control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    action_selector(HashAlgorithm.crc32, 1024, 32) members;
    action_profile(4) plain;

    action forward(bit<9> port) { standard.egress_spec = port; }
    action drop() { mark_to_drop(standard); }

    table choose {
        key = { hdr.key.service : exact; hdr.key.source : selector; hdr.key.port : selector; }
        actions = { forward; drop; }
        implementation = members;
    }
    table pick {
        key = { hdr.key.port : exact; }
        actions = { forward; drop; }
        implementation = plain;
    }

    apply {
        standard.egress_spec = 7;
        if (hdr.key.service == 0xff) { pick.apply(); } else { choose.apply(); }
    }
}

control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) { apply { } }
control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }
V1Switch(P(), C(), I(), E(), C(), D()) main;
