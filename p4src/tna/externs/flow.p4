// Flow: what a packet is about. Its tuple; of an ICMP error, the reversed tuple of the packet inside; of an ARP, its target.
#ifndef SLUICE_TNA_FLOW_P4
#define SLUICE_TNA_FLOW_P4

control Flow(in headers_t hdr, inout metadata_t meta) {
    @hidden
    action packet() {
        meta.flow.src = hdr.ipv4.src;
        meta.flow.dst = hdr.ipv4.dst;
        meta.flow.protocol = hdr.ipv4.protocol;
    }

    @hidden
    action segment() {
        packet();
        meta.flow.src_port = hdr.tcp.src_port;
        meta.flow.dst_port = hdr.tcp.dst_port;
    }

    @hidden
    action datagram() {
        packet();
        meta.flow.src_port = hdr.udp.src_port;
        meta.flow.dst_port = hdr.udp.dst_port;
    }

    @hidden
    action reversed() {
        meta.flow.src = hdr.inner_ipv4.dst;
        meta.flow.dst = hdr.inner_ipv4.src;
        meta.flow.protocol = hdr.inner_ipv4.protocol;
        meta.flow.src_port = hdr.inner_transport.dst_port;
        meta.flow.dst_port = hdr.inner_transport.src_port;
    }

    @hidden
    action question() {
        meta.flow.dst = hdr.arp.target;
    }

    @hidden
    table about {
        key = {
            hdr.arp.isValid() : ternary @name("arp");
            hdr.tcp.isValid() : ternary @name("tcp");
            hdr.udp.isValid() : ternary @name("udp");
            meta.icmp_error   : ternary @name("icmp_error");
        }
        actions = { packet; segment; datagram; reversed; question; }
        const entries = {
            (true, _, _, _) : question();
            (_, true, _, _) : segment();
            (_, _, true, _) : datagram();
            (_, _, _, 1)    : reversed();
        }
        const default_action = packet();
    }

    apply {
        about.apply();
    }
}

#endif
