// Answers: answers packets that are addressed to the router itself (path local), or reports the packets to the controller.
//
//   reads  path, arp, icmp, ipv4.src, ethernet.src, ours, flow, router_mac, ingress_port
//   writes arp, icmp, ipv4, ethernet: become those of the answer
//          egress_port
//   drops  arp_ignored, no_service
//   punts  arp: an ARP reply to the router, from which the controller learns the neighbour
//          sender: any other ARP request or reply, whose sender requests a local address or may have moved
//
// A digest reports the sender of an ARP packet to the controller. For the digest, the sender's addresses are copied to the fields
// of the ARP packet's target, whether the switch answers the ARP packet or not.
#ifndef SLUICE_TNA_ANSWERS_P4
#define SLUICE_TNA_ANSWERS_P4

control Answers(inout headers_t hdr, in metadata_t meta, inout verdict_t verdict) {
    @hidden
    action reflect() {
        hdr.ethernet.dst = hdr.ethernet.src;
        hdr.ethernet.src = meta.router_mac;
        verdict.egress_port = meta.ingress_port;
    }

    @hidden
    action turn_round(PuntReason reason) {
        hdr.arp.target_mac = hdr.arp.sender_mac;
        hdr.arp.target = hdr.arp.sender;
        verdict.punt = reason;
    }

    @hidden
    action answer_arp() {
        turn_round(PuntReason.sender);
        reflect();
        hdr.arp.operation = ARP_REPLY;
        hdr.arp.sender_mac = meta.router_mac;
        hdr.arp.sender = meta.flow.dst;
    }

    // Type and code are one word of the checksum's sum. The answer's word is smaller by 0x0800, so the checksum increases by
    // 0x0800, with end-around carry.
    @hidden
    action answer_echo(bit<16> added) {
        reflect();
        hdr.icmp.checksum = hdr.icmp.checksum + added;
        hdr.icmp.type = ICMP_ECHO_REPLY;
        hdr.ipv4.dst = hdr.ipv4.src;
        hdr.ipv4.src = meta.flow.dst;
        hdr.ipv4.ttl = ECHO_TTL;
    }

    @hidden
    action learn() {
        turn_round(PuntReason.arp);
    }

    @hidden
    action overhear() {
        turn_round(PuntReason.sender);
        verdict.drop = DropReason.arp_ignored;
    }

    @hidden
    action drop_as(DropReason reason) {
        verdict.drop = reason;
    }

    @hidden
    action neither() { }

    @hidden
    table answer {
        key = {
            meta.path          : ternary @name("path");
            hdr.arp.isValid()  : ternary @name("arp");
            meta.ours          : ternary @name("ours");
            hdr.arp.operation  : ternary @name("operation");
            hdr.icmp.isValid() : ternary @name("icmp");
            hdr.icmp.type      : ternary @name("type");
            hdr.icmp.checksum  : ternary @name("checksum");
        }
        actions = { answer_arp; answer_echo; learn; overhear; drop_as; neither; }
        const entries = {
            (Path.local, true, 1, ARP_REQUEST, _, _, _)                     : answer_arp();
            (Path.local, true, 1, ARP_REPLY, _, _, _)                       : learn();
            (Path.local, true, _, ARP_REQUEST, _, _, _)                     : overhear();
            (Path.local, true, _, ARP_REPLY, _, _, _)                       : overhear();
            (Path.local, true, _, _, _, _, _)                               : drop_as(DropReason.arp_ignored);
            (Path.local, _, _, _, true, ICMP_ECHO, 0xf800 &&& 0xf800)       : answer_echo(0x0801);
            (Path.local, _, _, _, true, ICMP_ECHO, _)                       : answer_echo(0x0800);
            (Path.local, _, _, _, _, _, _)                                  : drop_as(DropReason.no_service);
        }
        const default_action = neither();
    }

    apply {
        answer.apply();
    }
}

#endif
