// Egress of Tofino 2: tags what ingress forwarded, counts it, and manages its server's TCP resources.
#ifndef SLUICE_TNA2_EGRESS_P4
#define SLUICE_TNA2_EGRESS_P4

#include "egress_types.p4"
#include "egress_parser.p4"
#include "../v1model/resources.p4"
#include "segment_number.p4"
#include "caps.p4"
#include "transfers.p4"

control SluiceEgress(inout headers_t hdr, inout resources_egress_t all, in egress_intrinsic_metadata_t intrinsic,
                     in egress_intrinsic_metadata_from_parser_t from_parser,
                     inout egress_intrinsic_metadata_for_deparser_t for_deparser,
                     inout egress_intrinsic_metadata_for_output_port_t for_port) {
    // A controller is to find them by the names that they have on every target.
    @name(".SluiceIngress.tag")
    Tag() tag;
    @name(".SluiceIngress.ledger")
    Ledger() ledger;
    @name(".SluiceIngress.rates")
    Rates() rates;
    @name(".SluiceIngress.resources")
    Resources() resources;
    @name(".SluiceIngress.caps")
    Caps() caps;
    @name(".SluiceIngress.transfers")
    Transfers() transfers;
    SegmentNumber() segment_number;

    bit<32> number;
    CapOp op;
    compared_t grows = 0;

    @hidden
    action widen_port() {
        @in_hash { all.egress_port = 7w0 ++ intrinsic.egress_port; }
    }

    apply {
        widen_port();
        tag.apply(hdr, all.egress_port);
        ledger.apply(all.sluice);
        rates.apply(hdr, all.sluice);
        resources.apply(all.sluice);
        segment_number.apply(hdr, all.sluice, number);
        caps.apply(hdr, all, number, op, grows);
        transfers.apply(all.sluice, all.bridge.connection, op, grows);
    }
}

control ResourcesDeparser(packet_out packet, inout headers_t hdr, in resources_egress_t meta,
                          in egress_intrinsic_metadata_for_deparser_t for_deparser) {
    Checksum() tcp;

    apply {
        if (meta.window_changed == 1) {
            hdr.tcp.checksum = tcp.update({ hdr.tcp.window, meta.tcp_rest });
        }
        packet.emit(hdr.ethernet);
        packet.emit(hdr.vlan);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.tcp);
    }
}

#endif
