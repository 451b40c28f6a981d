// Numbers with a name. tools/gen_names.py carries the enums and constants of this file into Python. No target include.
#ifndef SLUICE_COMMON_CONSTANTS_P4
#define SLUICE_COMMON_CONSTANTS_P4

// Why a packet was dropped: an index of the counter `verdicts`, and a line of docs/pipeline.md.
enum bit<8> DropReason {
    none                 = 0,  // forwarded, answered or punted
    truncated            = 1,  // a header goes past the end of the frame
    unsupported          = 2,  // neither ARP nor IPv4 behind at most one 802.1Q tag, or an ARP that is not Ethernet/IPv4
    ipv4_header          = 3,  // version is not 4, or the header length is below 20 bytes
    ipv4_length          = 4,  // total length below the headers, or beyond the frame
    ipv4_checksum        = 5,  // header checksum is wrong
    fragment             = 6,  // a fragment other than the first: it has no ports
    l4_length            = 7,  // TCP data offset or UDP length impossible
    port_unknown         = 8,  // the ingress port is not configured
    not_for_us           = 9,  // the frame is not addressed to the router
    martian              = 10, // source or destination is loopback, 0.0.0.0/8, multicast or broadcast; or the two are alike
    ttl_exceeded         = 11, // TTL ran out; the controller answers
    no_service           = 12, // one of our addresses, but no service there
    direct_to_server     = 13, // addressed past the service to a server's own (address, port)
    admission_refused    = 14, // a new connection above its service's or its destination's rate
    no_server            = 15, // the service has no server to choose
    server_unknown       = 16, // pinned to a server that is no longer configured
    no_route             = 17,
    neighbour_unresolved = 18, // next hop has no MAC address yet; the controller asks for it
    arp_ignored          = 19, // an ARP that is not for one of our addresses: only its sender is heard
    punt_limited         = 20, // meant for the controller, above its rate
    cpu_header           = 21, // from the controller, without a valid packet_out header
    admission_reset      = 22, // as admission_refused, and answered by a reset
    source_mac           = 23  // the frame's source is a group address, which no station has
}

// Why the controller is told of a packet: an index of the counter `punts` and of the meter `punt_limit`. Of an ARP it is told the
// sender, by a digest (arp_sender_t); of everything else it gets the packet.
enum bit<8> PuntReason {
    none      = 0,
    arp       = 1,             // an ARP reply to us: a neighbour to learn
    ttl       = 2,             // answer with ICMP time exceeded; the packet is as it was received
    neighbour = 3,             // next hop unresolved: ask for it
    sender    = 4              // any other ARP: a neighbour that may have moved
}

// State of a pinned connection, and how long its slot is kept without a packet that counts: docs/pipeline.md. Below server_closing it
// is open. Tofino knows pending, answered, established and closed.
enum bit<8> PinState {
    pending        = 0,        // SYN seen
    answered       = 1,        // SYN-ACK seen
    established    = 2,        // the handshake's last ACK seen
    reopening      = 3,        // then another SYN
    client_closing = 4,        // the client's FIN seen
    server_closing = 5,        // the server's FIN seen
    client_reset   = 6,        // the client's RST seen, and nothing of the server since
    closed         = 7,        // FINs of both seen, or the client's RST behind the server's FIN
    reset          = 8         // the server's RST seen
}

// Time in the connection table: ticks of 65.536 ms, a 48-bit microsecond clock without its low 16 bits.
@noWarn("unused")                 // told to the controller
const bit<32> TICK_US   = 65536;
// Added to the clock so that a zeroed cell is older than any idle time (BMv2's clock starts at 0): 12.7 days.
const bit<32> TICK_BASE = 0x01000000;

// Time in the response rates: a 48-bit microsecond clock without its low 10 bits, plus TICK_BASE. 32 bits of it last 50 days.
@noWarn("unused")                 // told to the controller
const bit<32> RATE_TICK_US = 1024;

const bit<16> CPU_PORT  = 510; // the controller's port, as --cpu-port of the switch

const bit<16> ETHERTYPE_IPV4 = 0x0800;
const bit<16> ETHERTYPE_ARP  = 0x0806;
const bit<16> ETHERTYPE_VLAN = 0x8100;

const bit<8> PROTOCOL_ICMP = 1;
const bit<8> PROTOCOL_TCP  = 6;
const bit<8> PROTOCOL_UDP  = 17;

const bit<16> ARP_REQUEST = 1;
const bit<16> ARP_REPLY   = 2;

const bit<8> ICMP_ECHO_REPLY        = 0;
const bit<8> ICMP_UNREACHABLE       = 3;
const bit<8> ICMP_ECHO              = 8;
const bit<8> ICMP_TIME_EXCEEDED     = 11;
const bit<8> ICMP_PARAMETER_PROBLEM = 12;

const bit<8> ECHO_TTL  = 64;
const bit<8> RESET_TTL = 64;

#endif
