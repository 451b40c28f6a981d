// TNA parsers. Ingress parses the same headers as on every target: Ethernet, at most one 802.1Q tag, ARP, IPv4 with options, TCP,
// UDP, ICMP, and the packet inside an ICMP error. A parser of Tofino cannot raise errors that a program defines, so the parser
// sets drop reasons instead. If a header extends past the end of the frame, the hardware sets parser_err, which intake reads.
#ifndef SLUICE_TNA_PARSER_P4
#define SLUICE_TNA_PARSER_P4

parser SluiceIngressParser(packet_in packet, out headers_t hdr, out ingress_metadata_t meta,
                           out ingress_intrinsic_metadata_t intrinsic) {
    Checksum() ipv4_checksum;
    Checksum() transport_rest;    // sum of a TCP or UDP checksum without addresses and ports
    Checksum() icmp_rest;

    state start {
        packet.extract(intrinsic);
        transition select(intrinsic.resubmit_flag) {
            0 : read_port_metadata;
            1 : parse_resubmitted;
        }
    }

    // Reads the value that the control plane assigns to each port. The lowest bit is 1 for the CPU port, whose number depends on
    // the switch model.
    state read_port_metadata {
        port_metadata_t port = packet.lookahead<port_metadata_t>();
        packet.advance(PORT_METADATA_SIZE);
        meta.decided.looks = 1;
        meta.decided.undecided = 1;
        transition select(port[0:0]) {
            FROM_CPU : parse_packet_out;
            default  : parse_ethernet;
        }
    }

    state parse_resubmitted {
        packet.extract(meta.resubmitted);
        packet.advance(RESUBMIT_GAP);
        meta.sluice.preferred = meta.resubmitted.preferred;
        meta.next.destination = meta.resubmitted.destination;
        meta.decided.way = meta.resubmitted.way;
        meta.noted = meta.resubmitted.notes;
        meta.sluice.pass = (Pass)meta.resubmitted.pass;
        transition parse_ethernet;
    }

    state parse_packet_out {
        packet.extract(hdr.packet_out);
        transition accept;
    }

    // Checks the group bit of the frame's source by lookahead, before the address is extracted as a field.
    state parse_ethernet {
        bit<56> front = packet.lookahead<bit<56>>();
        transition select(front[7:0]) {
            1 &&& 1 : source_mac;
            default : parse_frame;
        }
    }

    state source_mac {
        meta.findings.frame = DropReason.source_mac;
        transition accept;
    }

    state parse_frame {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            ETHERTYPE_VLAN : parse_vlan;
            ETHERTYPE_ARP  : parse_arp;
            ETHERTYPE_IPV4 : look_at_addresses;
#if defined(CONTENT)
            ETHERTYPE_SPLICE : parse_splice;
#endif
            default        : accept;
        }
    }

#if defined(CONTENT)
    // Accepts only orders that splice a connection. Other orders take over a connection whose server was guessed (chosen before
    // the request); these are unsupported, because this target chooses no server before the request.
    state parse_splice {
        packet.extract(hdr.splice);
        meta.sluice.path = Path.order;
        meta.sluice.content = Content.agent;
        meta.sluice.connection.client = hdr.splice.client;
        meta.sluice.connection.client_port = hdr.splice.client_port;
        meta.sluice.connection.service = hdr.splice.service;
        meta.sluice.connection.service_port = hdr.splice.service_port;
        meta.sluice.connection.protocol = PROTOCOL_TCP;
        transition select(hdr.splice.operation, hdr.splice.turn) {
            (ORDER_SPLICE, (bit<8>)Turn.spliced) : accept;
            default                              : unsupported;
        }
    }
#endif

    state parse_vlan {
        packet.extract(hdr.vlan);
        transition select(hdr.vlan.type) {
            ETHERTYPE_ARP  : parse_arp;
            ETHERTYPE_IPV4 : look_at_addresses;
            default        : accept;
        }
    }

    state parse_arp {
        packet.extract(hdr.arp);
        meta.sluice.path = Path.arp;
        transition select(hdr.arp.hardware, hdr.arp.protocol) {
            (1, ETHERTYPE_IPV4) : check_arp_lengths;
            default             : unsupported;
        }
    }

    state check_arp_lengths {
        transition select(hdr.arp.hardware_length, hdr.arp.protocol_length) {
            (6, 4)  : accept;
            default : unsupported;
        }
    }

    state unsupported {
        meta.findings.frame = DropReason.unsupported;
        transition accept;
    }

    // Checks the first bytes of source and destination address by lookahead, before the addresses are extracted as fields. A
    // later condition on part of an address would make the compiler split every address field.
    state look_at_addresses {
        bit<136> front = packet.lookahead<bit<136>>();
        transition select(front[39:32], front[7:0]) {
            (0, _)            : martian;
            (127, _)          : martian;
            (224 &&& 0xe0, _) : martian;
            (_, 0)            : martian;
            (_, 127)          : martian;
            (_, 224 &&& 0xe0) : martian;
            default           : parse_ipv4;
        }
    }

    state martian {
        meta.sluice.martian = 1;
        transition parse_ipv4;
    }

    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        meta.sluice.path = Path.ipv4;
        ipv4_checksum.add(hdr.ipv4);
        transport_rest.subtract({ hdr.ipv4.src, hdr.ipv4.dst });
        transition select(hdr.ipv4.version, hdr.ipv4.ihl) {
            (4, 5)         : check_ipv4;
            (4, 6 &&& 0xe) : parse_ipv4_options;
            (4, 8 &&& 0x8) : parse_ipv4_options;
            default        : bad_ipv4_header;
        }
    }

    state bad_ipv4_header {
        meta.findings.frame = DropReason.ipv4_header;
        transition accept;
    }

    state parse_ipv4_options {
        packet.extract(hdr.ipv4_options, (bit<32>)(((bit<16>)hdr.ipv4.ihl - 5) * 32));
        ipv4_checksum.add(hdr.ipv4_options);
        transition check_ipv4;
    }

    state check_ipv4 {
        meta.ipv4_checksum_wrong = ipv4_checksum.verify();
        transition select(hdr.ipv4.fragment_offset, hdr.ipv4.protocol) {
            (0, PROTOCOL_TCP)  : parse_tcp;
            (0, PROTOCOL_UDP)  : parse_udp;
            (0, PROTOCOL_ICMP) : parse_icmp;
            default            : accept;
        }
    }

    state parse_tcp {
        packet.extract(hdr.tcp);
#if defined(CONTENT)
        transport_rest.subtract({ hdr.tcp.src_port, hdr.tcp.dst_port, hdr.tcp.sequence, hdr.tcp.acknowledgement, hdr.tcp.window,
                                  hdr.tcp.checksum });
#else
        transport_rest.subtract({ hdr.tcp.src_port, hdr.tcp.dst_port, hdr.tcp.checksum });
#endif
        meta.transport_rest = transport_rest.get();
        transition select(hdr.tcp.rst, hdr.tcp.fin, hdr.tcp.syn, hdr.tcp.ack) {
            (1, _, _, _) : reset;
            (_, 1, _, _) : fin;
            (_, _, 1, 1) : syn_ack;
            (_, _, 1, 0) : syn;
            default      : ack;
        }
    }

    // The parser sets the events of stages/events.p4, so that the first table can use the event.
    state reset {
        meta.sluice.event = Event.reset;
        transition accept;
    }

    state fin {
        meta.sluice.event = Event.fin;
        transition accept;
    }

    state syn_ack {
        meta.sluice.event = Event.syn_ack;
        transition accept;
    }

    state syn {
        meta.sluice.event = Event.syn;
        transition accept;
    }

    state ack {
        meta.sluice.event = Event.ack;
        transition accept;
    }

    state parse_udp {
        packet.extract(hdr.udp);
        transport_rest.subtract({ hdr.udp.src_port, hdr.udp.dst_port, hdr.udp.checksum });
        meta.transport_rest = transport_rest.get();
        transition accept;
    }

    state parse_icmp {
        packet.extract(hdr.icmp);
        icmp_rest.subtract({ hdr.icmp.checksum });
        transition select(hdr.icmp.type) {
            ICMP_UNREACHABLE       : parse_inner_ipv4;
            ICMP_TIME_EXCEEDED     : parse_inner_ipv4;
            ICMP_PARAMETER_PROBLEM : parse_inner_ipv4;
            default                : accept;
        }
    }

    state parse_inner_ipv4 {
        packet.extract(hdr.inner_ipv4);
        transition select(hdr.inner_ipv4.version, hdr.inner_ipv4.ihl) {
            (4, 5)         : parse_inner_transport;
            (4, 6 &&& 0xe) : parse_inner_ipv4_options;
            (4, 8 &&& 0x8) : parse_inner_ipv4_options;
            default        : bad_ipv4_header;
        }
    }

    state parse_inner_ipv4_options {
        packet.extract(hdr.inner_ipv4_options, (bit<32>)(((bit<16>)hdr.inner_ipv4.ihl - 5) * 32));
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
        icmp_rest.subtract({ hdr.inner_transport.src_port, hdr.inner_transport.dst_port, hdr.inner_transport.fourth });
        meta.icmp_rest = icmp_rest.get();
        meta.sluice.icmp_error = 1;
        transition accept;
    }
}

// Copies the metadata from ingress into the stages' metadata, and parses the packet. For the response rates, a connection has the
// addresses and ports that its client sees: those of the packet as it leaves. (Ports after IPv4 options are not read, because
// they would need more containers.)
parser SluiceEgressParser(packet_in packet, out headers_t hdr, out egress_metadata_t meta,
                          out egress_intrinsic_metadata_t intrinsic) {
    state start {
        packet.extract(intrinsic);
        packet.extract(meta.bridge);
        meta.sluice.path = (Path)meta.bridge.path;
        meta.sluice.event = (Event)meta.bridge.event;
        meta.sluice.state = (PinState)meta.bridge.state;
        meta.sluice.pinned = meta.bridge.pinned;
        meta.sluice.inside = meta.bridge.inside;
        meta.sluice.server = meta.bridge.server;
        meta.sluice.payload = meta.bridge.payload;
        meta.sluice.clock = meta.bridge.clock;
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            ETHERTYPE_VLAN : parse_vlan;
            default        : parse_ipv4;
        }
    }

    state parse_vlan {
        packet.extract(hdr.vlan);
        transition parse_ipv4;
    }

    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        meta.sluice.connection.service = hdr.ipv4.src;
        meta.sluice.connection.client = hdr.ipv4.dst;
        transition select(hdr.ipv4.version, hdr.ipv4.ihl) {
            (4, 5)  : look_at_ports;
            default : accept;
        }
    }

    state look_at_ports {
        bit<32> ports = packet.lookahead<bit<32>>();
        meta.sluice.connection.service_port = ports[31:16];
        meta.sluice.connection.client_port = ports[15:0];
        transition accept;
    }
}

#endif
