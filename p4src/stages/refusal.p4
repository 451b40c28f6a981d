// Refusal: answers a refused SYN by a RST if the destination requires a RST (RFC 9293, section 3.10.7.1).
//
//   reads  answer_reset, payload, router_mac, ingress_port, flow, ethernet.src, ipv4.more_fragments, ipv4_options, tcp.sequence
//          acknowledged: the number that Acknowledged writes
//   writes ethernet, ipv4, ipv4_options, tcp: become those of the RST
//          number: of Acknowledged
//          egress_port, reset
//   drops  admission_reset: the SYN, which is answered by a RST
//
// The RST has 40 bytes. Bytes after the SYN's header stay in the frame, as a trailer that hosts ignore. A SYN that is a first
// fragment is dropped silently, because the length of its segment, and so the number to acknowledge, is unknown.
#ifndef SLUICE_STAGES_REFUSAL_P4
#define SLUICE_STAGES_REFUSAL_P4

#include <externs/lengths.p4>

// Computes the acknowledgement number of a RST that answers this SYN.
control Acknowledged(in headers_t hdr, in metadata_t meta, out bit<32> number) {
    Widened() widened;

    bit<32> length;

    // The SYN itself takes one sequence number. (Two actions, because an action adds only two numbers.)
    @hidden
    action count_syn() {
        number = hdr.tcp.sequence + 1;
    }

    @hidden
    action count_payload() {
        number = number + length;
    }

    apply {
        widened.apply(meta.payload, length);
        count_syn();
        count_payload();
    }
}

control Refusal(inout headers_t hdr, inout metadata_t meta, in decided_t decided, in bit<32> acknowledged,
                inout verdict_t verdict) {
    @hidden
    action refuse() {
        hdr.ethernet.dst = hdr.ethernet.src;
        hdr.ethernet.src = meta.router_mac;
        hdr.ipv4.ihl = 5;
        hdr.ipv4.total_length = 40;
        hdr.ipv4.ttl = RESET_TTL;
        hdr.ipv4.src = meta.flow.dst;
        hdr.ipv4.dst = meta.flow.src;
        // The target computes the whole TCP checksum anew, because every field of the header changes.
        hdr.tcp.src_port = meta.flow.dst_port;
        hdr.tcp.dst_port = meta.flow.src_port;
        hdr.tcp.sequence = 0;
        hdr.tcp.acknowledgement = acknowledged;
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
        verdict.egress_port = meta.ingress_port;
        verdict.drop = DropReason.admission_reset;
        meta.reset = 1;
    }

    // A target that cannot remove IPv4 options (TAKES_OPTIONS_OFF is false) drops a SYN with options silently.
    apply {
        if (decided.answer_reset == 1 && hdr.ipv4.more_fragments == 0 && (TAKES_OPTIONS_OFF || !hdr.ipv4_options.isValid())) {
            refuse();
            if (TAKES_OPTIONS_OFF) {
                hdr.ipv4_options.setInvalid();
            }
        }
    }
}

#endif
