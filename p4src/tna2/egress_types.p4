// Metadata of a packet in the egress of Tofino 2.
#ifndef SLUICE_TNA2_EGRESS_TYPES_P4
#define SLUICE_TNA2_EGRESS_TYPES_P4

// Options of a SYN or SYN-ACK. If they are not parsed, mss is 0.
struct offered_options_t {
    bit<16> mss;
    bit<8>  scale;                    // scale of windows, or NO_SCALE
}

const bit<8> NO_SCALE = 15;

// Stands before a mirrored copy that becomes a RST. The first byte of other packets is the bridge's path.
header copy_h {
    bit<8> mark;
}

const bit<8> COPY_MARK = 0xff;
const MirrorType_t MIRROR_RESET = 1;

// The controller has to configure this mirror session to use a port that recirculates. For that port, egress_vlan strips tags,
// and `ports` has this address as the router's.
const MirrorId_t RESET_SESSION = 1;
const mac_t RECIRCULATED_MAC = 0x020000000001;

struct resources_egress_t {
    metadata_t        sluice;
    bridge_h          bridge;
    port_t            egress_port;
    offered_options_t offered;        // options of a SYN or SYN-ACK; parser
    bit<16>           tcp_rest;       // part of the checksum that does not come from window and flags; parser
    bit<1>            segment_changed; // window or flags have changed; caps, closing, turn_round
    copy_h            copy;           // valid in a mirrored copy; parser
    bit<8>            copy_mark;      // mark for the header before a copy of this packet; closing
    MirrorId_t        reset_session;  // mirror session for that copy; closing
}

#endif
