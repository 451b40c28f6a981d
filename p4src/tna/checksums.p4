// TNA checksums: the parser takes addresses and ports out of a checksum, the deparser puts in what they are by then (RFC 1624, eq. 2);
// what is left for the stages to say is which ones it is to write.
//
//   reads  path, reset, acknowledgement, tcp, udp, inner_ipv4.protocol
//   writes tcp_changed, udp_changed, icmp_changed
//          transport_rest, acknowledged: of a reset
//          inner_transport.fourth: a UDP checksum inside an ICMP error
#ifndef SLUICE_TNA_CHECKSUMS_P4
#define SLUICE_TNA_CHECKSUMS_P4

// Of the packet inside an ICMP error, the IPv4 header is summed up anew, so that what the error's checksum says of it stays true; a
// UDP checksum is taken off, for which zero stands (RFC 768). So is the reset of a refused SYN, whose data offset and flags are
// 0x5014, protocol 6, length 20.
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
            (_, Path.to_service, _, true, 0, _)             : neither();           // its sender computed none
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
