// Hop limit: decrements the TTL, and drops a packet whose TTL runs out, before the packet changes any register.
//
//   reads, writes ipv4.ttl
//   drops  ttl_exceeded
//   punts  ttl: the controller answers with ICMP time exceeded
#ifndef SLUICE_STAGES_HOP_LIMIT_P4
#define SLUICE_STAGES_HOP_LIMIT_P4

control HopLimit(inout headers_t hdr, inout verdict_t verdict) {
    apply {
        if (hdr.ipv4.ttl > 1) {
            hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
        } else {
            verdict.drop = DropReason.ttl_exceeded;
            verdict.punt = PuntReason.ttl;
        }
    }
}

#endif
