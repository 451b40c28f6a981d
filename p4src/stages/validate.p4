// Validate: nothing behind this stage meets a packet whose lengths or addresses lie.
//
//   reads  ipv4, tcp, udp, icmp, ipv4_room
//   writes path, payload
//   drops  ipv4_length, fragment, l4_length, martian
#ifndef SLUICE_STAGES_VALIDATE_P4
#define SLUICE_STAGES_VALIDATE_P4

control Validate(in headers_t hdr, inout metadata_t meta) {
    @hidden
    action reject(DropReason reason) {
        meta.verdict.drop = reason;
        meta.path = Path.done;
    }

    Bytes() of_header;
    Bytes() of_tcp_header;

    bit<16> header_length;
    bit<16> tcp_length;
    bit<16> body;
    bit<16> header_missing;
    bit<16> frame_missing;
    bit<16> tcp_missing;
    bit<16> udp_missing;

    // Of two fields, |-| says which is larger: hardware compares with constants only, and an action of it does one step.
    @hidden
    action measure() {
        frame_missing = hdr.ipv4.total_length |-| meta.ipv4_room;
    }

    @hidden
    action open_packet() {
        header_missing = header_length |-| hdr.ipv4.total_length;
        body = hdr.ipv4.total_length - header_length;
    }

    @hidden
    action open_body() {
        tcp_missing = tcp_length |-| body;
        udp_missing = hdr.udp.length |-| body;
    }

    @hidden
    action open_segment() {
        meta.payload = body - tcp_length;
    }

    apply {
        of_header.apply(hdr.ipv4.ihl, header_length);
        of_tcp_header.apply(hdr.tcp.data_offset, tcp_length);
        measure();
        open_packet();
        open_body();
        if (hdr.tcp.isValid()) {
            open_segment();
        }
        if (header_missing != 0 || frame_missing != 0) {
            reject(DropReason.ipv4_length);
        } else if (hdr.ipv4.fragment_offset != 0) {
            reject(DropReason.fragment);
        } else if (hdr.ipv4.src[31:24] == 127 || hdr.ipv4.src[31:24] == 0 || hdr.ipv4.src[31:29] == 7
                   || hdr.ipv4.dst[31:24] == 127 || hdr.ipv4.dst[31:24] == 0 || hdr.ipv4.dst[31:29] == 7
                   || hdr.ipv4.src == hdr.ipv4.dst) {
            reject(DropReason.martian);
        } else if ((hdr.tcp.isValid() && (hdr.tcp.data_offset < 5 || tcp_missing != 0))
                   || (hdr.udp.isValid() && (hdr.udp.length < 8          // of a fragment: the whole datagram's
                                             || (hdr.ipv4.more_fragments == 0 && udp_missing != 0)))
                   || (hdr.icmp.isValid() && body < 8)) {
            reject(DropReason.l4_length);
        }
    }
}

#endif
