// Segment number: of a server's packet, the number behind what it sends; of a client's, what it acknowledges.
//
//   reads  path, event, payload, tcp
//   writes number
#ifndef SLUICE_TNA2_SEGMENT_NUMBER_P4
#define SLUICE_TNA2_SEGMENT_NUMBER_P4

control SegmentNumber(in headers_t hdr, in metadata_t meta, out bit<32> number) {
    bit<32> begin;
    bit<32> length;

    @hidden
    action widen() {
        @in_hash { length = 16w0 ++ meta.payload; }
    }

    @hidden
    action with_data() {
        begin = hdr.tcp.sequence;
    }

    // SYN and FIN count as a byte.
    @hidden
    action with_a_flag() {
        begin = hdr.tcp.sequence + 1;
    }

    @hidden
    action sent() {
        number = begin + length;
    }

    // By the hash units: fields that an action copies have to lie in one group of containers, with all that is computed with either.
    @hidden
    action acknowledged() {
        @in_hash { number = hdr.tcp.acknowledgement; }
    }

    apply {
        widen();
        if (meta.event == Event.fin || meta.event == Event.syn_ack)         with_a_flag();
        else                                                                with_data();
        if (meta.path == Path.from_server)                                  sent();
        else                                                                acknowledged();
    }
}

#endif
