// Egress of Tofino 2: tags and counts the packets that ingress forwarded, and manages servers' TCP resources. Copies that
// the control Closing has mirrored become RSTs, and are not counted.
#ifndef SLUICE_TNA2_EGRESS_P4
#define SLUICE_TNA2_EGRESS_P4

#include "egress_types.p4"
#include "egress_parser.p4"
#include "../v1model/resources.p4"
#include "segment_number.p4"
#include "caps.p4"
#include "transfers.p4"
#include "closing.p4"
#include "turn_round.p4"

control SluiceEgress(inout headers_t hdr, inout resources_egress_t all, in egress_intrinsic_metadata_t intrinsic,
                     in egress_intrinsic_metadata_from_parser_t from_parser,
                     inout egress_intrinsic_metadata_for_deparser_t for_deparser,
                     inout egress_intrinsic_metadata_for_output_port_t for_port) {
    // A controller finds the tables and registers of these stages under the same names on every target.
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
    @name(".SluiceIngress.closing")
    Closing() closing;
    TurnRound() turn_round;
    SegmentNumber() segment_number;
    CapNumbers() cap_numbers;

    bit<32> number;
    CapOp op;
    bit<16> asked_number;
    compared_t known = 0;
    compared_t grows = 0;
    compared_t acknowledged = 0;

    @hidden
    action widen_port() {
        @in_hash { all.egress_port = 7w0 ++ intrinsic.egress_port; }
    }

    apply {
        widen_port();
        tag.apply(hdr, all.egress_port);
        if (all.copy.isValid()) {
            turn_round.apply(hdr, all.segment_changed);
        } else {
            ledger.apply(all.sluice);
            rates.apply(hdr, all.sluice);
            resources.apply(all.sluice);
            segment_number.apply(hdr, all.sluice, number);
            cap_numbers.apply(hdr, all, number, op, asked_number, known, grows, acknowledged);
            transfers.apply(all.sluice, all.bridge.connection, op, grows);
            // Closing precedes caps, because closing reads the window that the client sent.
            closing.apply(hdr, all, op, known, grows, acknowledged, for_deparser);
            caps.apply(hdr, all, number, op, asked_number, known, acknowledged);
        }
    }
}

control ResourcesDeparser(packet_out packet, inout headers_t hdr, in resources_egress_t meta,
                          in egress_intrinsic_metadata_for_deparser_t for_deparser) {
    Checksum() tcp;
    Mirror() reset;

    apply {
        if (meta.segment_changed == 1) {
            hdr.tcp.checksum = tcp.update({ hdr.tcp.data_offset, hdr.tcp.reserved, hdr.tcp.cwr, hdr.tcp.ece, hdr.tcp.urg, hdr.tcp.ack,
                                            hdr.tcp.psh, hdr.tcp.rst, hdr.tcp.syn, hdr.tcp.fin, hdr.tcp.window, meta.tcp_rest });
        }
        if (for_deparser.mirror_type == MIRROR_RESET) {
            reset.emit<copy_h>(meta.reset_session, { meta.copy_mark });
        }
        packet.emit(hdr.ethernet);
        packet.emit(hdr.vlan);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.tcp);
    }
}

#endif
