// TNA verdict: the one place where a packet is sent, dropped or given to the controller.
//
//   reads  verdict
//   writes the egress port, drop_ctl, bypass_egress, packet_in
//   drops  punt_limited
#ifndef SLUICE_TNA_VERDICT_P4
#define SLUICE_TNA_VERDICT_P4

control Verdict(inout headers_t hdr, inout metadata_t meta, inout ingress_intrinsic_metadata_for_deparser_t for_deparser,
                inout ingress_intrinsic_metadata_for_tm_t for_tm) {
    PuntMeter() punt_meter;
    VerdictCounters() counters;

    apply {
        bit<8> colour;
        if (meta.verdict.punt != PuntReason.none) {
            punt_meter.apply(meta.verdict.punt, colour);
        } else {
            colour = 0;
        }

        if (meta.verdict.punt != PuntReason.none && colour != RED) {
            hdr.packet_in.setValid();
            hdr.packet_in.ingress_port = meta.ingress_port;
            hdr.packet_in.reason = (bit<8>)meta.verdict.punt;
            hdr.packet_in.next_hop = meta.verdict.next_hop;
            for_tm.ucast_egress_port = TNA_CPU_PORT;
            for_tm.bypass_egress = 1;
        } else if (meta.verdict.punt != PuntReason.none) {
            for_deparser.drop_ctl = 1;
            if (meta.verdict.drop == DropReason.none) {
                meta.verdict.drop = DropReason.punt_limited;
            }
        } else if (meta.verdict.drop != DropReason.none && meta.verdict.drop != DropReason.admission_reset) {
            for_deparser.drop_ctl = 1;
        } else {
            for_tm.ucast_egress_port = (PortId_t)meta.verdict.egress_port;
            if (meta.path == Path.done) {
                for_tm.bypass_egress = 1;
            }
        }
        counters.apply(meta.verdict, colour);
    }
}

#endif
