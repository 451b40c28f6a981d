// v1model verdict: the one place where a packet is sent, dropped or given to the controller.
//
//   reads  verdict
//   writes egress_spec, packet_in
//   drops  punt_limited
#ifndef SLUICE_V1MODEL_VERDICT_P4
#define SLUICE_V1MODEL_VERDICT_P4

control Verdict(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t intrinsic) {
    PuntMeter() punt_meter;
    VerdictCounters() counters;

    apply {
        PuntReason wanted = meta.verdict.punt;
        if (wanted != PuntReason.none) {
            bit<1> limited;
            punt_meter.apply(wanted, limited);
            if (limited == 1) {
                meta.verdict.punt = PuntReason.none;
                if (meta.verdict.drop == DropReason.none) {
                    meta.verdict.drop = DropReason.punt_limited;
                }
            }
        }
        counters.apply(meta.verdict, wanted);

        if (meta.verdict.punt != PuntReason.none) {
            hdr.packet_in.setValid();
            hdr.packet_in.ingress_port = meta.ingress_port;
            hdr.packet_in.reason = (bit<8>)meta.verdict.punt;
            hdr.packet_in.next_hop = meta.verdict.next_hop;
            intrinsic.egress_spec = (bit<9>)CPU_PORT;
        } else if (meta.verdict.drop != DropReason.none && meta.verdict.drop != DropReason.admission_reset) {
            mark_to_drop(intrinsic);
        } else {
            intrinsic.egress_spec = (bit<9>)meta.verdict.egress_port;
        }
    }
}

#endif
