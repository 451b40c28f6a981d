// Egress parser: parses what the egress parser of Tofino 1 (tna/parser.p4) parses, and in addition a TCP header after an IPv4
// header without options, and the options of a SYN or SYN-ACK that caps need. A mirrored copy has a mark instead of the bridge
// header. Bytes after the TCP header are not extracted: the parser looks ahead at options in words of four bytes.
//
//     word 1           2                 3     4     5
//     02 04 MSS                                                       no scale
//     02 04 MSS        01 03 03 scale                                 Windows, macOS, BSD
//     02 04 MSS        01 01 04 02       01 03 03 scale               Linux without timestamps
//     02 04 MSS        04 02 08 0a       ..    ..    01 03 03 scale   Linux
//     02 04 MSS        01 01 08 0a       ..    ..    01 03 03 scale   Linux without SACK
//
// Connections with other sequences of options have no caps. This includes the options MD5 and AO, which are first in the header.
#ifndef SLUICE_TNA2_EGRESS_PARSER_P4
#define SLUICE_TNA2_EGRESS_PARSER_P4

// Matches an option word that contains a window scale, at most 14 (RFC 7323, section 2.3).
#define SCALE_WORD(next_) \
            0x01030300 &&& 0xfffffff8 : next_; \
            0x01030308 &&& 0xfffffffc : next_; \
            0x0103030c &&& 0xfffffffe : next_; \
            0x0103030e                : next_;
#define SACK_PERMITTED 0x01010402
#define SACK_AND_TIMESTAMPS 0x0402080a
#define TIMESTAMPS 0x0101080a

// Accepts only an MSS as the first option word, and continues in the given state.
#define FIRST_WORD(next_) \
        bit<32> words = packet.lookahead<bit<32>>(); \
        transition select(words[31:16]) { \
            0x0204  : next_; \
            default : accept; \
        }

// Declares `words`: the given number of bits after the TCP header. The last 32 bits are the word to be matched.
#define WORD(bits_) \
        bit<bits_> words = packet.lookahead<bit<bits_>>();

// Reads the MSS from the first word, and the scale from the word that ends the given number of bits after the TCP header.
#define SCALED(bits_) \
        bit<bits_> words = packet.lookahead<bit<bits_>>(); \
        meta.offered.mss = words[bits_ - 17:bits_ - 32]; \
        meta.offered.scale = words[7:0]; \
        transition accept;

parser ResourcesParser(packet_in packet, out headers_t hdr, out resources_egress_t meta,
                       out egress_intrinsic_metadata_t intrinsic) {
    Checksum() tcp_rest;          // sum of the words that the TCP checksum covers, except the words with the flags and the window

    state start {
        packet.extract(intrinsic);
        bit<8> mark = packet.lookahead<bit<8>>();
        transition select(mark) {
            COPY_MARK : parse_copy;
            default   : parse_bridge;
        }
    }

    state parse_copy {
        packet.extract(meta.copy);
        transition parse_ethernet;
    }

    state parse_bridge {
        packet.extract(meta.bridge);
        meta.sluice.path = (Path)meta.bridge.path;
        meta.sluice.event = (Event)meta.bridge.event;
        meta.sluice.state = (PinState)meta.bridge.state;
        meta.sluice.pinned = meta.bridge.pinned;
        meta.sluice.inside = meta.bridge.inside;
        meta.sluice.claimed = meta.bridge.claimed;
        meta.sluice.server = meta.bridge.server;
        meta.sluice.payload = meta.bridge.payload;
        meta.sluice.clock = meta.bridge.clock;
        transition parse_ethernet;
    }

    state parse_ethernet {
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
        transition select(hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.fragment_offset, hdr.ipv4.protocol) {
            (4, 5, 0, PROTOCOL_TCP) : parse_tcp;
            default                 : accept;
        }
    }

    state parse_tcp {
        packet.extract(hdr.tcp);
        tcp_rest.subtract({ hdr.tcp.data_offset, hdr.tcp.reserved, hdr.tcp.cwr, hdr.tcp.ece, hdr.tcp.urg, hdr.tcp.ack, hdr.tcp.psh,
                            hdr.tcp.rst, hdr.tcp.syn, hdr.tcp.fin, hdr.tcp.window, hdr.tcp.checksum });
        meta.tcp_rest = tcp_rest.get();
        meta.sluice.connection.service_port = hdr.tcp.src_port;
        meta.sluice.connection.client_port = hdr.tcp.dst_port;
        transition select(hdr.tcp.syn, hdr.tcp.data_offset) {
            (0, _)  : accept;
            (_, 5)  : no_options;
            (_, 6)  : only_mss;
            (_, 7)  : of_two_words;
            (_, 8)  : of_three_words;
            (_, 9)  : of_four_words;
            default : of_more_words;
        }
    }

    state no_options {
        meta.offered.mss = 536;                           // default MSS (RFC 9293, section 3.7.1)
        meta.offered.scale = NO_SCALE;
        transition accept;
    }

    state only_mss {
        FIRST_WORD(unscaled)
    }

    state of_two_words {
        FIRST_WORD(second_of_two)
    }

    state of_three_words {
        FIRST_WORD(second_of_three)
    }

    state of_four_words {
        FIRST_WORD(second_of_four)
    }

    state of_more_words {
        FIRST_WORD(second_of_more)
    }

    state second_of_two {
        WORD(64)
        transition select(words[31:0]) {
            SCALE_WORD(scaled_by_second)
            SACK_PERMITTED : unscaled;
            default        : accept;
        }
    }

    state second_of_three {
        WORD(64)
        transition select(words[31:0]) {
            SCALE_WORD(scaled_by_second)
            SACK_PERMITTED : third_word;
            default        : accept;
        }
    }

    state second_of_four {
        WORD(64)
        transition select(words[31:0]) {
            SCALE_WORD(scaled_by_second)
            SACK_PERMITTED      : third_word;
            SACK_AND_TIMESTAMPS : unscaled;
            TIMESTAMPS          : unscaled;
            default             : accept;
        }
    }

    state second_of_more {
        WORD(64)
        transition select(words[31:0]) {
            SCALE_WORD(scaled_by_second)
            SACK_PERMITTED      : third_word;
            SACK_AND_TIMESTAMPS : fifth_word;
            TIMESTAMPS          : fifth_word;
            default             : accept;
        }
    }

    state third_word {
        WORD(96)
        transition select(words[31:0]) {
            SCALE_WORD(scaled_by_third)
            default    : accept;
        }
    }

    state fifth_word {
        WORD(160)
        transition select(words[31:0]) {
            SCALE_WORD(scaled_by_fifth)
            default    : accept;
        }
    }

    state unscaled {
        bit<32> words = packet.lookahead<bit<32>>();
        meta.offered.mss = words[15:0];
        meta.offered.scale = NO_SCALE;
        transition accept;
    }

    state scaled_by_second {
        SCALED(64)
    }

    state scaled_by_third {
        SCALED(96)
    }

    state scaled_by_fifth {
        SCALED(160)
    }
}

#endif
