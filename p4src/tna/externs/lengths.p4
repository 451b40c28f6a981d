// Lengths that headers give in words of four bytes. By the hash units: the two lengths stand in different halves of a byte, and what is
// computed with them would have to stand in the same bits.
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

// A length as a number of 32 bits. By the hash units as well: what it is added to could not lie in containers of 32 bits otherwise.
control Widened(in bit<16> bytes, out bit<32> number) {
    @hidden
    action widen() {
        @in_hash { number = 16w0 ++ bytes; }
    }

    apply {
        widen();
    }
}

// Ingress is not told how long a frame is.
control FrameMissing(in headers_t hdr, inout metadata_t meta) {
    apply { }
}

// Of the transport header, or of what it promises; and how long a segment's payload is.
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
            (_, true, _, _, _, 0)            : datagram();     // of a fragment it is the whole datagram's
            (_, _, true, _, _, _)            : message();
        }
        const default_action = neither();
    }

    apply {
        open_body.apply();
    }
}

#endif
