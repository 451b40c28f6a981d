// TNA checksums: HC' = ~(~HC + ~m + m') (RFC 1624, eq. 3), the complements taken here, the sum by the deparser's checksum units.
#ifndef SLUICE_TNA_CHECKSUMS_P4
#define SLUICE_TNA_CHECKSUMS_P4

// After translate: endpoint took the place of replaced.
control AdjustChecksums(in headers_t hdr, inout ingress_metadata_t meta) {
    @hidden
    action replaced() {
        meta.change.old_address = ~meta.sluice.replaced;
        meta.change.new_address = meta.sluice.endpoint;
        meta.change.old_port = ~meta.sluice.replaced_port;
        meta.change.new_port = meta.sluice.endpoint_port;
    }

    // The header inside sums up as before, its checksum included: of the ICMP message, only the port has changed.
    @hidden
    action inside() {
        meta.change.before = ~hdr.icmp.checksum;
        meta.inner_ipv4_before = ~hdr.inner_ipv4.checksum;
        meta.icmp_old_port = ~meta.sluice.replaced_port;
        meta.icmp_new_port = meta.sluice.endpoint_port;
        meta.icmp_changed = 1;
        meta.inner_changed = 1;
    }

    // UDP's checksum takes back what address and port have changed. One address more then makes up for the header's checksum.
    @hidden
    action inside_udp() {
        meta.inner_udp_before = ~hdr.inner_transport.fourth;
        meta.icmp_old_port = 0;
        meta.icmp_new_port = 0;
        meta.icmp_less = ~meta.sluice.endpoint;
        meta.icmp_more = meta.sluice.replaced;
        meta.inner_udp_changed = 1;
    }

    apply {
        replaced();
        if (hdr.tcp.isValid()) {
            meta.change.before = ~hdr.tcp.checksum;
            meta.tcp_changed = 1;
        } else if (hdr.udp.isValid()) {
            if (hdr.udp.checksum != 0) {                     // 0: the sender computed none
                meta.change.before = ~hdr.udp.checksum;
                meta.udp_changed = 1;
            }
        } else if (meta.sluice.icmp_error == 1) {
            inside();
            if (hdr.inner_ipv4.protocol == PROTOCOL_UDP && hdr.inner_transport.fourth != 0) {
                inside_udp();
            }
        }
    }
}

// The reset of a refused SYN: summed up anew, with the same units. Data offset and flags are 0x5014, protocol 6, length 20.
control ResetChecksum(in headers_t hdr, inout ingress_metadata_t meta) {
    apply {
        meta.change.before = 0x5014 + 6 + 20;
        meta.change.old_address = hdr.ipv4.src;
        meta.change.new_address = hdr.ipv4.dst;
        meta.change.old_port = hdr.tcp.src_port;
        meta.change.new_port = hdr.tcp.dst_port;
        meta.acknowledged = hdr.tcp.acknowledgement;
        meta.tcp_changed = 1;
    }
}

#endif
