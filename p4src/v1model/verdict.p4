// v1model verdict: the only control that sends or drops a packet, punts it to the controller, or reports the sender of an ARP
// packet.
//
//   reads  verdict, ingress_port
//          arp: its target fields, into which the control `answers` has copied the sender of the ARP packet
//   writes egress_spec, packet_in, the digest arp_sender_t
//   drops  punt_limited
#ifndef SLUICE_V1MODEL_VERDICT_P4
#define SLUICE_V1MODEL_VERDICT_P4

#include <externs/meters.p4>
#include <externs/counters.p4>

control Verdict(inout headers_t hdr, in metadata_t meta, inout verdict_t verdict, inout standard_metadata_t intrinsic) {
    PuntMeter() punt_meter;
    VerdictCounters() counters;

    apply {
        PuntReason punt_reason = verdict.punt;
        if (punt_reason != PuntReason.none) {
            bit<1> limited;
            punt_meter.apply(punt_reason, limited);
            if (limited == 1) {
                verdict.punt = PuntReason.none;
                if (punt_reason == PuntReason.arp) {          // an ARP reply has no other use than the punt
                    verdict.drop = DropReason.punt_limited;
                }
            }
        }
        counters.apply(verdict, punt_reason);

        if (verdict.punt == PuntReason.arp || verdict.punt == PuntReason.sender) {
            digest<arp_sender_t>(DIGEST_ARP_SENDER, { meta.ingress_port, hdr.arp.target, hdr.arp.target_mac, hdr.arp.sender });
        }
        if (verdict.punt == PuntReason.ttl || verdict.punt == PuntReason.neighbour) {
            hdr.packet_in.setValid();
            hdr.packet_in.ingress_port = meta.ingress_port;
            hdr.packet_in.reason = (bit<8>)verdict.punt;
            hdr.packet_in.neighbour = verdict.neighbour;
            intrinsic.egress_spec = (bit<9>)CPU_PORT;
        } else if (verdict.punt == PuntReason.arp
                   || (verdict.drop != DropReason.none && verdict.drop != DropReason.admission_reset
                       && verdict.drop != DropReason.closed_reset && verdict.drop != DropReason.closed_again)) {
            mark_to_drop(intrinsic);
        } else {
            intrinsic.egress_spec = (bit<9>)verdict.egress_port;
        }
    }
}

#endif
