// sluice for Tofino 1 (TNA). Ingress decides what happens to a packet; egress tags and counts the packets that ingress forwards.
#include <core.p4>
#include <chip.p4>

#include "target.p4"
#include "../stages.p4"

#include "parser.p4"
#include "checksums.p4"
#include "intake.p4"
#include "notes.p4"
#include "judge.p4"
#include "renew.p4"
#include "bridge.p4"
#include "verdict.p4"
#include "deparser.p4"
#include "egress.p4"

control SluiceIngress(inout headers_t hdr, inout ingress_metadata_t all, in ingress_intrinsic_metadata_t intrinsic,
                      in ingress_intrinsic_metadata_from_parser_t from_parser,
                      inout ingress_intrinsic_metadata_for_deparser_t for_deparser,
                      inout ingress_intrinsic_metadata_for_tm_t for_tm) {
    Intake() intake;
    Received() received;
    Recall() recall;
    Note() note;
    Ports() ports;
    Measure() measure;
    Compare() compare;
    Payloads() payloads;
    Flow() flow;
    Classify() classify;
    Local() local;
    Answers() answers;
    Judge() judge;
    HopLimit() hop_limit;
    Sampling() sampling;
    Admission() admission;
    Destinations() destinations;
    Balance() balance;
    Places() places;
    Connections() connections;
    RefuseRouted() refuse_routed;
    Requests() requests;
    Acknowledged() acknowledged;
    Refusal() refusal;
    Translate() translate;
    Renew() renew;
    SecondLook() second_look;
    Stale() stale;
    Prefer() prefer;
    AdjustChecksums() adjust_checksums;
    Forward() forward;
    Bridge() bridge;
    Verdict() verdict;

    place_t place;

#define meta all.sluice
    @hidden
    action limit_in_next_pass() {
        meta.next_pass = Pass.limit;
    }

    @hidden
    action server_unknown() {
        all.verdict.drop = DropReason.server_unknown;
    }

    apply {
        // These stages drop no packet: each reports its findings, so that no stage waits for the drop reason of another, and
        // judge combines the findings.
        intake.apply(all, intrinsic, from_parser);
        received.apply(hdr, all, from_parser);
        recall.apply(all.noted, all.decided, all.next);
        measure.apply(hdr, meta);
        if (hdr.ipv4.isValid())                                             hop_limit.apply(hdr, all.findings.hop);
        flow.apply(hdr, meta);
        classify.apply(meta, all.findings.target);
        local.apply(meta);
        ports.apply(meta);
        compare.apply(hdr, meta, all.findings);
        balance.apply(meta);
        stale.apply(meta);
        places.apply(meta, all.decided, place);
        payloads.apply(meta);
        acknowledged.apply(hdr, meta, all.acknowledgement);
        judge.apply(hdr, meta, all.findings, all.verdict);

        // An if block occupies the hardware stages from its first table to its last table; the next block gets later stages. So
        // this program has many short blocks with one step each instead of long blocks. A step is applied to every packet if it
        // changes nothing in packets for which it is not meant.
        answers.apply(hdr, meta, all.verdict);
        if (meta.path == Path.routed) {
            if (all.decided.undecided == 1 && meta.event == Event.syn && meta.inward == 1) limit_in_next_pass();
            else                                                            refuse_routed.apply(all.decided, all.verdict.drop);
        }
        connections.apply(meta, place, all.decided, all.verdict.drop);
        translate.apply(hdr, meta, all.server_drop);
        second_look.apply(hdr, meta, all.decided, all.server_drop);
        prefer.apply(meta);
        renew.apply(meta, all.decided);
        if (all.verdict.drop == DropReason.admission_refused)               refusal.apply(hdr, meta, all.decided, all.acknowledgement, all.verdict);
        else if (all.verdict.drop == DropReason.none) {
            if (all.server_drop != DropReason.none)                         server_unknown();
            else if (meta.path == Path.to_service || meta.path == Path.from_server || meta.path == Path.routed) {
                forward.apply(hdr, all.verdict);
            }
        }
        adjust_checksums.apply(hdr, all);
        if (all.verdict.drop == DropReason.none
                && (meta.path == Path.to_service || meta.path == Path.from_server || meta.path == Path.routed)) {
            bridge.apply(meta, all.bridge);
        }
        verdict.apply(hdr, meta, all.verdict, for_deparser, for_tm);

        // A SYN without a pin passes ingress twice. The first pass computes the limits' results, and the second pass applies the
        // results, which the parser restores. So no stage above waits for the meters.
        if (meta.path == Path.to_service)                                   admission.apply(meta, all.next);
        destinations.apply(meta, all.next);
        note.apply(all.next, all.notes);
        sampling.apply(meta);
        // A SYN whose connection is pinned is counted in its first pass, and not again in a second pass that renews the pin.
        if (all.next.request == 1 && meta.pass != Pass.renew && (all.decided.undecided == 0 || meta.pinned == 1)) {
            requests.apply(meta, all.next);
        }
    }
#undef meta
}

// Fixes the container size, because the assembler refuses a stateful unit's output in containers of two sizes.
@pa_container_size("ingress", "meta.sluice.evicted", 16)
@pa_auto_init_metadata
@pkginfo(name = "sluice", version = "0.1.0")
Pipeline(SluiceIngressParser(), SluiceIngress(), SluiceIngressDeparser(),
         SluiceEgressParser(), SluiceEgress(), SluiceEgressDeparser()) pipe;

@pkginfo(name = "sluice", version = "0.1.0")
Switch(pipe) main;
