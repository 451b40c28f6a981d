// sluice for Tofino 1 (TNA), with content switching: the stages of main.p4 without limits and counts of destinations, sampling,
// response rates, resets of refused SYNs and the second look, for which there is no room beside it. Ingress decides and translates;
// egress tags and counts what it forwarded.
#include <core.p4>
#include <chip.p4>

#include "target.p4"
#include "../stages.p4"

#include "../v1model/agents.p4"
#include "parser.p4"
#include "checksums.p4"
#include "intake.p4"
#include "measure_by_table.p4"
#include "judge.p4"
#include "orders.p4"
#include "splice.p4"
#include "resplice.p4"
#include "renew_content.p4"
#include "bridge.p4"
#include "verdict.p4"
#include "deparser.p4"

control SluiceIngress(inout headers_t hdr, inout ingress_metadata_t all, in ingress_intrinsic_metadata_t intrinsic,
                      in ingress_intrinsic_metadata_from_parser_t from_parser,
                      inout ingress_intrinsic_metadata_for_deparser_t for_deparser,
                      inout ingress_intrinsic_metadata_for_tm_t for_tm) {
    Intake() intake;
    Received() received;
    Ports() ports;
    MeasureByTable() measure;
    Compare() compare;
    Payloads() payloads;
    Flow() flow;
    Classify() classify;
    Local() local;
    Answers() answers;
    Judge() judge;
    ReadOrder() read_order;
    SignOrder() sign_order;
    AgentCheck() agent_check;
    HopLimit() hop_limit;
    @name(".SluiceIngress.front.agents")
    Agents() agents;
    Admission() admission;
    Balance() balance;
    Places() places;
    Connections() connections;
    Splice() splice;
    Unheard() unheard;
    Confirm() confirm;
    Translate() translate;
    Resplice() resplice;
    RenewContent() renew;
    AdjustChecksums() adjust_checksums;
    Forward() forward;
    Bridge() bridge;
    Verdict() verdict;

    place_t place;
    bit<32> value;                // delta of the splice; of an order, whether that is the same
    bit<1> detour;

#define meta all.sluice
    @hidden
    action server_unknown() {
        all.verdict.drop = DropReason.server_unknown;
    }

    // A client whose agent is gone passes once more, to another one.
    @hidden
    action agent_gone() {
        meta.preferred = meta.stable_choice;
        meta.next_pass = Pass.candidate;
    }

    @hidden
    action prefer() {
        meta.preferred = meta.choice;
    }

    @hidden
    action end_detour() {
        hdr.ipv4.dst = meta.flow.dst;
    }

    apply {
        intake.apply(all, intrinsic, from_parser);
        received.apply(hdr, all, from_parser);
        measure.apply(hdr, meta);
        if (hdr.ipv4.isValid())                                             hop_limit.apply(hdr, all.found.hop);
        read_order.apply(hdr, meta);
        flow.apply(hdr, meta);
        classify.apply(meta, all.found.target);
        local.apply(meta);
        ports.apply(meta);
        compare.apply(hdr, meta, all.found);
        if (meta.content == Content.agent)                                  agents.apply(meta, all.found.agent);
        balance.apply(meta);
        places.apply(meta, all.decided, place);
        payloads.apply(meta);
        judge.apply(hdr, meta, all.found, all.verdict);
        sign_order.apply(hdr, meta);
        agent_check.apply(all.found, all.verdict, all.decided);

        answers.apply(hdr, meta, all.verdict);
        connections.apply(meta, place, all.decided, all.verdict.drop);
        splice.apply(hdr, meta, place, value, detour);
        unheard.apply(meta, all.verdict.drop);
        resplice.apply(hdr, meta, value);
        translate.apply(hdr, meta, all.server_drop);
        // A SYN claims for its choice in its second pass; a client's, to an agent, claims nothing.
        if (meta.next_pass == Pass.claim && meta.content != Content.client) prefer();
        renew.apply(meta, all.decided);
        if (all.server_drop != DropReason.none) {
            if (meta.content == Content.client && meta.held == 1 && meta.pass == Pass.first) agent_gone();
            else if (all.verdict.drop == DropReason.none)                   server_unknown();
        } else if (all.verdict.drop == DropReason.none
                 && (meta.path == Path.to_service || meta.path == Path.from_server || meta.path == Path.routed)) {
            forward.apply(hdr, all.verdict);
        } else {
            confirm.apply(hdr, meta, value, all.verdict);
        }
        if (detour == 1)                                                    end_detour();
        adjust_checksums.apply(hdr, all);
        if (all.verdict.drop == DropReason.none
                && (meta.path == Path.to_service || meta.path == Path.from_server || meta.path == Path.routed)) {
            bridge.apply(meta, all.bridge);
        }
        verdict.apply(hdr, meta, all.verdict, for_deparser, for_tm);

        // A SYN passes twice: what is decided of it here is for its second pass.
        if (meta.path == Path.to_service)                                   admission.apply(meta, all.next);
    }
#undef meta
}

control SluiceEgress(inout headers_t hdr, inout egress_metadata_t all, in egress_intrinsic_metadata_t intrinsic,
                     in egress_intrinsic_metadata_from_parser_t from_parser,
                     inout egress_intrinsic_metadata_for_deparser_t for_deparser,
                     inout egress_intrinsic_metadata_for_output_port_t for_port) {
    // A controller is to find them by the names that they have on every target.
    @name(".SluiceIngress.tag")
    Tag() tag;
    @name(".SluiceIngress.ledger")
    Ledger() ledger;

    @hidden
    action widen_port() {
        @in_hash { all.egress_port = 7w0 ++ intrinsic.egress_port; }
    }

    apply {
        widen_port();
        tag.apply(hdr, all.egress_port);
        ledger.apply(all.sluice);
    }
}

// What a stateful unit gives cannot lie in containers of two sizes: the assembler refuses it.
@pa_container_size("ingress", "meta.sluice.turn", 16)
@pa_container_size("ingress", "meta.sluice.granted", 16)
// A window is shifted in a container of its own.
@pa_container_size("ingress", "hdr.tcp.window", 16)
@pa_auto_init_metadata
@pkginfo(name = "sluice", version = "0.1.0")
Pipeline(SluiceIngressParser(), SluiceIngress(), SluiceIngressDeparser(),
         SluiceEgressParser(), SluiceEgress(), SluiceEgressDeparser()) pipe;

@pkginfo(name = "sluice", version = "0.1.0")
Switch(pipe) main;
