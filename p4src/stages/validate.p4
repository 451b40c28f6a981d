// Validate: nothing behind this stage meets a packet whose lengths or addresses lie.
//
//   reads  ipv4, tcp, udp, icmp, lengths, martian
//   writes path
//   drops  ipv4_length, fragment, l4_length, martian
#ifndef SLUICE_STAGES_VALIDATE_P4
#define SLUICE_STAGES_VALIDATE_P4

control Validate(in headers_t hdr, inout metadata_t meta) {
    @hidden
    action reject(DropReason reason) {
        meta.verdict.drop = reason;
        meta.path = Path.done;
    }

    apply {
        if (meta.lengths.header_missing != 0 || meta.lengths.frame_missing != 0) {
            reject(DropReason.ipv4_length);
        } else if (hdr.ipv4.fragment_offset != 0) {
            reject(DropReason.fragment);
        } else if (meta.martian == 1 || hdr.ipv4.src == hdr.ipv4.dst) {
            reject(DropReason.martian);
        } else if ((hdr.tcp.isValid() && (hdr.tcp.data_offset < 5 || meta.lengths.tcp_missing != 0))
                   || (hdr.udp.isValid() && (hdr.udp.length < 8          // of a fragment: the whole datagram's
                                             || (hdr.ipv4.more_fragments == 0 && meta.lengths.udp_missing != 0)))
                   || (hdr.icmp.isValid() && meta.lengths.body < 8)) {
            reject(DropReason.l4_length);
        }
    }
}

#endif
