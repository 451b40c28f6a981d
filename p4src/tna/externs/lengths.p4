// Lengths that headers give in units of four bytes. Uses the hash units: the two lengths stand in different halves of a byte, and
// a plain computation would need its operands in the same bits.
#ifndef SLUICE_TNA_LENGTHS_P4
#define SLUICE_TNA_LENGTHS_P4

control Bytes(in bit<4> words, out bit<16> bytes) {
    @hidden
    action multiply() {
        @in_hash { bytes = 10w0 ++ words ++ 2w0; }
    }

    apply {
        multiply();
    }
}

// A 16-bit length as a number of 32 bits. Uses the hash units too: otherwise the summand of this number could not lie in 32-bit
// containers.
control Widened(in bit<16> bytes, out bit<32> number) {
    @hidden
    action widen() {
        @in_hash { number = 16w0 ++ bytes; }
    }

    apply {
        widen();
    }
}

// Ingress has no access to a frame's length.
control FrameMissing(in headers_t hdr, inout metadata_t meta) {
    apply { }
}

// Computes how many bytes are missing of the transport header, or of the length that it gives, and how long a segment's payload
// is.
control TransportMissing(in headers_t hdr, in bit<16> tcp_length, inout metadata_t meta) {
    @hidden
    action segment() {
        meta.lengths.transport_missing = tcp_length |-| meta.lengths.body;
        meta.payload = meta.lengths.body - tcp_length;
    }

    @hidden
    action datagram() {
        meta.lengths.transport_missing = hdr.udp.length |-| meta.lengths.body;
    }

    @hidden
    action message() {
        meta.lengths.transport_missing = 16w8 |-| meta.lengths.body;
    }

    @hidden
    action impossible() {
        meta.lengths.transport_missing = 0xffff;
    }

    @hidden
    action neither() { }

    @hidden
    table open_body {
        key = {
            hdr.tcp.isValid()       : ternary @name("tcp");
            hdr.udp.isValid()       : ternary @name("udp");
            hdr.icmp.isValid()      : ternary @name("icmp");
            hdr.tcp.data_offset     : ternary @name("data_offset");
            hdr.udp.length          : ternary @name("udp_length");
            hdr.ipv4.more_fragments : ternary @name("more_fragments");
        }
        actions = { segment; datagram; message; impossible; neither; }
        const entries = {
            (true, _, _, 0 &&& 0xc, _, _)    : impossible();
            (true, _, _, 4, _, _)            : impossible();
            (true, _, _, _, _, _)            : segment();
            (_, true, _, _, 0 &&& 0xfff8, _) : impossible();
            (_, true, _, _, _, 0)            : datagram();     // in a fragment, the length is that of the whole datagram
            (_, _, true, _, _, _)            : message();
        }
        const default_action = neither();
    }

    apply {
        open_body.apply();
    }
}

#endif
