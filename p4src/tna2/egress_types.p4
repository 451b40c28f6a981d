// What egress of Tofino 2 knows of a packet.
#ifndef SLUICE_TNA2_EGRESS_TYPES_P4
#define SLUICE_TNA2_EGRESS_TYPES_P4

// Of a SYN or SYN-ACK. Where its options are not read, mss is 0.
struct offered_options_t {
    bit<16> mss;
    bit<8>  scale;                    // of windows, or NO_SCALE
}

const bit<8> NO_SCALE = 15;

struct resources_egress_t {
    metadata_t        sluice;
    bridge_h          bridge;
    port_t            egress_port;
    offered_options_t offered;        // parser
    bit<16>           tcp_rest;       // of the checksum, what is not of the window; parser
    bit<1>            window_changed; // caps
}

#endif
