// Metadata that Tofino's program passes from ingress to egress and from the first pass to the second, and constants of Tofino.
#ifndef SLUICE_TNA_TARGET_P4
#define SLUICE_TNA_TARGET_P4

#include "../common/metadata.p4"
#include "findings.p4"

// Value of the lowest bit of a port's metadata ($PORT_METADATA) if frames from this port begin with the controller's header. The
// CPU port's number depends on the SKU (192, 320, or a front-panel port), so the program contains no number. Packets to the CPU
// are copied to the port that the driver has configured in the traffic manager ($pre.port, $COPY_TO_CPU_PORT_ENABLE).
const bit<1> FROM_CPU = 1;

// Times that stateful units use as constants, because a unit has only two inputs. The stages' tables must contain the same
// values.
const bit<32> PENDING_TICKS   = 153;   // equals `pending_time` of the table timers
const int<32> RATE_SLOT_TICKS = 4096;  // equals 32 times `step_time` of the table rate_settings

const bit<8> RED = 3;                  // colour that a meter returns for a packet above the meter's rate
const bit<8> REFUSED = RED;

// Whether the switch can remove IPv4 options from the header of a refused SYN, which becomes a RST. This target cannot, because
// p4c generates a table for each word of a header that is removed after the parser has added the header to a checksum.
const bool TAKES_OPTIONS_OFF = false;

// Metadata that the first pass passes to the second: all bits that the chip can resubmit with a packet. Every SYN to a service,
// and every routed SYN from outside, is resubmitted, unless the first pass finds the connection's pin.
header resubmitted_h {
    server_id_t      preferred;
    destination_id_t destination;
    bit<8>           notes;       // the other decisions, packed into a byte by Note and unpacked by Recall
    bit<8>           way;
    bit<8>           pass;        // the purpose of the next pass
    resubmit_rest_t  unused;
}

// Metadata that egress needs in order to count a forwarded packet, and cannot derive from the packet.
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
    bit<16>     fingerprint;      // low half of the connection's fingerprint
    bit<16>     connection;       // place in the connection table: slot in the lower bits, way in the highest bit
#endif
}

struct ingress_metadata_t {
    metadata_t    sluice;
    verdict_t     verdict;        // what happens to the packet; set by several stages
    findings_t    findings;       // results of the first stages, which judge combines
    DropReason    server_drop;    // drop reason if the server is unknown; set by translate
    decided_t     decided;        // decisions that this pass applies: none yet in a SYN's first pass, the first pass's decisions
                                  // in the second pass; set by parser, recall
    decided_t     next;           // decisions of the first pass, for the second pass and for the counts; set by admission and
                                  // destinations in the first pass, by recall and parser in the second
    bit<8>        notes;          // `next`, packed into a byte; set by note
    bit<32>       acknowledgement; // acknowledgement number of a RST; set by Acknowledged of refusal
    bit<8>        noted;          // `notes` of the previous pass; set by parser
    resubmitted_h resubmitted;    // metadata of a second pass; set by parser
    bridge_h      bridge;         // valid if egress must count the packet; set by bridge
    bool          ipv4_checksum_wrong; // the IPv4 header's checksum is wrong; set by parser
    bit<16>       transport_rest; // sum of the TCP or UDP checksum without addresses and ports; set by parser
    bit<16>       icmp_rest;      // sum of an ICMP error's checksum without the inner packet's ports; set by parser
    bit<32>       acknowledged;   // acknowledgement number as a further term of a RST's checksum; set by checksums
    bit<1>        tcp_changed;    // the deparser writes the TCP (below: UDP, ICMP) checksum; set by checksums
    bit<1>        udp_changed;
    bit<1>        icmp_changed;
}

struct egress_metadata_t {
    metadata_t sluice;
    bridge_h   bridge;
    port_t     egress_port;
}

#endif
