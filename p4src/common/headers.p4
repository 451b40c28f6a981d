// Packet headers, and the headers of the controller's port. This file includes no file of a target (v1model, Tofino).
#ifndef SLUICE_COMMON_HEADERS_P4
#define SLUICE_COMMON_HEADERS_P4

#include "types.p4"
#include "constants.p4"

@controller_header("packet_in")
header packet_in_h {
    @id(1) port_t ingress_port;
    @id(2) bit<8> reason;         // why the packet is punted: a PuntReason
    @id(3) neighbour_id_t neighbour; // for PuntReason.neighbour: the next hop to resolve; 0: the packet's destination
}

// A digest to the controller: the sender of an ARP packet, and the packet's ingress port.
struct arp_sender_t {
    port_t ingress_port;
    ipv4_t address;
    mac_t  mac;
    ipv4_t answered_by;           // the requested address (of the router or of a service), for which the switch answers; if the
                                  // switch does not answer: the sender's own address
}

@controller_header("packet_out")
header packet_out_h {
    @id(1) port_t egress_port;    // the switch sends the frame unchanged to this port; INTO_PIPELINE: tickle_h follows, and the
                                  // frame passes the pipeline
}

// Header in front of a frame that the controller sends in a client's name, in order to close the client's idle connection.
header tickle_h {
    ticks_t least_age;            // ticks for which the connection must have been silent; if the silence is shorter, the switch
                                  // drops the frame
}

header ethernet_h {
    mac_t   dst;
    mac_t   src;
    bit<16> type;
}

header vlan_h {
    bit<3>    priority;
    bit<1>    drop_eligible;
    vlan_id_t id;
    bit<16>   type;
}

header arp_h {
    bit<16> hardware;
    bit<16> protocol;
    bit<8>  hardware_length;
    bit<8>  protocol_length;
    bit<16> operation;
    mac_t   sender_mac;
    ipv4_t  sender;
    mac_t   target_mac;
    ipv4_t  target;
}

header ipv4_h {
    bit<4>  version;
    bit<4>  ihl;
    bit<8>  tos;
    bit<16> total_length;
    bit<16> identification;
    bit<1>  reserved;
    bit<1>  dont_fragment;
    bit<1>  more_fragments;
    bit<13> fragment_offset;
    bit<8>  ttl;
    bit<8>  protocol;
    bit<16> checksum;
    ipv4_t  src;
    ipv4_t  dst;
}

header ipv4_options_h {
    varbit<320> data;
}

// A TCP header without its options. The options remain in the packet's unparsed rest, in front of the payload.
header tcp_h {
    l4_port_t src_port;
    l4_port_t dst_port;
    bit<32>   sequence;
    bit<32>   acknowledgement;
    bit<4>    data_offset;
    bit<4>    reserved;
    bit<1>    cwr;
    bit<1>    ece;
    bit<1>    urg;
    bit<1>    ack;
    bit<1>    psh;
    bit<1>    rst;
    bit<1>    syn;
    bit<1>    fin;
    bit<16>   window;
    bit<16>   checksum;
    bit<16>   urgent;
}

header udp_h {
    l4_port_t src_port;
    l4_port_t dst_port;
    bit<16>   length;
    bit<16>   checksum;
}

header icmp_h {
    bit<8>  type;
    bit<8>  code;
    bit<16> checksum;
    bit<32> rest;
}

// The first four bytes of TCP options that begin with NOP, NOP and SACK (RFC 2018, section 3). sack_block_h follows.
header sack_h {
    bit<16> nops;
    bit<8>  kind;
    bit<8>  length;
}

header sack_block_h {
    bit<32> left;
    bit<32> right;
}

// TCP options that remain in a SYN or SYN-ACK of a content connection: MSS, SACK permitted and window scale. NOPs replace an
// option that the segment lacks. In the ACK of a closed connection this header contains timestamps: NOP, NOP, kind and length
// (mss_lead, mss), the sender's value (sack), and the echoed value (scale_lead and scale).
header kept_options_h {
    bit<16> mss_lead;
    bit<16> mss;
    bit<32> sack;
    bit<24> scale_lead;
    bit<8>  scale;
}

// Header in front of a guessed connection's segment that the switch sends to an agent. A scale of 255 means no window scaling.
header guessed_h {
    bit<8>  server_scale;
    bit<8>  client_scale;
    bit<8>  sack;
    bit<8>  flags;
    bit<16> client_mss;
    server_id_t server;           // the server that was chosen without reading a request
    bit<32> client_number;        // the client's initial sequence number
    bit<16> type;
}

// A splice order (an agent's request that the switch translate a connection), or the switch's confirmation of the order. The
// header follows the Ethernet header directly. docs/reference/content.md
header splice_h {
    bit<8>    operation;
    bit<8>    status;             // result of the order: a SpliceStatus
    ipv4_t    client;
    l4_port_t client_port;
    ipv4_t    service;
    l4_port_t service_port;
    bit<32>   delta;
    bit<8>    shift;              // left shift of the server's windows in bits; negative: right shift
    bit<8>    remember;           // what the switch stores about the client: a Remember
    bit<8>    generation;
    bit<8>    turn;
    bit<8>    client_shift;       // left shift of the client's windows in bits, 0 to 14
}

// The part of the inner packet's transport header that every ICMP error contains: eight bytes (RFC 792), less than a TCP header.
header transport_start_h {
    l4_port_t src_port;
    l4_port_t dst_port;
    bit<16>   third;              // third 16-bit word; in UDP: length
    bit<16>   fourth;             // fourth 16-bit word; in UDP: checksum
}

struct headers_t {
    packet_in_h       packet_in;
    packet_out_h      packet_out;
    tickle_h          tickle;
    ethernet_h        ethernet;
    vlan_h            vlan;
    arp_h             arp;
    splice_h          splice;
    guessed_h         guessed;
    ipv4_h            ipv4;
    ipv4_options_h    ipv4_options;
    tcp_h             tcp;
    sack_h            sack;
    kept_options_h    kept_options;
    sack_block_h[4]   sack_blocks;
    udp_h             udp;
    icmp_h            icmp;
    // Headers of the packet inside an ICMP error.
    ipv4_h            inner_ipv4;
    ipv4_options_h    inner_ipv4_options;
    transport_start_h inner_transport;
}

#endif
