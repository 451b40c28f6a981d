// Widths of everything that more than one file speaks of. No target include.
#ifndef SLUICE_COMMON_TYPES_P4
#define SLUICE_COMMON_TYPES_P4

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
typedef bit<32> ticks_t;       // time in ticks of TICK_US microseconds, see constants.p4

// Response rates.
typedef bit<32> rate_time_t;   // in units of RATE_TICK_US microseconds, see constants.p4

// Times are compared as serial numbers (RFC 1982): right across a wrap, for differences below 2^31.
bool later(in bit<32> a, in bit<32> b) {
    return (int<32>)(a - b) > 0;
}

#endif
