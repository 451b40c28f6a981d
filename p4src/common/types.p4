// Widths of everything that more than one file speaks of. No target include.
#ifndef SLUICE_COMMON_TYPES_P4
#define SLUICE_COMMON_TYPES_P4

#include "sizes.p4"

typedef bit<48> mac_t;
typedef bit<32> ipv4_t;
typedef bit<16> l4_port_t;
typedef bit<16> port_t;        // switch port, wide enough for every target; the target's shim narrows it
typedef bit<12> vlan_id_t;

typedef bit<16> service_id_t;  // 0: none
typedef bit<16> server_id_t;   // 0: none
typedef bit<16> others_id_t;   // a group of servers to draw the other one from; 0: none
typedef bit<16> weight_t;      // of a server in its service
typedef bit<16> destination_id_t; // 0: any that has no entry

// Connection table.
#if defined(TOFINO) && defined(CONTENT)
typedef bit<16> turn_t;        // a content connection's Turn (1 bit: spliced), the shift of its windows (5), its agent (10)
#if defined(TOFINO2)
typedef bit<8> granted_t;      // what a turn's cell says to an agent; a unit gives it from its fourth bit on, and 16 would end in the next container
#else
typedef bit<16> granted_t;     // what a turn's cell says to an agent; as wide as the cell: the assembler refuses other containers
#endif
#endif
typedef bit<(CONNECTION_SLOT_BITS)> pin_slot_t;
typedef bit<32> ticks_t;       // time in ticks of TICK_US microseconds, see constants.p4

// The memory of admitted clients, and the ring of sampled destinations.
typedef bit<(ADMITTED_CLIENT_BITS)> client_slot_t;
typedef bit<(SAMPLE_BITS)> sample_place_t;

// Response rates.
typedef bit<(RATE_FLOW_BITS)> rate_slot_t;
typedef bit<(32 - RATE_FLOW_BITS)> rate_fingerprint_t;
typedef bit<32> rate_key_t;    // fingerprint above, slot below
typedef bit<32> rate_time_t;   // in units of RATE_TICK_US microseconds, see constants.p4

// Times are compared as serial numbers (RFC 1982): right across a wrap, for differences below 2^31.
bool later(in bit<32> a, in bit<32> b) {
    return (int<32>)(a - b) > 0;
}

#endif
