// Metadata that Tofino passes between its two pipelines and its two passes, and how the controller's port is recognised.
#ifndef SLUICE_TNA_TARGET_P4
#define SLUICE_TNA_TARGET_P4

#include "../common/metadata.p4"
#include "findings.p4"

// The lowest bit of a port's metadata ($PORT_METADATA) is 1 if frames of this port begin with the controller's header. The CPU
// port has another number on each SKU (192, 320, or a front-panel port), so the program contains no number. Packets to the CPU
// are copied to the port that the driver has configured in the traffic manager ($pre.port, $COPY_TO_CPU_PORT_ENABLE).
const bit<1> FROM_CPU = 1;

// Times that stateful units use as constants, since they have only two inputs. The stages' own tables must have the same values.
const bit<32> PENDING_TICKS   = 153;   // `pending_time` of timers
const int<32> RATE_SLOT_TICKS = 4096;  // 32 times `step_time` of rate_settings

const bit<8> RED = 3;                  // colour of a meter
const bit<8> REFUSED = RED;

// p4c makes a table for each word of a header that is removed after it was added to a checksum.
const bool TAKES_OPTIONS_OFF = false;

// Metadata from the first pass for the second: all bits that the chip resubmits. Every SYN towards inside is resubmitted, unless
// it finds its pin in the first pass.
header resubmitted_h {
    server_id_t      preferred;
    destination_id_t destination;
    bit<8>           notes;       // the other decisions, packed; note and recall
    bit<8>           way;
    bit<8>           pass;        // the purpose of the next pass
    resubmit_rest_t  unused;
}

// Metadata that egress needs to count a forwarded packet and cannot derive from it.
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
    bit<16>     fingerprint;      // low half of the fingerprint
    bit<16>     connection;       // slot in the lower bits, way in the upper bit
#endif
}

struct ingress_metadata_t {
    metadata_t    sluice;
    verdict_t     verdict;        // outcome of the packet; every stage that decides it
    findings_t    found;          // results of the first stages
    DropReason    server_drop;    // drop reason of the look-up of the server; translate
    decided_t     decided;        // decisions for this pass: still open in the first pass, the resubmitted ones in the second;
                                  // parser
    decided_t     next;           // decisions of the first pass, for the second and for the counts; admission, destinations; in
                                  // the second pass the restored ones; recall, parser
    bit<8>        notes;          // `next`, packed into a byte; note
    bit<32>       acknowledgement; // acknowledgement number of a RST; refusal
    bit<8>        noted;          // `notes` of the pass before; parser
    resubmitted_h resubmitted;    // metadata of a second pass; parser
    bridge_h      bridge;         // valid if egress has something to count; bridge
    bool          ipv4_checksum_wrong; // the IPv4 header's checksum is wrong; parser
    bit<16>       transport_rest; // part of the checksum that does not come from addresses and ports; parser
    bit<16>       icmp_rest;      // part of an ICMP error's checksum that does not come from the ports inside; parser
    bit<32>       acknowledged;   // one more word in the checksum of a RST; checksums
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
