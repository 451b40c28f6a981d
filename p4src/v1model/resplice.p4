// Translates a spliced packet: the server's sequence numbers, in packets of either direction, and the windows of both sides.
// `respliced` accumulates the change of the checksum's sum.
#ifndef SLUICE_V1MODEL_RESPLICE_P4
#define SLUICE_V1MODEL_RESPLICE_P4

#include "words.p4"

bit<32> number_change(in bit<32> old, in bit<32> new) {
    return word_change(old[31:16], new[31:16]) + word_change(old[15:0], new[15:0]);
}

// Returns a window shifted left, at most 0xffff.
bit<16> window_up(in bit<16> window, in bit<4> shift) {
    bit<32> shifted = (bit<32>)window << shift;
    if (shifted > 0xffff) {
        shifted = 0xffff;
    }
    return shifted[15:0];
}

control Resplice(inout headers_t hdr, inout metadata_t meta, in splice_t splice) {
    bit<32> before;

    // Translates a number of the server's data from the sequence that the client received to the server's own sequence.
    #define SPLICE_NUMBER(field) \
        before = field; \
        field = before - splice.value; \
        meta.respliced = meta.respliced + number_change(before, field);
    #define SPLICE_BLOCK(n) \
        if (hdr.sack_blocks[n].isValid()) { \
            SPLICE_NUMBER(hdr.sack_blocks[n].left) \
            SPLICE_NUMBER(hdr.sack_blocks[n].right) \
        }

    apply {
        meta.respliced = 0;
        if (hdr.tcp.isValid()) {
            if (meta.content == Content.client) {
                if (hdr.tcp.ack == 1) {
                    SPLICE_NUMBER(hdr.tcp.acknowledgement)
                }
                if (hdr.sack.isValid()) {
                    SPLICE_BLOCK(0)
                    SPLICE_BLOCK(1)
                    SPLICE_BLOCK(2)
                    SPLICE_BLOCK(3)
                }
                if (splice.client_shift != 0 && hdr.tcp.syn == 0) {
                    bit<16> window = hdr.tcp.window;
                    hdr.tcp.window = window_up(window, splice.client_shift);
                    meta.respliced = meta.respliced + word_change(window, hdr.tcp.window);
                }
            } else {
                before = hdr.tcp.sequence;
                hdr.tcp.sequence = before + splice.value;
                meta.respliced = number_change(before, hdr.tcp.sequence);
                // A SYN's window is never scaled (RFC 7323, section 2.2).
                if (splice.shift != 0 && hdr.tcp.syn == 0) {
                    bit<16> window = hdr.tcp.window;
                    if (splice.shift[4:4] == 0) {
                        hdr.tcp.window = window_up(window, splice.shift[3:0]);
                    } else {
                        hdr.tcp.window = window >> (-splice.shift)[3:0];
                        if (hdr.tcp.window == 0 && window != 0) {
                            hdr.tcp.window = 1;
                        }
                    }
                    meta.respliced = meta.respliced + word_change(window, hdr.tcp.window);
                }
            }
        } else if (meta.content == Content.client && meta.icmp_error == 1 && hdr.inner_ipv4.protocol == PROTOCOL_TCP) {
            // In an ICMP error about a server's segment, that segment's sequence number is translated to the server's number,
            // because Linux ignores an error about a sequence number that it has not sent.
            before = hdr.inner_transport.third ++ hdr.inner_transport.fourth;
            bit<32> number = before - splice.value;
            hdr.inner_transport.third = number[31:16];
            hdr.inner_transport.fourth = number[15:0];
            meta.respliced = number_change(before, number);
        }
    }
}

#endif
