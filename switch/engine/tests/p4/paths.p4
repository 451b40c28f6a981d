// Tests the paths of packets: multicast, clones, resubmission, recirculation, truncation, drops.
#include <core.p4>
#include <v1model.p4>

header trail_h {
    bit<8> what;
    bit<8> passes;
    bit<8> instance_type;
    bit<8> carried;
    bit<16> rid;
    bit<16> length;
    bit<16> port;
}

struct headers_t { trail_h trail; }
struct metadata_t {
    @field_list(1)
    bit<8> carried;
    bit<8> lost;
}

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.trail);
        transition accept;
    }
}

control C(inout headers_t hdr, inout metadata_t meta) { apply { } }

control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        bit<8> what = hdr.trail.what;
        if (what == 1) {
            standard.mcast_grp = 5;
        } else if (what == 2) {
            meta.carried = 0x22;
            meta.lost = 0x33;
            hdr.trail.passes = 9;
            clone_preserving_field_list(CloneType.I2E, 3, 1);
        } else if (what == 3 && standard.instance_type == 0) {
            meta.carried = 0x44;
            meta.lost = 0x55;
            hdr.trail.passes = 9;
            resubmit_preserving_field_list(1);
        } else if (what == 4) {
            mark_to_drop(standard);
        } else if (what == 5) {
            standard.mcast_grp = 5;
            mark_to_drop(standard);
        } else if (what == 6) {
            resubmit_preserving_field_list(1);
        } else if (what == 7 || what == 8) {
            hdr.trail.passes = hdr.trail.passes + 1;
        } else if (what == 9) {
            truncate(12);
        } else if (what == 10) {
            standard.egress_spec = 1;
            exit;
        }
        hdr.trail.port = 0xffff;
    }
}

control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        bit<8> what = hdr.trail.what;
        if (what == 7 && hdr.trail.passes < 3) {
            meta.carried = meta.carried + 1;
            recirculate_preserving_field_list(1);
        } else if (what == 8 && standard.instance_type == 0) {
            meta.carried = 0x66;
            clone_preserving_field_list(CloneType.E2E, 3, 1);
        } else if (what == 11) {
            mark_to_drop(standard);
        }
        hdr.trail.instance_type = (bit<8>)standard.instance_type;
        hdr.trail.carried = meta.carried | meta.lost;
        hdr.trail.rid = standard.egress_rid;
        hdr.trail.length = (bit<16>)standard.packet_length;
        if (hdr.trail.port != 0xffff || what == 10) { hdr.trail.port = (bit<16>)standard.egress_port; }
    }
}

control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }
V1Switch(P(), C(), I(), E(), C(), D()) main;
