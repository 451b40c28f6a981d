// Validate: drops packets with impossible lengths or addresses, so that later stages need no such check.
//
//   reads  ipv4, lengths, martian, drop
//   drops  ipv4_length, fragment, martian, l4_length
#ifndef SLUICE_STAGES_VALIDATE_P4
#define SLUICE_STAGES_VALIDATE_P4

control Validate(in headers_t hdr, in metadata_t meta, inout DropReason drop) {
    apply {
        if (meta.lengths.header_missing != 0 || meta.lengths.frame_missing != 0) {
            drop = DropReason.ipv4_length;
        } else if (hdr.ipv4.fragment_offset != 0) {
            drop = DropReason.fragment;
        } else if (meta.martian == 1 || hdr.ipv4.src == hdr.ipv4.dst) {
            drop = DropReason.martian;
        }
    }
}

// Drops a packet whose transport header has an impossible length. This length is known one step after the length of the
// IPv4 header. An earlier reason to drop the packet is not overwritten.
control ValidateTransport(in metadata_t meta, inout DropReason drop) {
    apply {
        if (drop == DropReason.none && meta.lengths.transport_missing != 0) {
            drop = DropReason.l4_length;
        }
    }
}

#endif
