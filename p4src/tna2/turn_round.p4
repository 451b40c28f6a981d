// Turn round: turns the mirrored copy of a packet into a RST to the packet's sender. The copy leaves by the port that
// recirculates, and passes ingress as a packet from the other end of the connection.
//
//   reads  ipv4, tcp
//   writes ethernet.dst, ipv4.src, ipv4.dst, tcp, segment_changed
//
// Swapping fields does not change their sum, so only the changed flags change the checksum. Options and payload remain in the
// packet, because a RST may contain options and payload (RFC 9293, section 3.5.3).
#ifndef SLUICE_TNA2_TURN_ROUND_P4
#define SLUICE_TNA2_TURN_ROUND_P4

control TurnRound(inout headers_t hdr, inout bit<1> segment_changed) {
    bit<32> sequence;

    @hidden
    action swap_addresses() {
        ipv4_t src = hdr.ipv4.src;
        hdr.ipv4.src = hdr.ipv4.dst;
        hdr.ipv4.dst = src;
    }

    @hidden
    action swap_ports() {
        l4_port_t src_port = hdr.tcp.src_port;
        hdr.tcp.src_port = hdr.tcp.dst_port;
        hdr.tcp.dst_port = src_port;
    }

    // Uses the hash units, with one word in each action, because plain copies would need both numbers in one group of containers,
    // and p4c finds no such group.
    @hidden
    action keep_sequence() {
        @in_hash { sequence = hdr.tcp.sequence; }
    }

    @hidden
    action turn_sequence() {
        @in_hash { hdr.tcp.sequence = hdr.tcp.acknowledgement; }
    }

    @hidden
    action turn_acknowledgement() {
        @in_hash { hdr.tcp.acknowledgement = sequence; }
    }

    @hidden
    action reset() {
        hdr.ethernet.dst = RECIRCULATED_MAC;
        hdr.tcp.fin = 0;
        hdr.tcp.rst = 1;
        segment_changed = 1;
    }

    apply {
        keep_sequence();
        turn_sequence();
        turn_acknowledgement();
        swap_addresses();
        swap_ports();
        reset();
    }
}

#endif
