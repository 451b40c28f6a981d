// TNA deparsers: compute the checksums, and emit the valid headers in the order in which they are sent.
#ifndef SLUICE_TNA_DEPARSER_P4
#define SLUICE_TNA_DEPARSER_P4

#if defined(CONTENT)
// Computes the TCP checksum in a program that also translates sequence numbers and windows.
control TcpChecksum(inout headers_t hdr, in ingress_metadata_t meta) {
    Checksum() tcp;

    apply {
        hdr.tcp.checksum = tcp.update({
            hdr.ipv4.src, hdr.ipv4.dst, hdr.tcp.src_port, hdr.tcp.dst_port, hdr.tcp.sequence, hdr.tcp.acknowledgement,
            hdr.tcp.window, meta.transport_rest });
    }
}

control EmitOrder(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.splice);
    }
}
#else
control TcpChecksum(inout headers_t hdr, in ingress_metadata_t meta) {
    Checksum() tcp;

    apply {
        hdr.tcp.checksum = tcp.update({
            hdr.ipv4.src, hdr.ipv4.dst, hdr.tcp.src_port, hdr.tcp.dst_port, meta.transport_rest, meta.acknowledged });
    }
}

control EmitOrder(packet_out packet, in headers_t hdr) {
    apply { }
}
#endif

control SluiceIngressDeparser(packet_out packet, inout headers_t hdr, in ingress_metadata_t meta,
                              in ingress_intrinsic_metadata_for_deparser_t for_deparser) {
    Checksum() ipv4;
    Checksum() udp;
    Checksum() icmp;
    Checksum() inner_ipv4;
    TcpChecksum() tcp_checksum;
    EmitOrder() emit_order;
    Resubmit() next_pass;
    @name(".arp_sender_t")
    Digest<arp_sender_t>() arp_sender;    // the digest has the same name on v1model

    apply {
        if (hdr.ipv4.isValid()) {
            hdr.ipv4.checksum = ipv4.update({
                hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.tos, hdr.ipv4.total_length, hdr.ipv4.identification,
                hdr.ipv4.reserved, hdr.ipv4.dont_fragment, hdr.ipv4.more_fragments, hdr.ipv4.fragment_offset,
                hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src, hdr.ipv4.dst, hdr.ipv4_options.data });
        }
        if (meta.tcp_changed == 1) {
            tcp_checksum.apply(hdr, meta);
        }
        if (meta.udp_changed == 1) {
            hdr.udp.checksum = udp.update({
                hdr.ipv4.src, hdr.ipv4.dst, hdr.udp.src_port, hdr.udp.dst_port, meta.transport_rest }, true);
        }
        if (meta.icmp_changed == 1) {
            hdr.inner_ipv4.checksum = inner_ipv4.update({
                hdr.inner_ipv4.version, hdr.inner_ipv4.ihl, hdr.inner_ipv4.tos, hdr.inner_ipv4.total_length,
                hdr.inner_ipv4.identification, hdr.inner_ipv4.reserved, hdr.inner_ipv4.dont_fragment,
                hdr.inner_ipv4.more_fragments, hdr.inner_ipv4.fragment_offset, hdr.inner_ipv4.ttl, hdr.inner_ipv4.protocol,
                hdr.inner_ipv4.src, hdr.inner_ipv4.dst, hdr.inner_ipv4_options.data });
            hdr.icmp.checksum = icmp.update({
                hdr.inner_transport.src_port, hdr.inner_transport.dst_port, hdr.inner_transport.fourth, meta.icmp_rest });
        }
        if (for_deparser.resubmit_type == RESUBMIT_NEXT_PASS) {
            next_pass.emit<resubmitted_h>({ meta.sluice.preferred, meta.next.destination, meta.notes, meta.sluice.vacant,
                                            (bit<8>)meta.sluice.next_pass, 0 });
        }
        if (for_deparser.digest_type == DIGEST_ARP_SENDER) {
            arp_sender.pack({ meta.sluice.ingress_port, hdr.arp.target, hdr.arp.target_mac, hdr.arp.sender });
        }
        packet.emit(meta.bridge);
        packet.emit(hdr.packet_in);
        packet.emit(hdr.ethernet);
        packet.emit(hdr.vlan);
        packet.emit(hdr.arp);
        emit_order.apply(packet, hdr);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.ipv4_options);
        packet.emit(hdr.tcp);
        packet.emit(hdr.udp);
        packet.emit(hdr.icmp);
        packet.emit(hdr.inner_ipv4);
        packet.emit(hdr.inner_ipv4_options);
        packet.emit(hdr.inner_transport);
    }
}

control SluiceEgressDeparser(packet_out packet, inout headers_t hdr, in egress_metadata_t meta,
                             in egress_intrinsic_metadata_for_deparser_t for_deparser) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.vlan);
        packet.emit(hdr.ipv4);
    }
}

#endif
