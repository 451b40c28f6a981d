// Front: applies the stages that change no state, one after another, until a stage drops the packet.
//
//   reads  what intake, ports, measure, validate, events, flow, classify, local, answers, hop_limit and agents read
//          splice: the connection of a splice order
//          tcp, tickle, ipv4.identification, drop
//   writes path, content, connection, attempt
//          what intake, ports, measure, events, flow, classify, local, answers, hop_limit and agents write
//   drops  what intake, ports, validate, classify, answers, hop_limit and agents drop
//   punts  what answers and hop_limit punt
//
// If a server refuses an agent's SYN by a RST, the agent repeats the SYN with the attempt's number, 1 to 3, as IPv4
// identification. In all other packets of agents the identification is 0.
#ifndef SLUICE_V1MODEL_FRONT_P4
#define SLUICE_V1MODEL_FRONT_P4

#include "intake.p4"

control Front(inout headers_t hdr, inout metadata_t meta, inout verdict_t outcome, in standard_metadata_t intrinsic) {
    Intake() intake;
    // A controller finds the tables of these stages under the same names on every target.
    @name(".SluiceIngress.ports")
    Ports() ports;
    Addressed() addressed;
    Measure() measure;
    Validate() validate;
    ValidateTransport() validate_transport;
    Events() events;
    Flow() flow;
    @name(".SluiceIngress.classify")
    Classify() classify;
    @name(".SluiceIngress.local")
    Local() local;
    Answers() answers;
    HopLimit() hop_limit;
    Agents() agents;

    apply {
        intake.apply(hdr, meta, outcome, intrinsic);

        if (meta.path != Path.done) {
            ports.apply(meta);
            addressed.apply(hdr, meta, outcome.drop);
            if (hdr.splice.isValid()) {
                meta.path = Path.order;
                meta.content = Content.agent;
                meta.connection = { hdr.splice.client, hdr.splice.service, hdr.splice.client_port, hdr.splice.service_port, PROTOCOL_TCP };
            }
            if (meta.path == Path.ipv4 && outcome.drop == DropReason.none) {
                measure.apply(hdr, meta);
                validate.apply(hdr, meta, outcome.drop);
                validate_transport.apply(meta, outcome.drop);
                if (outcome.drop == DropReason.none) {
                    if (hdr.tcp.isValid() && !hdr.tickle.isValid())         events.apply(hdr, meta);
                    flow.apply(hdr, meta);
                    classify.apply(meta, outcome.drop);
                }
            }
            if (meta.content == Content.agent && outcome.drop == DropReason.none) {
                agents.apply(meta, outcome.drop);
                if (meta.event == Event.syn)                                meta.attempt = hdr.ipv4.identification[1:0];
            }
        }
        if (outcome.drop == DropReason.none && meta.path != Path.done && meta.path != Path.to_service && meta.path != Path.order) {
            if (meta.path == Path.arp)                                      flow.apply(hdr, meta);
            local.apply(meta);
            if (meta.path == Path.arp || meta.ours == 1)                    meta.path = Path.local;
            else if (meta.path == Path.ipv4)                                meta.path = Path.routed;
        }
        if (meta.path == Path.local)                                        answers.apply(hdr, meta, outcome);
        else if (meta.path != Path.done && meta.path != Path.order && outcome.drop == DropReason.none) hop_limit.apply(hdr, outcome);
        if (meta.path == Path.local || outcome.drop != DropReason.none)     meta.path = Path.done;
    }
}

#endif
