// Segment number: computes the sequence number after the data of a server's packet, or copies a client's acknowledgement number.
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

    // SYN and FIN each take one sequence number.
    @hidden
    action with_a_flag() {
        begin = hdr.tcp.sequence + 1;
    }

    @hidden
    action sent() {
        number = begin + length;
    }

    // Uses the hash units, because a plain copy would require both fields, and all operands of both, in one group of containers.
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
