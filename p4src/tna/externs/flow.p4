// Flow: determines the packet's 5-tuple. For an ICMP error to the sender of the packet inside the error, this is the reversed
// 5-tuple of the inner packet. For an ARP packet only the destination is set, to the packet's target address.
//
//   reads  arp, ipv4, tcp, udp
//          icmp_error, inner_ipv4, inner_transport: of an ICMP error
//   writes flow
//
// An ICMP error is addressed to the sender of the inner packet (RFC 792). An error to another host belongs to no connection of
// the switch, whatever its inner packet is, and is handled like any other packet (RFC 5508, REQ-4 and REQ-5).
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

#if defined(CONTENT)
    // Sets no 5-tuple: a frame without an IPv4 header must not be looked up by undefined header fields.
    @hidden
    action nothing() { }

    @hidden
    table about {
        key = {
            hdr.arp.isValid()  : ternary @name("arp");
            hdr.tcp.isValid()  : ternary @name("tcp");
            hdr.udp.isValid()  : ternary @name("udp");
            hdr.ipv4.isValid() : ternary @name("ipv4");
        }
        actions = { packet; segment; datagram; question; nothing; }
        const entries = {
            (true, _, _, _) : question();
            (_, true, _, _) : segment();
            (_, _, true, _) : datagram();
            (_, _, _, false) : nothing();
        }
#else
    @hidden
    table about {
        key = {
            hdr.arp.isValid() : ternary @name("arp");
            hdr.tcp.isValid() : ternary @name("tcp");
            hdr.udp.isValid() : ternary @name("udp");
        }
        actions = { packet; segment; datagram; question; }
        const entries = {
            (true, _, _) : question();
            (_, true, _) : segment();
            (_, _, true) : datagram();
        }
#endif
        const default_action = packet();
    }

    // The gateway (the condition unit) of the table `about` compares the addresses in the table's own hardware stage, so the
    // comparison delays nothing.
    apply {
        if (meta.icmp_error == 1 && hdr.ipv4.dst == hdr.inner_ipv4.src) {
            reversed();
        } else {
            about.apply();
        }
    }
}

#endif
