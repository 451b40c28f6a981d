// Computes lengths in bytes, and how many bytes a packet lacks. `Bytes` uses hash units, because the fields ihl and data_offset
// are in different halves of a byte, and a plain computation requires its operands at the same bit positions.
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

// Widens a 16-bit length to 32 bits, by the hash units, because otherwise the number to which the length is added could
// not be in a 32-bit container.
control Widened(in bit<16> bytes, out bit<32> number) {
    @hidden
    action widen() {
        @in_hash { number = 16w0 ++ bytes; }
    }

    apply {
        widen();
    }
}

// Does nothing: Tofino's ingress cannot compare a packet with the frame's length, because the length is unknown there.
control FrameMissing(in headers_t hdr, inout metadata_t meta) {
    apply { }
}

// Computes how many bytes a packet lacks of its transport header or of the length in that header, and the length of a TCP
// segment's payload.
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
            (_, true, _, _, _, 0)            : datagram();     // a fragment is not checked: its length field is that of the whole
                                                               // datagram
            (_, _, true, _, _, _)            : message();
        }
        const default_action = neither();
    }

    apply {
        open_body.apply();
    }
}

#endif
