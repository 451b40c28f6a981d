// v1model parser: parses Ethernet, at most one 802.1Q tag, ARP, IPv4 with options, TCP, UDP, ICMP, and the packet inside an ICMP
// error. Of a packet from the controller, only the header packet_out is parsed, and after it a tickle with its packet.
#ifndef SLUICE_V1MODEL_PARSER_P4
#define SLUICE_V1MODEL_PARSER_P4

#if defined(CONTENT)
#include "handshake.p4"
#endif

error {
    SourceAddress,
    UnsupportedHeader,
    Ipv4Header
}

parser SluiceParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t intrinsic) {
#if defined(CONTENT)
    HandshakeParser() handshake;

#endif
    state start {
        transition select(intrinsic.ingress_port) {
            (bit<9>)CPU_PORT : parse_packet_out;
            default          : parse_ethernet;
        }
    }

    state parse_packet_out {
        packet.extract(hdr.packet_out);
#if defined(RESOURCES)
        transition select(hdr.packet_out.egress_port) {
            INTO_PIPELINE : parse_tickle;
            default       : accept;
        }
    }

    state parse_tickle {
        packet.extract(hdr.tickle);
        packet.extract(hdr.ethernet);
        meta.ipv4_room = (bit<16>)intrinsic.packet_length - 20;
        transition select(hdr.ethernet.type) {
            ETHERTYPE_IPV4 : parse_ipv4;
            default        : accept;
        }
#else
        transition accept;
#endif
    }

    state parse_ethernet {
        packet.extract(hdr.ethernet);
        verify(hdr.ethernet.src[40:40] == 0, error.SourceAddress);
        meta.ipv4_room = (bit<16>)intrinsic.packet_length - 14;
        transition select(hdr.ethernet.type) {
            ETHERTYPE_VLAN : parse_vlan;
            ETHERTYPE_ARP  : parse_arp;
            ETHERTYPE_IPV4 : parse_ipv4;
#if defined(CONTENT)
            ETHERTYPE_SPLICE : parse_splice;
#endif
            default        : accept;
        }
    }

    state parse_vlan {
        packet.extract(hdr.vlan);
        meta.ipv4_room = (bit<16>)intrinsic.packet_length - 18;
        transition select(hdr.vlan.type) {
            ETHERTYPE_ARP  : parse_arp;
            ETHERTYPE_IPV4 : parse_ipv4;
            default        : accept;
        }
    }

    state parse_arp {
        packet.extract(hdr.arp);
        verify(hdr.arp.hardware == 1 && hdr.arp.protocol == ETHERTYPE_IPV4
               && hdr.arp.hardware_length == 6 && hdr.arp.protocol_length == 4, error.UnsupportedHeader);
        transition accept;
    }

    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        verify(hdr.ipv4.version == 4 && hdr.ipv4.ihl >= 5, error.Ipv4Header);
        transition select(hdr.ipv4.ihl) {
            5       : parse_transport;
            default : parse_ipv4_options;
        }
    }

    state parse_ipv4_options {
        packet.extract(hdr.ipv4_options, ((bit<32>)hdr.ipv4.ihl - 5) << 5);
        transition parse_transport;
    }

    state parse_transport {
        transition select(hdr.ipv4.fragment_offset, hdr.ipv4.protocol) {
            (0, PROTOCOL_TCP)  : parse_tcp;
            (0, PROTOCOL_UDP)  : parse_udp;
            (0, PROTOCOL_ICMP) : parse_icmp;
            default            : accept;
        }
    }

#if defined(CONTENT)
    // Parses all options of a SYN or SYN-ACK where caps or content switching need the options. Of other segments, only options
    // that are exactly NOP, NOP and SACK are parsed, the form in which hosts without timestamps send SACK.
    state parse_tcp {
        packet.extract(hdr.tcp);
        transition select((bit<8>)meta.pass, hdr.tcp.syn, hdr.tcp.data_offset) {
            ((bit<8>)Pass.guess, _, _) : parse_all_options;
            ((bit<8>)Pass.facts, _, _) : parse_all_options;
#if defined(RESOURCES)
            ((bit<8>)Pass.close, _, _) : parse_fin;
            (_, 1, _)  : parse_handshake;
#endif
            (_, _, 8)  : parse_options;
            (_, _, 10) : parse_options;
            (_, _, 12) : parse_options;
            (_, _, 14) : parse_options;
            default    : accept;
        }
    }

#if defined(RESOURCES)
    state parse_handshake {
        handshake.apply(packet, hdr.tcp.data_offset, meta);
        transition accept;
    }

    // In a pass `close`: turns the clone of a server's answer to a tickle into the server's FIN, for which the checksum's sum
    // increases by 1. Any other packet in this pass is a client's ACK, which was resubmitted so that its timestamps are parsed.
    state parse_fin {
        transition select(intrinsic.instance_type, hdr.tcp.data_offset) {
            (RESUBMITTED, 0 .. 7) : accept;
            (RESUBMITTED, _)      : parse_stamps;
            default               : parse_cloned;
        }
    }

    state parse_cloned {
        hdr.tcp.fin = 1;
        meta.respliced = 1;
        transition accept;
    }

    state parse_stamps {
        transition select(packet.lookahead<bit<32>>()) {
            0x0101080a : parse_stamps_values;
            default    : accept;
        }
    }

    state parse_stamps_values {
        packet.extract(hdr.kept_options);
        transition accept;
    }
#endif

    // Handshake copies the options of content connections into metadata, and all options are removed from the packet. This is a
    // separate state, because a test of the pass in state parse_handshake would cost every SYN 50 instructions.
    state parse_all_options {
        handshake.apply(packet, hdr.tcp.data_offset, meta);
        packet.advance(((bit<32>)hdr.tcp.data_offset - 5) << 5);
        transition accept;
    }

    state parse_options {
        transition select(hdr.tcp.data_offset, packet.lookahead<bit<32>>()) {
            (8, 0x0101050a)  : parse_sack_1;
            (10, 0x01010512) : parse_sack_2;
            (12, 0x0101051a) : parse_sack_3;
            (14, 0x01010522) : parse_sack_4;
            default          : accept;
        }
    }

    state parse_sack_1 {
        packet.extract(hdr.sack);
        packet.extract(hdr.sack_blocks.next);
        transition accept;
    }

    state parse_sack_2 {
        packet.extract(hdr.sack);
        packet.extract(hdr.sack_blocks.next);
        packet.extract(hdr.sack_blocks.next);
        transition accept;
    }

    state parse_sack_3 {
        packet.extract(hdr.sack);
        packet.extract(hdr.sack_blocks.next);
        packet.extract(hdr.sack_blocks.next);
        packet.extract(hdr.sack_blocks.next);
        transition accept;
    }

    state parse_sack_4 {
        packet.extract(hdr.sack);
        packet.extract(hdr.sack_blocks.next);
        packet.extract(hdr.sack_blocks.next);
        packet.extract(hdr.sack_blocks.next);
        packet.extract(hdr.sack_blocks.next);
        transition accept;
    }

    state parse_splice {
        packet.extract(hdr.splice);
        verify(hdr.splice.operation == ORDER_SPLICE && hdr.splice.turn <= (bit<8>)Turn.spliced
               && hdr.splice.client_shift <= LARGEST_SCALE, error.UnsupportedHeader);
        transition accept;
    }
#else
    state parse_tcp {
        packet.extract(hdr.tcp);
        transition accept;
    }
#endif

    state parse_udp {
        packet.extract(hdr.udp);
        transition accept;
    }

    state parse_icmp {
        packet.extract(hdr.icmp);
        transition select(hdr.icmp.type) {
            ICMP_UNREACHABLE       : parse_inner_ipv4;
            ICMP_TIME_EXCEEDED     : parse_inner_ipv4;
            ICMP_PARAMETER_PROBLEM : parse_inner_ipv4;
            default                : accept;
        }
    }

    state parse_inner_ipv4 {
        packet.extract(hdr.inner_ipv4);
        verify(hdr.inner_ipv4.version == 4 && hdr.inner_ipv4.ihl >= 5, error.Ipv4Header);
        transition select(hdr.inner_ipv4.ihl) {
            5       : parse_inner_transport;
            default : parse_inner_ipv4_options;
        }
    }

    state parse_inner_ipv4_options {
        packet.extract(hdr.inner_ipv4_options, ((bit<32>)hdr.inner_ipv4.ihl - 5) << 5);
        transition parse_inner_transport;
    }

    state parse_inner_transport {
        transition select(hdr.inner_ipv4.fragment_offset, hdr.inner_ipv4.protocol) {
            (0, PROTOCOL_TCP) : parse_inner_ports;
            (0, PROTOCOL_UDP) : parse_inner_ports;
            default           : accept;
        }
    }

    state parse_inner_ports {
        packet.extract(hdr.inner_transport);
        meta.icmp_error = 1;
        transition accept;
    }
}

#endif
