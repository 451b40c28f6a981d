// TNA intake: what the stages are not to see (ports, clock, parser and checksum errors) becomes metadata that they may.
//
//   drops  truncated, ipv4_checksum; unsupported and ipv4_header are the parser's
//
// Ingress is not told how long a frame is: an IPv4 packet that says it is longer than its frame is forwarded as it is.
#ifndef SLUICE_TNA_INTAKE_P4
#define SLUICE_TNA_INTAKE_P4

control Intake(inout ingress_metadata_t meta, in ingress_intrinsic_metadata_t intrinsic,
               in ingress_intrinsic_metadata_from_parser_t from_parser) {
    Clock() clock;

    // By the hash units: the port of the hardware has 9 bits, and would cut every other one there.
    @hidden
    action widen_port() {
        @in_hash { meta.sluice.ingress_port = 7w0 ++ intrinsic.ingress_port; }
    }

    apply {
        widen_port();
        meta.sluice.ipv4_room = 0xffff;
        clock.apply(from_parser.global_tstamp, meta.sluice.now, meta.sluice.clock);
    }
}

// What the stages are not to see at all: from the controller, or not whole.
control NotReceived(inout headers_t hdr, inout ingress_metadata_t meta, in ingress_intrinsic_metadata_t intrinsic,
                    in ingress_intrinsic_metadata_from_parser_t from_parser) {
    apply {
        if (hdr.packet_out.isValid()) {
            meta.sluice.verdict.egress_port = hdr.packet_out.egress_port;
            hdr.packet_out.setInvalid();
        } else if (intrinsic.ingress_port == TNA_CPU_PORT) {
            meta.sluice.verdict.drop = DropReason.cpu_header;
        } else if (meta.sluice.verdict.drop == DropReason.none) {
            if (from_parser.parser_err != PARSER_ERROR_OK) {
                meta.sluice.verdict.drop = DropReason.truncated;
            } else {
                meta.sluice.verdict.drop = DropReason.ipv4_checksum;
            }
        }
    }
}

#endif
