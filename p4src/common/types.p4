// Types that more than one file uses. This file includes nothing of a target.
#ifndef SLUICE_COMMON_TYPES_P4
#define SLUICE_COMMON_TYPES_P4

#include "sizes.p4"

typedef bit<48> mac_t;
typedef bit<32> ipv4_t;
typedef bit<16> l4_port_t;
typedef bit<16> port_t;        // switch port; wide enough for every target, whose main.p4 or verdict narrows it
typedef bit<12> vlan_id_t;

typedef bit<16> service_id_t;  // 0: none
typedef bit<16> server_id_t;   // 0: none
typedef bit<16> others_id_t;   // a group of servers from which the second look draws its other server; 0: none
typedef bit<16> weight_t;      // weight of a server in its service
typedef bit<16> destination_id_t; // 0: every destination without an entry

// Types of the connection table.
#if defined(TOFINO) && defined(CONTENT)
typedef bit<16> turn_t;        // state of a content connection: its Turn (1 bit: spliced), window shift (5 bits), agent (10 bits)
#if defined(TOFINO2)
typedef bit<8> granted_t;      // answer of the splice-turn register to an agent's order; the register outputs it from bit 4 on,
                               // so 16 bits would reach into the next container
#else
typedef bit<16> granted_t;     // answer of the splice-turn register to an agent's order; as wide as the cell, since the assembler
                               // refuses other containers
#endif
#endif
typedef bit<(CONNECTION_SLOT_BITS)> pin_slot_t;
typedef bit<32> ticks_t;       // time in ticks of TICK_US microseconds, see constants.p4

// Indices of the memory of admitted clients, and of the ring of sampled destinations.
typedef bit<(ADMITTED_CLIENT_BITS)> client_slot_t;
typedef bit<(SAMPLE_BITS)> sample_place_t;

// Types of response rates.
typedef bit<(RATE_FLOW_BITS)> rate_slot_t;
typedef bit<(32 - RATE_FLOW_BITS)> rate_fingerprint_t;
typedef bit<32> rate_key_t;    // fingerprint in the upper bits, slot in the lower bits
typedef bit<32> rate_time_t;   // in units of RATE_TICK_US microseconds, see constants.p4

// Whether time `a` is after `b`, compared as serial numbers (RFC 1982): right across a wrap, for differences below 2^31.
bool later(in bit<32> a, in bit<32> b) {
    return (int<32>)(a - b) > 0;
}

#endif
