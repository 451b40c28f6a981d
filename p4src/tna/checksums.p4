// TNA checksums: decides which checksums the deparser writes. The parser subtracts the packet's addresses and ports from a
// checksum, and the deparser adds the new addresses and ports (RFC 1624, eq. 2).
//
//   reads  path, reset, acknowledgement, tcp, udp, inner_ipv4.protocol
//   writes tcp_changed, udp_changed, icmp_changed
//          transport_rest, acknowledged: of a RST that answers a refused SYN
//          inner_transport.fourth: a UDP checksum inside an ICMP error
#ifndef SLUICE_TNA_CHECKSUMS_P4
#define SLUICE_TNA_CHECKSUMS_P4

// In the packet inside an ICMP error, the IPv4 checksum is computed anew, so that the sum over the inner header does not change
// in the error's own checksum. The inner packet's UDP checksum is set to zero, which means no checksum (RFC 768). The TCP
// checksum of the RST that answers a refused SYN is computed anew: data offset and flags are 0x5014, the protocol is 6, and the
// length is 20.
control AdjustChecksums(inout headers_t hdr, inout ingress_metadata_t meta) {
    @hidden
    action segment() {
        meta.tcp_changed = 1;
    }

    @hidden
    action datagram() {
        meta.udp_changed = 1;
    }

    @hidden
    action inside() {
        meta.icmp_changed = 1;
    }

    @hidden
    action inside_udp() {
        meta.icmp_changed = 1;
        hdr.inner_transport.fourth = 0;
    }

    @hidden
    action reset() {
        meta.transport_rest = 0x5014 + 6 + 20;
        meta.acknowledged = meta.acknowledgement;
        meta.tcp_changed = 1;
    }

    @hidden
    action neither() { }

    @hidden
    table adjust {
        key = {
            meta.sluice.reset       : ternary @name("reset");
            meta.sluice.path        : ternary @name("path");
            hdr.tcp.isValid()       : ternary @name("tcp");
            hdr.udp.isValid()       : ternary @name("udp");
            hdr.udp.checksum        : ternary @name("udp_checksum");
            hdr.inner_ipv4.protocol : ternary @name("inner_protocol");
        }
        actions = { segment; datagram; inside; inside_udp; reset; neither; }
        const entries = {
            (1, _, _, _, _, _)                              : reset();
            (_, Path.to_service, true, _, _, _)             : segment();
            (_, Path.to_service, _, true, 0, _)             : neither();           // checksum 0: the packet has none
            (_, Path.to_service, _, true, _, _)             : datagram();
            (_, Path.to_service, _, _, _, PROTOCOL_UDP)     : inside_udp();
            (_, Path.to_service, _, _, _, _)                : inside();
            (_, Path.from_server, true, _, _, _)            : segment();
            (_, Path.from_server, _, true, 0, _)            : neither();
            (_, Path.from_server, _, true, _, _)            : datagram();
            (_, Path.from_server, _, _, _, PROTOCOL_UDP)    : inside_udp();
            (_, Path.from_server, _, _, _, _)               : inside();
        }
        const default_action = neither();
    }

    apply {
        adjust.apply();
    }
}

#endif
