// Refusal: a refused SYN is dropped silently, or answered by a reset (RFC 9293, section 3.10.7.1).
//
//   reads  answer_reset, payload, router_mac, ingress_port
//   writes the reset into the headers, verdict
//   drops  admission_reset: answered as well
//
// The reset has 40 bytes. What was behind the SYN's header stays in the frame, as a trailer that no host looks at. Of a first
// fragment the length is not known, so that the number to acknowledge is not either: dropped silently.
#ifndef SLUICE_STAGES_REFUSAL_P4
#define SLUICE_STAGES_REFUSAL_P4

control Refusal(inout headers_t hdr, inout metadata_t meta, in decided_t decided) {
    @hidden
    action reflect() {
        hdr.ethernet.dst = hdr.ethernet.src;
        hdr.ethernet.src = meta.router_mac;
        hdr.ipv4_options.setInvalid();
        hdr.ipv4.ihl = 5;
        hdr.ipv4.total_length = 40;
        hdr.ipv4.ttl = RESET_TTL;
        hdr.ipv4.src = meta.flow.dst;
        hdr.ipv4.dst = meta.flow.src;
    }

    Widened() widened;

    bit<32> length;

    // A SYN takes one number itself. (Of three numbers a sum is two steps, and an action does one.)
    @hidden
    action count_syn() {
        hdr.tcp.acknowledgement = hdr.tcp.sequence + 1;
    }

    @hidden
    action count_payload() {
        hdr.tcp.acknowledgement = hdr.tcp.acknowledgement + length;
    }

    // Its checksum is computed anew by the target: nothing of it is as it was.
    @hidden
    action reset() {
        hdr.tcp.src_port = meta.flow.dst_port;
        hdr.tcp.dst_port = meta.flow.src_port;
        hdr.tcp.sequence = 0;
        hdr.tcp.data_offset = 5;
        hdr.tcp.reserved = 0;
        hdr.tcp.cwr = 0;
        hdr.tcp.ece = 0;
        hdr.tcp.urg = 0;
        hdr.tcp.ack = 1;
        hdr.tcp.psh = 0;
        hdr.tcp.rst = 1;
        hdr.tcp.syn = 0;
        hdr.tcp.window = 0;
        hdr.tcp.urgent = 0;
    }

    apply {
        if (decided.answer_reset == 1 && hdr.ipv4.more_fragments == 0) {
            reflect();
            widened.apply(meta.payload, length);
            count_syn();
            count_payload();
            reset();
            meta.verdict.egress_port = meta.ingress_port;
            meta.verdict.drop = DropReason.admission_reset;
        }
    }
}

#endif
