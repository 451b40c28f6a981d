// Egress writes the queueing metadata into the packets.
#include <core.p4>
#include <v1model.p4>

header way_h {
    bit<8>  kind;
    bit<8>  port;
    bit<32> enq_timestamp;
    bit<24> enq_qdepth;
    bit<32> deq_timedelta;
    bit<24> deq_qdepth;
}

struct headers_t { way_h way; }
struct metadata_t { }

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.way);
        transition accept;
    }
}

control C(inout headers_t hdr, inout metadata_t meta) { apply { } }

control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = (bit<9>) hdr.way.port;
        if (hdr.way.kind == 1) { standard.mcast_grp = 1; }
        if (hdr.way.kind == 2) { clone(CloneType.I2E, 1); }
        if (hdr.way.kind == 3) { mark_to_drop(standard); }
    }
}

control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        hdr.way.enq_timestamp = standard.enq_timestamp;
        hdr.way.enq_qdepth = (bit<24>) standard.enq_qdepth;
        hdr.way.deq_timedelta = standard.deq_timedelta;
        hdr.way.deq_qdepth = (bit<24>) standard.deq_qdepth;
        if (hdr.way.kind == 4) {
            hdr.way.kind = 0;
            hdr.way.port = hdr.way.port + 1;
            recirculate_preserving_field_list(1);
        }
    }
}

control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }
V1Switch(P(), C(), I(), E(), C(), D()) main;
