// Computes lengths in bytes from header fields in units of four bytes, and how many bytes a packet lacks.
#ifndef SLUICE_V1MODEL_LENGTHS_P4
#define SLUICE_V1MODEL_LENGTHS_P4

// Whether the switch can remove IPv4 options from the header of a refused SYN, which becomes a RST (stage refusal).
const bool TAKES_OPTIONS_OFF = true;

control Bytes(in bit<4> words, out bit<16> bytes) {
    apply {
        bytes = (bit<16>)words << 2;
    }
}

// Widens a 16-bit length to 32 bits.
control Widened(in bit<16> bytes, out bit<32> number) {
    apply {
        number = (bit<32>)bytes;
    }
}

control FrameMissing(in headers_t hdr, inout metadata_t meta) {
    @hidden
    action measure() {
        meta.lengths.frame_missing = hdr.ipv4.total_length |-| meta.ipv4_room;
    }

    apply {
        measure();
    }
}

// Computes how many bytes a packet lacks of its transport header or of the length in that header, and the length of a TCP
// segment's payload.
control TransportMissing(in headers_t hdr, in bit<16> tcp_length, inout metadata_t meta) {
    @hidden
    action open_segment() {
        meta.lengths.transport_missing = tcp_length |-| meta.lengths.body;
        meta.payload = meta.lengths.body - tcp_length;
    }

    @hidden
    action open_datagram() {
        meta.lengths.transport_missing = hdr.udp.length |-| meta.lengths.body;
    }

    @hidden
    action open_message() {
        meta.lengths.transport_missing = 16w8 |-| meta.lengths.body;
    }

    apply {
        if (hdr.tcp.isValid()) {
            if (hdr.tcp.data_offset < 5) {
                meta.lengths.transport_missing = 0xffff;
            } else {
                open_segment();
            }
        } else if (hdr.udp.isValid()) {
            if (hdr.udp.length < 8) {
                meta.lengths.transport_missing = 0xffff;
            } else if (hdr.ipv4.more_fragments == 0) {    // a fragment has the whole datagram's length
                open_datagram();
            }
        } else if (hdr.icmp.isValid()) {
            open_message();
        }
    }
}

#endif
