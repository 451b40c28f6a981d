// v1model deparser: emits the valid headers in the order in which they are sent.
#ifndef SLUICE_V1MODEL_DEPARSER_P4
#define SLUICE_V1MODEL_DEPARSER_P4

control SluiceDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.packet_in);
        packet.emit(hdr.ethernet);
        packet.emit(hdr.vlan);
        packet.emit(hdr.arp);
        packet.emit(hdr.guessed);
        packet.emit(hdr.splice);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.ipv4_options);
        packet.emit(hdr.tcp);
        packet.emit(hdr.kept_options);
        packet.emit(hdr.sack);
        packet.emit(hdr.sack_blocks);
        packet.emit(hdr.udp);
        packet.emit(hdr.icmp);
        packet.emit(hdr.inner_ipv4);
        packet.emit(hdr.inner_ipv4_options);
        packet.emit(hdr.inner_transport);
    }
}

#endif
