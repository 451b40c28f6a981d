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

// Connection table.
typedef bit<17> pin_slot_t;    // 2^17 slots in each way: CONNECTION_SLOTS in sizes.p4
typedef bit<31> fingerprint_t; // 31 + 32 bits share one 63-bit cell: Thrift carries signed 64-bit values
typedef bit<32> ticks_t;       // time in ticks of TICK_US microseconds, see constants.p4

#endif
