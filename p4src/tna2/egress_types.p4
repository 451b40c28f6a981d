// Metadata of a packet in the egress of Tofino 2.
#ifndef SLUICE_TNA2_EGRESS_TYPES_P4
#define SLUICE_TNA2_EGRESS_TYPES_P4

// Options of a SYN or SYN-ACK. If the parser does not know the sequence of options, mss is 0.
struct offered_options_t {
    bit<16> mss;
    bit<8>  scale;                    // window scale, or NO_SCALE
}

const bit<8> NO_SCALE = 15;

// Header in front of a mirrored copy that becomes a RST. Other packets begin with bridge_h.path, which is never COPY_MARK.
header copy_h {
    bit<8> mark;
}

const bit<8> COPY_MARK = 0xff;
const MirrorType_t MIRROR_RESET = 1;

// The controller must configure this mirror session with a port that recirculates packets. For this port, the table egress_vlan
// strips tags, and the table `ports` contains RECIRCULATED_MAC as the router's address.
const MirrorId_t RESET_SESSION = 1;
const mac_t RECIRCULATED_MAC = 0x020000000001;

struct resources_egress_t {
    metadata_t        sluice;
    bridge_h          bridge;
    port_t            egress_port;
    offered_options_t offered;        // options of a SYN or SYN-ACK; set by parser
    bit<16>           tcp_rest;       // sum of the words that the TCP checksum covers, except the words with the flags and
                                      // the window; set by parser
    bit<1>            segment_changed; // window or flags have changed; set by caps, closing, turn_round
    copy_h            copy;           // valid in a mirrored copy; set by parser
    bit<8>            copy_mark;      // mark for the header in front of a copy of this packet; set by closing
    MirrorId_t        reset_session;  // mirror session of a copy of this packet; set by closing
}

#endif
