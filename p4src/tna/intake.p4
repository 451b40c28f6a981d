// TNA intake: what the stages are not to see (ports, clock, parser and checksum errors) becomes metadata that they may.
//
//   reads  intrinsic.ingress_port, global_tstamp, parser_err
//          packet_out, ipv4_checksum_wrong, found.frame: from the parser
//   writes ingress_port, now, clock
//          packet_out, found.sent, verdict.egress_port: of a frame from the controller
//   drops  truncated, ipv4_checksum
//
// The parser gives source_mac, unsupported and ipv4_header, as found.frame. No packet of this target is dropped for cpu_header.
//
// Ingress does not know a frame's length: an IPv4 packet whose length exceeds its frame is forwarded unchanged.
#ifndef SLUICE_TNA_INTAKE_P4
#define SLUICE_TNA_INTAKE_P4

#include "clock.p4"

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
        clock.apply(from_parser.global_tstamp, meta.sluice.now, meta.sluice.clock);
    }
}

// From the controller, or not whole. (From the controller's port nothing comes without a header but what is too short for one.)
control Received(inout headers_t hdr, inout ingress_metadata_t meta,
                 in ingress_intrinsic_metadata_from_parser_t from_parser) {
    @hidden
    action send() {
        meta.verdict.egress_port = hdr.packet_out.egress_port;
        meta.found.sent = 1;
        hdr.packet_out.setInvalid();
    }

    @hidden
    action drop_as(DropReason reason) {
        meta.found.frame = reason;
    }

    @hidden
    action neither() { }

    @hidden
    table received {
        key = {
            hdr.packet_out.isValid() : ternary @name("packet_out");
            meta.found.frame         : ternary @name("frame");
            from_parser.parser_err   : ternary @name("parser_err");
            meta.ipv4_checksum_wrong : ternary @name("checksum_wrong");
        }
        actions = { send; drop_as; neither; }
        const entries = {
            (true, _, PARSER_ERROR_OK, _)                  : send();
            (_, DropReason.none, PARSER_ERROR_OK, false)   : neither();
            (_, DropReason.none, PARSER_ERROR_OK, true)    : drop_as(DropReason.ipv4_checksum);
            (_, DropReason.none, _, _)                     : drop_as(DropReason.truncated);
        }
        const default_action = neither();
    }

    apply {
        received.apply();
    }
}

#endif
