// Flow: determines the packet's 5-tuple. For an ICMP error to the sender of the packet inside the error, this is the reversed
// 5-tuple of the inner packet. For an ARP packet only the destination is set, to the packet's target address.
//
//   reads  arp, ipv4, tcp, udp
//          icmp_error, inner_ipv4, inner_transport: of an ICMP error
//   writes flow
//
// An ICMP error is addressed to the sender of the inner packet (RFC 792). An error to another host belongs to no connection of
// the switch, whatever its inner packet is, and is handled like any other packet (RFC 5508, REQ-4 and REQ-5).
#ifndef SLUICE_V1MODEL_FLOW_P4
#define SLUICE_V1MODEL_FLOW_P4

control Flow(in headers_t hdr, inout metadata_t meta) {
    apply {
        bool to_inner_sender = meta.icmp_error == 1 && hdr.ipv4.dst == hdr.inner_ipv4.src;
        if (hdr.arp.isValid()) {
            meta.flow.dst = hdr.arp.target;
        } else if (to_inner_sender) {
            meta.flow.src = hdr.inner_ipv4.dst;
            meta.flow.dst = hdr.inner_ipv4.src;
            meta.flow.protocol = hdr.inner_ipv4.protocol;
        } else {
            meta.flow.src = hdr.ipv4.src;
            meta.flow.dst = hdr.ipv4.dst;
            meta.flow.protocol = hdr.ipv4.protocol;
        }
        if (hdr.tcp.isValid()) {
            meta.flow.src_port = hdr.tcp.src_port;
            meta.flow.dst_port = hdr.tcp.dst_port;
        } else if (hdr.udp.isValid()) {
            meta.flow.src_port = hdr.udp.src_port;
            meta.flow.dst_port = hdr.udp.dst_port;
        } else if (to_inner_sender) {
            meta.flow.src_port = hdr.inner_transport.dst_port;
            meta.flow.dst_port = hdr.inner_transport.src_port;
        }
    }
}

#endif
