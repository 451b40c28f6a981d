// What Tofino hands over between its two pipelines and its two passes, and how its controller's port is recognised.
#ifndef SLUICE_TNA_TARGET_P4
#define SLUICE_TNA_TARGET_P4

#include "../common/metadata.p4"
#include "findings.p4"

// The lowest bit of a port's metadata ($PORT_METADATA): frames of this port begin with the controller's header. The CPU port has
// another number on each SKU (192, 320, or a front-panel port), so that no number stands in the program: to the CPU goes a copy,
// by the port that the driver has given the traffic manager ($pre.port, $COPY_TO_CPU_PORT_ENABLE).
const bit<1> FROM_CPU = 1;

// Times that a stateful unit has besides two others: constants of the program, with which the stages' own tables must agree.
const bit<32> PENDING_TICKS   = 153;   // `pending_time` of timers
const int<32> RATE_SLOT_TICKS = 4096;  // 32 times `step_time` of rate_settings

const bit<8> RED = 3;                  // of a meter
const bit<8> REFUSED = RED;

// p4c makes a table of each word of a header that is taken off and had been summed up.
const bool TAKES_OPTIONS_OFF = false;

// What a second pass knows of the first: all that the chip takes along. Every SYN towards inside takes one, unless it finds its pin in the
// first.
header resubmitted_h {
    server_id_t      preferred;
    destination_id_t destination;
    bit<8>           notes;       // what else is decided: recall
    bit<8>           way;
    bit<8>           pass;        // what it is for
    resubmit_rest_t  unused;
}

// What egress needs to count a forwarded packet, and cannot see from it.
header bridge_h {
    bit<8>      path;
    bit<8>      event;
    bit<8>      state;
    bit<1>      pinned;
    bit<1>      inside;
    bit<6>      unused;
    server_id_t server;
    bit<16>     payload;
    rate_time_t clock;
#if defined(RESOURCES)
    bit<1>      claimed;
    bit<7>      unused_too;
    bit<8>      content;
    bit<16>     fingerprint;      // the low half of it
    bit<16>     connection;       // its slot, and the way above
#endif
}

struct ingress_metadata_t {
    metadata_t    sluice;
    verdict_t     verdict;        // every stage that decides
    findings_t    found;
    DropReason    server_drop;    // translate
    decided_t     decided;        // of this pass: undecided in the first, what was resubmitted in the second; parser
    decided_t     next;           // by the first pass, for the second and for what is counted; admission, destinations; in the
                                  // second as it was noted; recall, parser
    bit<8>        notes;          // the same in a byte; note
    bit<32>       acknowledgement; // of a reset; refusal
    bit<8>        noted;          // of the pass before; parser
    resubmitted_h resubmitted;    // of a second pass; parser
    bridge_h      bridge;         // valid when egress has something to count; bridge
    bool          ipv4_checksum_wrong; // parser
    bit<16>       transport_rest; // of the checksum, what is not of addresses and ports; parser
    bit<16>       icmp_rest;      // of an ICMP error's, what is not of the ports inside; parser
    bit<32>       acknowledged;   // one more word of a reset's checksum; checksums
    bit<1>        tcp_changed;    // which checksums the deparser writes; checksums
    bit<1>        udp_changed;
    bit<1>        icmp_changed;
}

struct egress_metadata_t {
    metadata_t sluice;
    bridge_h   bridge;
    port_t     egress_port;
}

#endif
