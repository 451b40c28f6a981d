// Local: what is addressed to the router itself is answered here; what is left is to be routed.
//
//   reads  arp, icmp, router_mac
//   writes the answer into the headers, path
//   keys   owned: an interface address, or the address of a service
//   drops  arp_ignored, no_service
//   punts  arp: a reply to us, for the controller to learn the neighbour
#ifndef SLUICE_STAGES_LOCAL_P4
#define SLUICE_STAGES_LOCAL_P4

control Local(inout headers_t hdr, inout metadata_t meta) {
    ipv4_t address;

    @id(0x01000007)
    action is_owned() { }
    @id(0x01000008)
    action not_owned() { }

    @id(0x02000004)
    table owned {
        key = { address : exact @name("address"); }
        actions = { is_owned; @defaultonly not_owned; }
        const default_action = not_owned;
        size = OWNED_ADDRESSES;
    }

    @hidden
    action reflect() {
        hdr.ethernet.dst = hdr.ethernet.src;
        hdr.ethernet.src = meta.router_mac;
        meta.verdict.egress_port = meta.ingress_port;
        meta.path = Path.done;
    }

    @hidden
    action answer_arp() {
        hdr.arp.operation = ARP_REPLY;
        hdr.arp.target_mac = hdr.arp.sender_mac;
        hdr.arp.target = hdr.arp.sender;
        hdr.arp.sender_mac = meta.router_mac;
        hdr.arp.sender = address;
    }

    @hidden
    action answer_echo() {
        hdr.icmp.type = ICMP_ECHO_REPLY;
        hdr.ipv4.dst = hdr.ipv4.src;
        hdr.ipv4.src = address;
        hdr.ipv4.ttl = ECHO_TTL;
    }

    apply {
        if (hdr.arp.isValid()) {
            address = hdr.arp.target;
        } else {
            address = hdr.ipv4.dst;
        }
        bool ours = owned.apply().hit;

        if (meta.path == Path.arp) {
            if (ours && hdr.arp.operation == ARP_REQUEST) {
                answer_arp();
                reflect();
            } else {
                meta.path = Path.done;
                if (ours && hdr.arp.operation == ARP_REPLY) {
                    meta.verdict.punt = PuntReason.arp;
                } else {
                    meta.verdict.drop = DropReason.arp_ignored;
                }
            }
        } else if (meta.path != Path.ipv4) {
            return;                 // a target may look up beforehand whether it is ours
        } else if (!ours) {
            meta.path = Path.routed;
        } else if (hdr.icmp.isValid() && hdr.icmp.type == ICMP_ECHO) {
            // Type and code are one word of the checksum: 0x0800 less in it is 0x0800 more in its complement, with the carry.
            if (hdr.icmp.checksum >= 0xf800) {
                hdr.icmp.checksum = hdr.icmp.checksum + 0x0801;
            } else {
                hdr.icmp.checksum = hdr.icmp.checksum + 0x0800;
            }
            answer_echo();
            reflect();
        } else {
            meta.path = Path.done;
            meta.verdict.drop = DropReason.no_service;
        }
    }
}

#endif
