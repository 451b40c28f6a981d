// Calls primitives in the deparser. The primitives read the updated checksums and do not change the headers.
#include <core.p4>
#include <v1model.p4>

header head_h {
    bit<8>  what;
    bit<8>  size;
    bit<16> sum;
}

struct headers_t { head_h head; }
struct metadata_t { }

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.head);
        transition accept;
    }
}
control V(inout headers_t hdr, inout metadata_t meta) { apply { } }
control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply { standard.egress_spec = 1; }
}
control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) { apply { } }
control C(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(true, { hdr.head.what, hdr.head.size }, hdr.head.sum, HashAlgorithm.csum16);
    }
}
control D(packet_out packet, in headers_t hdr) {
    bit<16> keep;
    bit<8>  one;
    apply {
        random(one, 8w1, 8w1);
        hash(keep, HashAlgorithm.identity, 16w4, { hdr.head.sum }, 32w64);
        log_msg("keeps {} of checksum {}", { keep, hdr.head.sum });
        assert(hdr.head.what != one);
        packet.emit(hdr.head);
        truncate((bit<32>)keep);
        digest<bit<16>>(1, keep);
    }
}
V1Switch(P(), V(), I(), E(), C(), D()) main;
