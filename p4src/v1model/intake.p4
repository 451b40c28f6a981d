// v1model intake: copies the metadata of v1model (ports, clock, parser and checksum errors) into the stages' own metadata.
//
//   reads  intrinsic.ingress_port, ingress_global_timestamp, parser_error, checksum_error, pass
//          arp, ipv4, tcp, ethernet.dst, packet_out, tickle
//   writes ingress_port, now, clock, path, martian
//          packet_out, egress_port, router_mac, known: of a frame from the controller
//   drops  truncated, source_mac, unsupported, ipv4_header, ipv4_checksum, cpu_header
#ifndef SLUICE_V1MODEL_INTAKE_P4
#define SLUICE_V1MODEL_INTAKE_P4

control Intake(inout headers_t hdr, inout metadata_t meta, inout verdict_t verdict, in standard_metadata_t intrinsic) {
    apply {
        if (meta.pass == Pass.first) {      // a resubmitted packet retains port and time of its first pass
            meta.ingress_port = (bit<16>)intrinsic.ingress_port;
            meta.now = intrinsic.ingress_global_timestamp[47:16] + TICK_BASE;
        }
        meta.clock = intrinsic.ingress_global_timestamp[41:10] + TICK_BASE;
        if (hdr.arp.isValid()) {
            meta.path = Path.arp;
        } else {
            meta.path = Path.ipv4;
            if ((hdr.ipv4.src & 0xff000000) == 0x7f000000 || (hdr.ipv4.src & 0xff000000) == 0
                || (hdr.ipv4.src & 0xe0000000) == 0xe0000000 || (hdr.ipv4.dst & 0xff000000) == 0x7f000000
                || (hdr.ipv4.dst & 0xff000000) == 0 || (hdr.ipv4.dst & 0xe0000000) == 0xe0000000) {
                meta.martian = 1;
            }
        }
        if (intrinsic.parser_error == error.SourceAddress) {
            verdict.drop = DropReason.source_mac;
        } else if (intrinsic.parser_error == error.UnsupportedHeader) {
            verdict.drop = DropReason.unsupported;
        } else if (intrinsic.parser_error == error.Ipv4Header) {
            verdict.drop = DropReason.ipv4_header;
        } else if (meta.ingress_port == CPU_PORT) {
            if (hdr.tickle.isValid()) {
                hdr.packet_out.setInvalid();
                meta.router_mac = hdr.ethernet.dst;
                meta.known = 1;
                if (intrinsic.parser_error != error.NoError) {
                    verdict.drop = DropReason.truncated;
                } else if (!hdr.tcp.isValid()) {
                    verdict.drop = DropReason.unsupported;
                } else if (intrinsic.checksum_error == 1) {
                    verdict.drop = DropReason.ipv4_checksum;
                }
            } else if (hdr.packet_out.isValid() && intrinsic.parser_error == error.NoError) {
                verdict.egress_port = hdr.packet_out.egress_port;
                hdr.packet_out.setInvalid();
                meta.path = Path.done;
            } else {
                verdict.drop = DropReason.cpu_header;
            }
        } else if (intrinsic.parser_error != error.NoError && !hdr.tcp.isValid()) {   // the stage validate drops a TCP header
                                                                                      // whose options are missing
            verdict.drop = DropReason.truncated;
        } else if (intrinsic.checksum_error == 1) {
            verdict.drop = DropReason.ipv4_checksum;
        }
        if (verdict.drop != DropReason.none) {
            meta.path = Path.done;
        }
    }
}

#endif
