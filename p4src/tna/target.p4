// What Tofino hands over between its two pipelines and its two passes, and where its controller is.
#ifndef SLUICE_TNA_TARGET_P4
#define SLUICE_TNA_TARGET_P4

// The CPU's port of a Tofino 1 with two pipes (PCIe); a port of another number is another build.
const PortId_t TNA_CPU_PORT = 192;

// Slots per way of the connection table, in place of CONNECTION_SLOTS. A register lies in one stage, and a stage has 48 map RAMs: of
// 64-bit cells, 2^16 take 33 of them, and 2^17 would take 65.
const bit<32> TNA_CONNECTION_SLOTS = 65536;

// Times that a stateful unit has besides two others: not of the stage's table (P4Runtime), whose own must agree with them. The first
// is a parameter of its registers (BF Runtime).
const bit<32> PENDING_TICKS   = 153;   // `pending_time` of timers
const int<32> RATE_SLOT_TICKS = 4096;  // 32 times `step_time` of rate_settings

const bit<8> RED = 3;                  // of a meter

const ResubmitType_t RESUBMIT_SECOND_PASS = 1;

// What a second pass knows of the first: 64 bits, all that Tofino 1 takes along. Every SYN towards inside takes one, unless it
// finds its pin in the first.
header resubmitted_h {
    server_id_t      preferred;
    destination_id_t destination;
    bit<8>           notes;       // what else is decided: recall
    bit<8>           way;
    bit<16>          unused;
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
}

// The words that a transport checksum changes by, complements of the old and the new ones; the deparser adds them up.
struct change_t {
    bit<16> before;               // the complement of the checksum that was
    ipv4_t  old_address;          // its complement
    ipv4_t  new_address;
    bit<16> old_port;             // its complement
    bit<16> new_port;
}

// Whose limits a packet is under, when it comes to them: behind everything, where its path is no longer known.
enum bit<8> Limited {
    no         = 0,
    as_service = 1,
    as_host    = 2
}

struct ingress_metadata_t {
    metadata_t    sluice;
    decided_t     decided;        // of this pass: undecided in the first, what was resubmitted in the second; parser
    decided_t     next;           // by this pass, for the second; admission, destinations
    bit<8>        notes;          // the same in a byte; note
    bit<8>        noted;          // of the pass before; parser
    Limited       limited;        // main
    resubmitted_h resubmitted;    // of a second pass; parser
    bridge_h      bridge;         // valid when egress has something to count; bridge
    bool          ipv4_checksum_wrong; // parser
    change_t      change;         // of the transport, or of the ICMP message; checksums
    bit<32>       acknowledged;   // one more word of a reset; checksums
    bit<16>       icmp_old_port;  // the words that an ICMP error's checksum changes by: of the ports, a complement,
    bit<16>       icmp_new_port;  // and what is added;
    bit<32>       icmp_less;      // of the addresses, a complement, and what is added; checksums
    bit<32>       icmp_more;
    bit<16>       inner_ipv4_before;  // complements of the checksums inside an ICMP error; checksums
    bit<16>       inner_udp_before;
    bit<1>        tcp_changed;    // which checksums the deparser writes; checksums
    bit<1>        udp_changed;
    bit<1>        icmp_changed;
    bit<1>        inner_changed;
    bit<1>        inner_udp_changed;
}

struct egress_metadata_t {
    metadata_t sluice;
    bridge_h   bridge;
}

#endif
