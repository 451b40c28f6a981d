// Judge: decides on a packet's path or drop reason from the results of the first stages, which run in parallel on this target.
// The table is generated from judge.yaml, which defines the precedence of the drop reasons.
//
//   reads  findings, arp, ipv4, ethernet.dst, router_mac, known, inside, ours, martian, lengths, flow.src
//          path: the value that the parser and classify have written
//   writes path, inward, itself
//          findings.foreign, findings.same: of Compare
//   drops  port_unknown, not_for_us, unsupported, ipv4_length, fragment, martian, l4_length, direct_to_server, ttl_exceeded
//          the reasons that the parser and intake report (findings.frame)
//   punts  ttl
#ifndef SLUICE_TNA_JUDGE_P4
#define SLUICE_TNA_JUDGE_P4

#include "findings.p4"

// Compares pairs of fields; Judge and the translation of addresses use the results.
control Compare(in headers_t hdr, inout metadata_t meta, inout findings_t findings) {
    @hidden
    action foreign() {
        findings.foreign = 1;
    }

    @hidden
    action same() {
        findings.same = 1;
    }

    @hidden
    action itself() {
        meta.itself = 1;
    }

    // The MAC addresses are compared in two steps, because a condition compares at most 32 bits of two fields.
    apply {
        if (hdr.ethernet.dst[47:16] != meta.router_mac[47:16]) {
            foreign();
        } else if (hdr.ethernet.dst[15:0] != meta.router_mac[15:0]) {
            foreign();
        }
        if (hdr.ipv4.src == hdr.ipv4.dst) {
            same();
        }
        if (hdr.ipv4.src == meta.flow.src) {
            itself();
        }
    }
}

control Judge(in headers_t hdr, inout metadata_t meta, in findings_t findings, inout verdict_t verdict) {
    @hidden
    action go(Path where, bit<1> inward) {
        meta.path = where;
        meta.inward = inward;
    }

    @hidden
    action expire() {
        meta.path = Path.done;
        verdict.drop = DropReason.ttl_exceeded;
        verdict.punt = PuntReason.ttl;
    }

    @hidden
    action drop_as(DropReason reason) {
        meta.path = Path.done;
        verdict.drop = reason;
    }

    @hidden
    action drop_as_frame() {
        meta.path = Path.done;
        verdict.drop = findings.frame;
    }

#include "judge_table.p4"

    apply {
        judge.apply();
    }
}

#endif
