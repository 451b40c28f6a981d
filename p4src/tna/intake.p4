// TNA intake: copies the metadata of TNA (ports, clock, parser and checksum errors) into the stages' own metadata.
//
//   reads  intrinsic.ingress_port, global_tstamp, parser_err
//          packet_out, ipv4_checksum_wrong, findings.frame: from the parser
//   writes ingress_port, now, clock
//          packet_out, findings.sent, verdict.egress_port: of a frame from the controller
//   drops  truncated, ipv4_checksum
//
// The parser reports the drop reasons source_mac, unsupported and ipv4_header in findings.frame. Tofino never uses cpu_header.
//
// Tofino's ingress has no access to a frame's length, so it forwards an IPv4 packet whose total length exceeds the frame.
#ifndef SLUICE_TNA_INTAKE_P4
#define SLUICE_TNA_INTAKE_P4

#include "clock.p4"

control Intake(inout ingress_metadata_t meta, in ingress_intrinsic_metadata_t intrinsic,
               in ingress_intrinsic_metadata_from_parser_t from_parser) {
    Clock() clock;

    // Uses the hash units, because a plain copy of the hardware's 9-bit port would split every 16-bit port field at bit 9.
    @hidden
    action widen_port() {
        @in_hash { meta.sluice.ingress_port = 7w0 ++ intrinsic.ingress_port; }
    }

    apply {
        widen_port();
        clock.apply(from_parser.global_tstamp, meta.sluice.now, meta.sluice.clock);
    }
}

// Recognises packets from the controller, and incomplete packets. (A frame from the controller's port whose packet_out header is
// invalid is shorter than that header.)
control Received(inout headers_t hdr, inout ingress_metadata_t meta,
                 in ingress_intrinsic_metadata_from_parser_t from_parser) {
    @hidden
    action send() {
        meta.verdict.egress_port = hdr.packet_out.egress_port;
        meta.findings.sent = 1;
        hdr.packet_out.setInvalid();
    }

    @hidden
    action drop_as(DropReason reason) {
        meta.findings.frame = reason;
    }

    @hidden
    action neither() { }

    @hidden
    table received {
        key = {
            hdr.packet_out.isValid() : ternary @name("packet_out");
            meta.findings.frame      : ternary @name("frame");
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
