// Flow: what a packet is about. Its tuple; of an ICMP error to the sender of the packet inside, the reversed tuple of that; of an
// ARP, its target.
//
//   reads  arp, ipv4, tcp, udp
//          icmp_error, inner_ipv4, inner_transport: of an ICMP error
//   writes flow
//
// An ICMP error goes to whoever sent the packet inside (RFC 792). One to anybody else is about none of our connections, whatever
// it carries, and is a packet like any other to its destination (RFC 5508, REQ-4 and REQ-5).
#ifndef SLUICE_V1MODEL_FLOW_P4
#define SLUICE_V1MODEL_FLOW_P4

control Flow(in headers_t hdr, inout metadata_t meta) {
    apply {
        bool about = meta.icmp_error == 1 && hdr.ipv4.dst == hdr.inner_ipv4.src;
        if (hdr.arp.isValid()) {
            meta.flow.dst = hdr.arp.target;
        } else if (about) {
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
        } else if (about) {
            meta.flow.src_port = hdr.inner_transport.dst_port;
            meta.flow.dst_port = hdr.inner_transport.src_port;
        }
    }
}

#endif
