// Front: applies the stages that change no state. The stages run in parallel, and each reports drop reasons; the control Judge
// decides.
//
//   reads  what intake, notes, measure, hop_limit, orders, flow, classify, local, ports, judge, agents and events read
//          ipv4: whether it is valid
//          content
//   writes what intake, notes, measure, hop_limit, orders, flow, classify, local, ports, judge, agents and events write
//   drops  what intake, hop_limit, orders, classify, judge and agents drop
//   punts  what hop_limit and judge punt
#ifndef SLUICE_TNA2_FRONT_P4
#define SLUICE_TNA2_FRONT_P4

#include "../v1model/agents.p4"
#include "../tna/intake.p4"
#include "../tna/notes.p4"
#include "../tna/judge.p4"
#include "orders.p4"

control Front(inout headers_t hdr, inout ingress_metadata_t all, in ingress_intrinsic_metadata_t intrinsic,
              in ingress_intrinsic_metadata_from_parser_t from_parser) {
    Intake() intake;
    Received() received;
    Recall() recall;
    Measure() measure;
    HopLimit() hop_limit;
    ReadOrder() read_order;
    Flow() flow;
    // A controller finds the tables of these stages under the same names on every target.
    @name(".SluiceIngress.classify")
    Classify() classify;
    @name(".SluiceIngress.local")
    Local() local;
    @name(".SluiceIngress.ports")
    Ports() ports;
    Compare() compare;
    Agents() agents;
    Payloads() payloads;
    Judge() judge;
    SignOrder() sign_order;
    AgentCheck() agent_check;

    apply {
        intake.apply(all, intrinsic, from_parser);
        received.apply(hdr, all, from_parser);
        recall.apply(all.noted, all.decided, all.next);
        measure.apply(hdr, all.sluice);
        if (hdr.ipv4.isValid())                                             hop_limit.apply(hdr, all.findings.hop);
        read_order.apply(hdr, all.sluice);
        flow.apply(hdr, all.sluice);
        classify.apply(all.sluice, all.findings.target);
        local.apply(all.sluice);
        ports.apply(all.sluice);
        compare.apply(hdr, all.sluice, all.findings);
        if (all.sluice.content == Content.agent)                            agents.apply(all.sluice, all.findings.agent);
        payloads.apply(all.sluice);
        judge.apply(hdr, all.sluice, all.findings, all.verdict);
        sign_order.apply(hdr, all.sluice);
        agent_check.apply(all.findings, all.verdict, all.decided);
    }
}

#endif
