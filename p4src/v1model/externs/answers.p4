// Answers: answers packets that are addressed to the router itself (path local), or reports the packets to the controller.
//
//   reads  arp, icmp, ipv4.src, ethernet.src, ours, flow, router_mac, ingress_port
//   writes arp, icmp, ipv4, ethernet: become those of the answer
//          egress_port
//   drops  arp_ignored, no_service
//   punts  arp: an ARP reply to the router, from which the controller learns the neighbour
//          sender: any other ARP request or reply, whose sender requests a local address or may have moved
//
// A digest reports the sender of an ARP packet to the controller. For the digest, the sender's addresses are copied to the fields
// of the ARP packet's target, whether the switch answers the ARP packet or not.
#ifndef SLUICE_V1MODEL_ANSWERS_P4
#define SLUICE_V1MODEL_ANSWERS_P4

control Answers(inout headers_t hdr, in metadata_t meta, inout verdict_t verdict) {
    @hidden
    action reflect() {
        hdr.ethernet.dst = hdr.ethernet.src;
        hdr.ethernet.src = meta.router_mac;
        verdict.egress_port = meta.ingress_port;
    }

    @hidden
    action turn_round() {
        hdr.arp.target_mac = hdr.arp.sender_mac;
        hdr.arp.target = hdr.arp.sender;
    }

    @hidden
    action answer_arp() {
        hdr.arp.operation = ARP_REPLY;
        hdr.arp.sender_mac = meta.router_mac;
        hdr.arp.sender = meta.flow.dst;
    }

    @hidden
    action answer_echo() {
        hdr.icmp.type = ICMP_ECHO_REPLY;
        hdr.ipv4.dst = hdr.ipv4.src;
        hdr.ipv4.src = meta.flow.dst;
        hdr.ipv4.ttl = ECHO_TTL;
    }

    apply {
        if (hdr.arp.isValid()) {
            if (hdr.arp.operation != ARP_REQUEST && hdr.arp.operation != ARP_REPLY) {
                verdict.drop = DropReason.arp_ignored;
            } else {
                turn_round();
                verdict.punt = PuntReason.sender;
                if (meta.ours == 0) {
                    verdict.drop = DropReason.arp_ignored;
                } else if (hdr.arp.operation == ARP_REPLY) {
                    verdict.punt = PuntReason.arp;
                } else {
                    answer_arp();
                    reflect();
                }
            }
        } else if (hdr.icmp.isValid() && hdr.icmp.type == ICMP_ECHO) {
            // Type and code are one word of the checksum's sum. The answer's word is smaller by 0x0800, so the checksum increases
            // by 0x0800, with end-around carry.
            if (hdr.icmp.checksum >= 0xf800) {
                hdr.icmp.checksum = hdr.icmp.checksum + 0x0801;
            } else {
                hdr.icmp.checksum = hdr.icmp.checksum + 0x0800;
            }
            answer_echo();
            reflect();
        } else {
            verdict.drop = DropReason.no_service;
        }
    }
}

#endif
