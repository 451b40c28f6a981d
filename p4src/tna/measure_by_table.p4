// What stages/measure.p4 measures, in two stages instead of three: a table has each length of a header, and what is subtracted.
#ifndef SLUICE_TNA_MEASURE_BY_TABLE_P4
#define SLUICE_TNA_MEASURE_BY_TABLE_P4

control MeasureByTable(in headers_t hdr, inout metadata_t meta) {
    // (An action adds what a table says, and cannot subtract it.)
    @hidden
    action open_packet(bit<16> length, bit<16> negated) {
        meta.lengths.header_missing = length |-| hdr.ipv4.total_length;
        meta.lengths.body = hdr.ipv4.total_length + negated;
    }

    @hidden
    table packet_lengths {
        key = { hdr.ipv4.ihl : exact @name("ihl"); }
        actions = { open_packet; }
        const entries = {
            6  : open_packet(24, 0xffe8);
            7  : open_packet(28, 0xffe4);
            8  : open_packet(32, 0xffe0);
            9  : open_packet(36, 0xffdc);
            10 : open_packet(40, 0xffd8);
            11 : open_packet(44, 0xffd4);
            12 : open_packet(48, 0xffd0);
            13 : open_packet(52, 0xffcc);
            14 : open_packet(56, 0xffc8);
            15 : open_packet(60, 0xffc4);
        }
        const default_action = open_packet(20, 0xffec);
    }

    @hidden
    action segment(bit<16> length, bit<16> negated) {
        meta.lengths.transport_missing = length |-| meta.lengths.body;
        meta.payload = meta.lengths.body + negated;
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
    table body_lengths {
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
            (true, _, _, 5, _, _)            : segment(20, 0xffec);
            (true, _, _, 6, _, _)            : segment(24, 0xffe8);
            (true, _, _, 7, _, _)            : segment(28, 0xffe4);
            (true, _, _, 8, _, _)            : segment(32, 0xffe0);
            (true, _, _, 9, _, _)            : segment(36, 0xffdc);
            (true, _, _, 10, _, _)           : segment(40, 0xffd8);
            (true, _, _, 11, _, _)           : segment(44, 0xffd4);
            (true, _, _, 12, _, _)           : segment(48, 0xffd0);
            (true, _, _, 13, _, _)           : segment(52, 0xffcc);
            (true, _, _, 14, _, _)           : segment(56, 0xffc8);
            (true, _, _, 15, _, _)           : segment(60, 0xffc4);
            (true, _, _, _, _, _)            : impossible();
            (_, true, _, _, 0 &&& 0xfff8, _) : impossible();
            (_, true, _, _, _, 0)            : datagram();     // of a fragment it is the whole datagram's
            (_, _, true, _, _, _)            : message();
        }
        const default_action = neither();
    }

    apply {
        packet_lengths.apply();
        body_lengths.apply();
    }
}

#endif
