// Front: as on Tofino, no stage waits for the drop reason of an earlier stage; each stage reports a reason, and one table (judge)
// selects one of these reasons. The twin is the v1model program with this folder before v1model's folder on the include path
// (tools/p4.py). Tests compare the outputs of the twin and of the v1model program for the same packets.
//
//   reads  what intake, measure, hop_limit, events, flow, classify, local, ports, judge and answers read
//          ipv4, ipv4_room: so that a packet longer than its frame is judged as on v1model
//          tcp, drop
//   writes what intake, measure, hop_limit, events, flow, classify, local, ports, judge and answers write
//          lengths, path
//   drops  what intake, hop_limit, classify, judge and answers drop
//   punts  what hop_limit, judge and answers punt
#ifndef SLUICE_TWIN_FRONT_P4
#define SLUICE_TWIN_FRONT_P4

#include "../v1model/intake.p4"
#include "../tna/judge.p4"

control Front(inout headers_t hdr, inout metadata_t meta, inout verdict_t outcome, in standard_metadata_t intrinsic) {
    Intake() intake;
    @name(".SluiceIngress.ports")
    Ports() ports;
    Measure() measure;
    Events() events;
    Flow() flow;
    @name(".SluiceIngress.classify")
    Classify() classify;
    @name(".SluiceIngress.local")
    Local() local;
    HopLimit() hop_limit;
    Compare() compare;
    Judge() judge;
    Answers() answers;

    findings_t findings;

    apply {
        findings = { 0, DropReason.none, 0, 0, DropReason.none, { DropReason.none, PuntReason.none, 0, 0 } };
        intake.apply(hdr, meta, outcome, intrinsic);
        if (meta.path == Path.done && outcome.drop == DropReason.none) {
            findings.sent = 1;
        }
        findings.frame = outcome.drop;
        outcome.drop = DropReason.none;

        measure.apply(hdr, meta);
        if (meta.ipv4_room < hdr.ipv4.total_length) {       // judge then drops the packet, as on v1model; Tofino forwards it
            meta.lengths.header_missing = 1;
        }
        if (hdr.ipv4.isValid())                                             hop_limit.apply(hdr, findings.hop);
        if (hdr.tcp.isValid())                                              events.apply(hdr, meta);
        flow.apply(hdr, meta);
        classify.apply(meta, findings.target);
        local.apply(meta);
        ports.apply(meta);
        compare.apply(hdr, meta, findings);
        judge.apply(hdr, meta, findings, outcome);
        answers.apply(hdr, meta, outcome);
        if (meta.path == Path.local || outcome.drop != DropReason.none)     meta.path = Path.done;
    }
}

#endif
