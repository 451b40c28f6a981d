// TNA verdict: the only control that sends, drops or resubmits a packet, punts it to the controller, or reports the sender of an
// ARP packet.
//
//   reads  verdict, path, next_pass, ingress_port
//   writes packet_in, ucast_egress_port, copy_to_cpu, bypass_egress, drop_ctl, resubmit_type, digest_type
//   drops  punt_limited
#ifndef SLUICE_TNA_VERDICT_P4
#define SLUICE_TNA_VERDICT_P4

#include <externs/meters.p4>
#include <externs/counters.p4>

control Verdict(inout headers_t hdr, in metadata_t meta, in verdict_t verdict,
                inout ingress_intrinsic_metadata_for_deparser_t for_deparser,
                inout ingress_intrinsic_metadata_for_tm_t for_tm) {
    PuntMeter() punt_meter;
    VerdictCounters() counters;

    // A value of drop_ctl that drops the packet, and still sends its copy to the CPU.
    const bit<3> NO_UNICAST = 1;

    bit<8> colour = 0;

    @hidden
    action again() {
        for_deparser.resubmit_type = RESUBMIT_NEXT_PASS;
    }

    @hidden
    action punt() {
        hdr.packet_in.setValid();
        hdr.packet_in.ingress_port = meta.ingress_port;
        hdr.packet_in.reason = (bit<8>)verdict.punt;
        hdr.packet_in.neighbour = verdict.neighbour;
        for_tm.copy_to_cpu = 1;
        for_tm.bypass_egress = 1;
        for_deparser.drop_ctl = NO_UNICAST;
    }

    @hidden
    action drop() {
        for_deparser.drop_ctl = 1;
    }

    // Sends the packet through egress, which counts the packet.
    @hidden
    action forward() {
        for_tm.ucast_egress_port = (PortId_t)verdict.egress_port;
    }

    @hidden
    action answer() {
        for_tm.ucast_egress_port = (PortId_t)verdict.egress_port;
        for_tm.bypass_egress = 1;
    }

    @hidden
    action answer_and_tell() {
        answer();
        for_deparser.digest_type = DIGEST_ARP_SENDER;
    }

    @hidden
    action drop_and_tell() {
        drop();
        for_deparser.digest_type = DIGEST_ARP_SENDER;
    }

    @hidden
    table sentence {
        key = {
            meta.next_pass : ternary @name("next_pass");
            verdict.punt   : ternary @name("punt");
            colour         : ternary @name("colour");
            verdict.drop   : ternary @name("drop");
            meta.path      : ternary @name("path");
        }
        actions = { again; punt; drop; forward; answer; answer_and_tell; drop_and_tell; }
        const entries = {
            (Pass.claim, _, _, _, _)                                         : again();
            (Pass.renew, _, _, _, _)                                         : again();
            (Pass.limit, _, _, _, _)                                         : again();
#if defined(CONTENT)
            (Pass.candidate, _, _, _, _)                                     : again();
#endif
            (_, PuntReason.none, _, DropReason.none, Path.done)             : answer();
            (_, PuntReason.none, _, DropReason.none, Path.local)            : answer();
            (_, PuntReason.none, _, DropReason.none, _)                     : forward();
            (_, PuntReason.none, _, DropReason.admission_reset, _)          : answer();
            (_, PuntReason.none, _, _, _)                                   : drop();
            (_, PuntReason.sender, RED, DropReason.none, _)                 : answer();
            (_, PuntReason.sender, _, DropReason.none, _)                   : answer_and_tell();
            (_, _, RED, _, _)                                               : drop();
            (_, PuntReason.sender, _, _, _)                                 : drop_and_tell();
            (_, PuntReason.arp, _, _, _)                                    : drop_and_tell();
        }
        const default_action = punt();
    }

    apply {
        if (verdict.punt != PuntReason.none) {
            punt_meter.apply(verdict.punt, colour);
        }
        sentence.apply();
        if (meta.next_pass == Pass.first) {
            counters.apply(verdict, colour);
        }
    }
}

#endif
