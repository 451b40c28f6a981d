// What egress of Tofino 2 knows of a packet.
#ifndef SLUICE_TNA2_EGRESS_TYPES_P4
#define SLUICE_TNA2_EGRESS_TYPES_P4

// Of a SYN or SYN-ACK. Where its options are not read, mss is 0.
struct offered_options_t {
    bit<16> mss;
    bit<8>  scale;                    // of windows, or NO_SCALE
}

const bit<8> NO_SCALE = 15;

// In front of a mirrored copy that becomes a RST. Of other packets the first byte is the bridge's path.
header copy_h {
    bit<8> mark;
}

const bit<8> COPY_MARK = 0xff;
const MirrorType_t MIRROR_RESET = 1;

// What the controller has to set up: this mirror session goes to a port that recirculates, which strips tags in egress_vlan, and at which
// `ports` gives the router this address.
const MirrorId_t RESET_SESSION = 1;
const mac_t RECIRCULATED_MAC = 0x020000000001;

struct resources_egress_t {
    metadata_t        sluice;
    bridge_h          bridge;
    port_t            egress_port;
    offered_options_t offered;        // parser
    bit<16>           tcp_rest;       // of the checksum, what is not of the window and flags; parser
    bit<1>            segment_changed; // window or flags; caps, closing, turn_round
    copy_h            copy;           // valid: this is a mirrored copy; parser
    bit<8>            copy_mark;      // for the header in front of a copy of this packet; closing
    MirrorId_t        reset_session;  // that mirrors it; closing
}

#endif
