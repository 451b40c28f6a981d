// Handshake: parses the options of a SYN or SYN-ACK, for content connections and for caps. The options remain in the packet.
//
//   writes options
//
// As in Linux, options after an option of impossible length, or after the end-of-list option, are not parsed.
#ifndef SLUICE_V1MODEL_HANDSHAKE_P4
#define SLUICE_V1MODEL_HANDSHAKE_P4

parser HandshakeParser(packet_in packet, in bit<4> data_offset, inout metadata_t meta) {
    bit<320> unparsed;                 // options that are not yet parsed, followed by zeros, which end the list

    #define HANDSHAKE_WORDS(n, bits) \
        state words_##n { \
            unparsed = packet.lookahead<bit<bits>>() ++ (bit<(320 - bits)>)0; \
            transition option; \
        }

    state start {
        meta.options.mss = 536;
        transition select(data_offset) {                      // the length that Linux uses is first, because a target tests the
                                                              // entries in order
            10 : words_5;
            6  : words_1;
            7  : words_2;
            8  : words_3;
            9  : words_4;
            11 : words_6;
            12 : words_7;
            13 : words_8;
            14 : words_9;
            15 : words_10;
            default : accept;
        }
    }

    HANDSHAKE_WORDS(1, 32)
    HANDSHAKE_WORDS(2, 64)
    HANDSHAKE_WORDS(3, 96)
    HANDSHAKE_WORDS(4, 128)
    HANDSHAKE_WORDS(5, 160)
    HANDSHAKE_WORDS(6, 192)
    HANDSHAKE_WORDS(7, 224)
    HANDSHAKE_WORDS(8, 256)
    HANDSHAKE_WORDS(9, 288)

    state words_10 {
        unparsed = packet.lookahead<bit<320>>();
        transition option;
    }

    state option {
        transition select(unparsed[319:304]) {
            0x0204            : mss;
            0x0402            : sack;
            0x080a            : timestamps;
            0x0303            : scale;
            0x0100 &&& 0xff00 : nop;
            0x0000 &&& 0xff00 : accept;
            0x1300 &&& 0xff00 : authenticated;                // MD5 (RFC 2385)
            0x1d00 &&& 0xff00 : authenticated;                // AO (RFC 5925)
            0x0000 &&& 0x00fe : accept;
            0x0040 &&& 0x00c0 : accept;
            0x0080 &&& 0x0080 : accept;
            default           : skip;
        }
    }

    state nop {
        unparsed = unparsed << 8;
        transition option;
    }

    // Ignores an MSS of 0. In a truncated option, the missing bytes are 0.
    state mss {
        transition select(unparsed[303:288]) {
            0       : skip;
            default : some_mss;
        }
    }

    state some_mss {
        meta.options.mss = unparsed[303:288];
        unparsed = unparsed << 32;
        transition option;
    }

    // A window scale above 14 is treated as 14 (RFC 7323, section 2.3).
    state scale {
        transition select(unparsed[303:296]) {
            0 .. 14 : small_scale;
            default : large_scale;
        }
    }

    state small_scale {
        meta.options.scale = (bit<5>)unparsed[300:296] + 1;
        unparsed = unparsed << 24;
        transition option;
    }

    state large_scale {
        meta.options.scale = 15;
        unparsed = unparsed << 24;
        transition option;
    }

    state sack {
        meta.options.sack = 1;
        unparsed = unparsed << 16;
        transition option;
    }

    state timestamps {
        unparsed = unparsed << 80;
        transition option;
    }

    state authenticated {
        meta.options.authenticated = 1;
        transition accept;
    }

    // Skips an unknown option. The shift has two steps, because the target shifts by less than 256 bits.
    state skip {
        bit<8> half = unparsed[311:304] << 2;
        unparsed = unparsed << half;
        unparsed = unparsed << half;
        transition option;
    }
}

#endif
