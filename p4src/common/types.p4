// Types that more than one file uses. This file includes no file of a target (v1model, Tofino).
#ifndef SLUICE_COMMON_TYPES_P4
#define SLUICE_COMMON_TYPES_P4

#include "sizes.p4"

typedef bit<48> mac_t;
typedef bit<32> ipv4_t;
typedef bit<16> l4_port_t;
typedef bit<16> port_t;        // switch port; wide enough for every target; a target's main.p4 or verdict.p4 casts it to the
                               // target's port type
typedef bit<12> vlan_id_t;
typedef bit<16> neighbour_id_t; // number of a next hop (a host or router on a connected subnet); 0: none

typedef bit<16> service_id_t;  // number of a service; 0: none
typedef bit<16> server_id_t;   // number of a server; 0: none
typedef bit<16> others_id_t;   // group of servers from which the second look draws the second server; 0: none
typedef bit<16> weight_t;      // weight of a server in its service
typedef bit<16> destination_id_t; // 0: the destinations without a table entry

// Types of the connection table and of content switching.
#if defined(TOFINO) && defined(CONTENT)
typedef bit<16> turn_t;        // state of a content connection: its Turn (1 bit: spliced), window shift (5 bits) and agent (10
                               // bits)
#if defined(TOFINO2)
typedef bit<8> granted_t;      // answer of the splice-turn register to an agent's order; the register's output begins at bit 4,
                               // so 16 bits would overlap the next container
#else
typedef bit<16> granted_t;     // answer of the splice-turn register to an agent's order; as wide as the register's cell, because
                               // the assembler refuses other containers
#endif
#endif
typedef bit<(CONNECTION_SLOT_BITS)> pin_slot_t;
typedef bit<32> ticks_t;       // time in ticks of TICK_US microseconds, see constants.p4

// Index of a cell for an admitted client (externs/clients.p4), and index into the ring of sampled destinations.
typedef bit<(ADMITTED_CLIENT_BITS)> client_slot_t;
typedef bit<(SAMPLE_BITS)> sample_place_t;

// Types of response rates.
typedef bit<(RATE_FLOW_BITS)> rate_slot_t;
typedef bit<(32 - RATE_FLOW_BITS)> rate_fingerprint_t;
typedef bit<32> rate_key_t;    // hash of a connection: fingerprint in the upper bits, slot in the lower bits
typedef bit<32> rate_time_t;   // time in units of RATE_TICK_US microseconds, see constants.p4

// Returns whether time `a` is after time `b`, by serial-number comparison (RFC 1982). The result is also correct if the clock has
// wrapped between the two times, as long as they differ by less than 2^31.
bool later(in bit<32> a, in bit<32> b) {
    return (int<32>)(a - b) > 0;
}

#endif
